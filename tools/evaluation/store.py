"""The folder of one evaluation: the results, each in a file, and the conditions of the measurement.

A run that was stopped continues with the missing results. Results of another commit, or of other programs, settings or
machines, are never mixed with them: that is an error, which names the difference.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
from collections.abc import Sequence
from typing import Any

from evaluation.plan import Run, Settings
from measuring.programs import ROOT, ToolError
from report import machine as machines

SETTINGS_FILE = "settings.json"
LAB_FOLDER = "lab"  # The folder into which the lab's guest may write.
PROGRAMS = ("erda-ycsb", "erda-server", "erda-scheme-server", "erda-bench", "erda-cli")


def conditions(settings: Settings, build: pathlib.Path) -> dict[str, Any]:
    """Returns the conditions that must be equal for all figures of one report."""
    here = machines.machine()
    commit = machines.commit(ROOT)
    changes = machines.output(["git", "-C", str(ROOT), "diff", "HEAD"]) if commit["changed_files"] else ""
    return {
        "commit": commit["hash"],
        "changes": hashlib.sha256((changes or "").encode()).hexdigest()[:16] if changes else "",
        "programs": _digest(build),
        "processor": here["processor"],
        "processors": here["processors"],
        "kernel": here["kernel"],
        "host": machines.identity(),
        **settings.to_json(),
    }


def _digest(build: pathlib.Path) -> str:
    """Of the programs and their libraries."""
    files = [build / "bin" / name for name in PROGRAMS] + sorted((build / "lib").rglob("*.so"))
    digest = hashlib.sha256()
    for file in files:
        if file.is_file():
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def write_json(path: pathlib.Path, value: Any) -> None:
    """Writes all of the file, or nothing."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(partial, path)


@dataclasses.dataclass
class Store:
    folder: pathlib.Path
    identity: str  # Of the conditions.
    origin: dict[str, Any]  # Conditions, machine, commit, commands.

    @staticmethod
    def begin(folder: pathlib.Path, origin: dict[str, Any], fresh: bool) -> Store:
        """Opens the folder. Keeps its results if they were measured under the same conditions."""
        known = (folder / SETTINGS_FILE).exists()
        if known and not fresh:
            store = Store.read(folder)
            differences = [
                f"{name} {_brief(store.origin['conditions'].get(name))}, not {_brief(value)}"
                for name, value in origin["conditions"].items()
                if store.origin["conditions"].get(name) != value
            ]
            if differences:
                raise ToolError(
                    f"{folder} has figures of other conditions ({'; '.join(differences)}), and one report cannot mix them. Choose "
                    "another --out, or --fresh to measure all again"
                )
            commands = store.origin["commands"]
            store.origin["commands"] = [*commands, *(command for command in origin["commands"] if command not in commands)]
        else:
            if known:
                _remove(folder)
            elif folder.is_dir() and any(folder.iterdir()):
                raise ToolError(f"{folder} is not empty, and not a folder of an evaluation; choose another --out")
            store = Store(folder, _identity(origin["conditions"]), origin)
        (folder / "points").mkdir(parents=True, exist_ok=True)
        write_json(folder / SETTINGS_FILE, store.origin)
        return store

    @staticmethod
    def read(folder: pathlib.Path) -> Store:
        """Opens the folder as it is."""
        try:
            origin = json.loads((folder / SETTINGS_FILE).read_text(encoding="utf-8"))
            return Store(folder, _identity(origin["conditions"]), origin)
        except FileNotFoundError as error:
            raise ToolError(f"{folder} has no evaluation; leave out --report to make one") from error
        except (ValueError, KeyError, TypeError) as error:
            raise ToolError(f"{folder / SETTINGS_FILE} is damaged; --fresh measures all again") from error

    def put(self, name: str, entry: dict[str, Any]) -> None:
        write_json(self.folder / f"{name}.json", {"conditions": self.identity, **entry})

    def get(self, name: str) -> dict[str, Any] | None:
        return self._entry(self.folder / f"{name}.json")

    def put_guest(self, machine: dict[str, Any]) -> None:
        """Stores the lab's machine, which must be the same for all points."""
        before = self.get("guest")
        for name in ("processor", "processors", "kernel"):
            if before and self.points() and before["machine"][name] != machine[name]:
                raise ToolError(f"{self.folder} has figures of a guest with {name} {before['machine'][name]}, not {machine[name]}, "
                                "and one report cannot mix them. Choose another --out, or --fresh to measure all again")
        self.put("guest", {"machine": machine})

    def put_run(self, run: Run, entry: dict[str, Any]) -> None:
        self.put(f"points/{run.name}", {**dataclasses.asdict(run.point), "scheme": run.scheme.name, "round": run.round, **entry})

    def missing(self, runs: Sequence[Run]) -> list[Run]:
        have = {path.stem for path in (self.folder / "points").glob("*.json")}
        return [run for run in runs if run.name not in have]

    def points(self) -> list[dict[str, Any]]:
        """Returns all results of points."""
        found = [self._entry(path) for path in sorted((self.folder / "points").glob("*.json"))]
        return [entry for entry in found if entry is not None]

    def _entry(self, path: pathlib.Path) -> dict[str, Any] | None:
        try:
            entry = json.loads(path.read_text(encoding="utf-8"))
            identity = entry["conditions"]
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise ToolError(f"{path} is damaged: remove it, and the next run measures it again") from error
        if identity != self.identity:
            raise ToolError(f"{path} was measured under other conditions than the rest of its folder: remove it, and the next run "
                            "measures it again")
        return dict(entry)


def _identity(of_conditions: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(of_conditions, sort_keys=True).encode()).hexdigest()[:16]


def _brief(value: Any) -> str:
    return value[:12] if isinstance(value, str) and len(value) == 40 else str(value) or "none"


def _remove(folder: pathlib.Path) -> None:
    """Removes the files of an evaluation, and nothing else. Last comes the file that marks it as one."""
    for name in ("points", LAB_FOLDER):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in ("bytes.json", "cleaning.json", "guest.json", "report.json", "report.html", SETTINGS_FILE):
        (folder / name).unlink(missing_ok=True)
