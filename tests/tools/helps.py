"""The programs' --help: their commands, options and values."""

import functools
import re
import subprocess

from binaries import BUILD

PROGRAMS = tuple(sorted(path.name for path in (BUILD / "bin").glob("erda-*")))

OPTION = re.compile(r"^  ((?:-\w,)?--[a-z0-9-]+)(.*)$", re.MULTILINE)
VALUES = re.compile(r"^ [A-Z]+:\{([^}]*)\}")


@functools.cache
def help_of(program: str, *command: str) -> str:
    return subprocess.run([BUILD / "bin" / program, *command, "--help"], capture_output=True, text=True, check=True).stdout


def commands(program: str) -> list[str]:
    part = help_of(program).partition("\nSubcommands:\n")[2].partition("\n\n")[0]
    return re.findall(r"^  ([a-z]+) ", part, re.MULTILINE)


def options(program: str, *command: str) -> dict[str, list[str]]:
    """Returns each option, by all of its names, with its values if they are a fixed set."""
    found = {}
    for names, rest in OPTION.findall(help_of(program, *command)):
        values = VALUES.match(rest)
        for name in names.split(","):
            found[name] = values[1].split(",") if values else []
    return found


def pages() -> list[tuple[str, ...]]:
    """Returns every program, and each of its commands: all that have a --help."""
    return [(program, *command) for program in PROGRAMS for command in [(), *((name,) for name in commands(program))]]
