"""Runs erda-micro under callgrind, and reads the counts that callgrind writes."""

from __future__ import annotations

import collections
import dataclasses
import json
import pathlib
import re
import subprocess
from collections.abc import Callable
from typing import NamedTuple

from measuring.programs import ToolError, ending_with_this

RUN_SECONDS = 600
# Long names stay whole, so that a reader needs no table of abbreviations.
VALGRIND = ("valgrind", "--tool=callgrind", "--instr-atstart=no", "--compress-strings=no", "--compress-pos=no")
# erda-micro gets no other variables: the size of the environment moves the stack. Callgrind counts a string instruction
# once for each byte that it copies. So the C library copies and fills memory by vectors, whatever the size.
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LC_ALL": "C",
    "GLIBC_TUNABLES": "glibc.cpu.x86_rep_movsb_threshold=1000000000:glibc.cpu.x86_rep_stosb_threshold=1000000000",
}
TRIGGER = re.compile(r"^desc: Trigger: Client Request: (\S+)$", re.MULTILINE)
COST = re.compile(r"[+*-]?\d")


class Function(NamedTuple):
    library: str  # Or the program: the name of the file that contains the function.
    name: str


@dataclasses.dataclass
class Dump:
    """The instructions of one work. A call costs what the called function and all functions below it cost."""

    total: int
    own: collections.Counter[Function]  # Without the functions that it calls.
    calls: collections.Counter[Function]  # The cost of all calls of it.


@dataclasses.dataclass
class Work:
    runs: int
    dump: Dump

    @property
    def instructions(self) -> float:
        return self.dump.total / self.runs

    def within(self, has_name: Callable[[str], bool]) -> float:
        """Returns the instructions of one run inside the functions with these names, which do not call each other."""
        return sum(cost for function, cost in self.dump.calls.items() if has_name(function.name)) / self.runs


@dataclasses.dataclass
class Run:
    build: str  # The compiler and the options of erda-micro.
    works: dict[str, Work]


def run(program: pathlib.Path, folder: pathlib.Path, pattern: str = ".") -> Run:
    """Counts the works whose names match the pattern. The counts of callgrind stay in the folder."""
    out = folder / "callgrind.out"
    command = [*VALGRIND, f"--callgrind-out-file={out}", str(program), "--benchmark_format=json",
               f"--benchmark_filter={pattern}"]
    try:
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                               env=ENVIRONMENT, timeout=RUN_SECONDS, preexec_fn=ending_with_this())
    except FileNotFoundError as error:
        raise ToolError("valgrind is not installed: tools/install-deps test") from error
    except subprocess.TimeoutExpired as error:
        raise ToolError(f"{program.name} did not end within {RUN_SECONDS} s") from error
    if ended.returncode != 0:
        raise ToolError(f"{program.name} ended with {ended.returncode}: {_reason(ended)}")
    return read(ended.stdout, [path.read_text(errors="replace") for path in folder.glob(f"{out.name}.*")])


def read(results: str, dumps: list[str]) -> Run:
    """Joins the results of erda-micro with the dumps of its works."""
    said = json.loads(results)
    if said["context"].get("instructions") != "callgrind":
        raise ToolError("erda-micro did not run under callgrind")
    by_work = {found[1]: text for text in dumps if (found := TRIGGER.search(text))}
    works = {}
    for result in said["benchmarks"]:
        name = result["name"].split("/")[0]  # Google Benchmark appends the number of runs.
        if name not in by_work:
            raise ToolError(f"callgrind has no count of {name}")
        works[name] = Work(result["iterations"], parse(by_work[name]))
    return Run(said["context"]["build"], works)


def parse(text: str) -> Dump:
    """Reads a dump of callgrind. After a line "calls=" the next line has the cost of the calls, and not of the
    function itself. A line "cob=" names the library of the called function, if that is not the caller's."""
    own: collections.Counter[Function] = collections.Counter()
    calls: collections.Counter[Function] = collections.Counter()
    total = None
    library = function = called_library = called = ""
    is_call = False
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key == "ob":
            library = called_library = pathlib.PurePath(value).name
        elif key == "fn":
            function = value
        elif key == "cob":
            called_library = pathlib.PurePath(value).name
        elif key == "cfn":
            called = value
        elif key == "calls":
            is_call = True
        elif COST.match(line):
            cost = int(line.split()[1])
            if is_call:
                calls[Function(called_library, called)] += cost
            else:
                own[Function(library, function)] += cost
            is_call, called_library = False, library
        elif line.startswith("totals:"):
            total = int(line.split()[1])
    if total is None or total != own.total():
        raise ToolError("a count of callgrind is not complete")
    return Dump(total, own, calls)


def _reason(ended: subprocess.CompletedProcess[str]) -> str:
    failed = [line for line in ended.stdout.splitlines() if "error_message" in line]
    lines = failed or [line for line in ended.stderr.splitlines() if line.strip()] or ["it said nothing"]
    return lines[0].strip() if failed else lines[-1].strip()
