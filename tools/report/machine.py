"""The machine and the commit of a measurement."""

from __future__ import annotations

import datetime
import hashlib
import os
import pathlib
import platform
import re
import subprocess
from collections.abc import Sequence
from typing import Any


def machine() -> dict[str, Any]:
    """Returns processor, memory, system, and how busy they are now."""
    return {
        "processor": _processor(),
        "processors": os.cpu_count() or 1,
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "virtual": _first_match("/proc/cpuinfo", r"^flags\s*:.*\bhypervisor\b") is not None,
        "kernel": platform.release(),
        "system": _system(),
        "load_average": round(os.getloadavg()[0], 2),
        "time": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
    }


def identity() -> str:
    """Returns an id that tells this machine from others of its kind. It does not reveal the machine's name."""
    try:
        number = pathlib.Path("/etc/machine-id").read_text(encoding="ascii", errors="replace")
    except OSError:
        number = ""
    return hashlib.sha256(f"{number}{platform.node()}".encode()).hexdigest()[:16]


def file_system(folder: pathlib.Path) -> str:
    """Returns the type of a folder's file system."""
    return output(["findmnt", "--noheadings", "--output", "FSTYPE", "--target", str(folder)]) or "an unknown file system"


def describe(values: dict[str, Any]) -> str:
    """Describes the machine in one line."""
    gibibytes = values["memory_bytes"] / 2**30
    count = values["processors"]
    cores = f"{count} {'virtual ' if values['virtual'] else ''}processor{'' if count == 1 else 's'}"
    return (
        f"{cores} ({values['processor']}), {gibibytes:.0f} GiB, Linux {values['kernel']}, {values['system']}, "
        f"load {values['load_average']:.1f} at the start"
    )


def commit(folder: pathlib.Path) -> dict[str, Any]:
    """Returns the commit of a working tree; None for unknown parts."""
    values: dict[str, Any] = {"hash": None, "date": None, "changed_files": None}
    head = output(["git", "-C", str(folder), "log", "-1", "--format=%H %cI"])
    if head:
        values["hash"], values["date"] = head.split()
        changes = output(["git", "-C", str(folder), "status", "--porcelain", "--untracked-files=no"])
        values["changed_files"] = None if changes is None else len(changes.splitlines())
    return values


def describe_commit(values: dict[str, Any]) -> str:
    if not values["hash"]:
        return "unknown"
    changes = values["changed_files"]
    return values["hash"][:12] + (f", and {changes} changed file{'' if changes == 1 else 's'}" if changes else "")


def output(command: Sequence[str]) -> str | None:
    """Returns the output of a command, or None if it cannot run or fails."""
    try:
        result = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip()


def _processor() -> str:
    return _first_match("/proc/cpuinfo", r"^model name\s*:\s*(.*)$") or platform.machine()


def _system() -> str:
    return _first_match("/etc/os-release", r'^PRETTY_NAME="?([^"]*)"?$') or platform.system()


def _first_match(path: str, pattern: str) -> str | None:
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        return None
    return (found[1] if found.re.groups else found[0]).strip()
