"""Runs erda-ycsb on each system in turn, round after round."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from comparison import systems
from comparison.common import CompareError
from comparison.systems import Server, System
from report import charts

WORKLOADS = ("B", "C", "update")
REFUSED_TRIES = 3
RUN_SECONDS = 300  # at most
LOAD_THREADS = 16
OTHER_BYTES = 64  # of a record, beside its value
PERCENTILES = ("mean", "p50", "p90", "p99", "p999", "max")


@dataclasses.dataclass(frozen=True)
class Plan:
    build: pathlib.Path
    folder: pathlib.Path
    sizes: Sequence[int]
    clients: Sequence[int]
    depth: int
    rounds: int
    slice_seconds: float
    records: int
    most_value_bytes: int

    def records_of(self, size: int) -> int:
        """Fewer of large values, so that all systems fit into the memory at once."""
        return max(1000, min(self.records, self.most_value_bytes // size))

    def stored_bytes(self, size: int) -> int:
        """About, with keys and headers."""
        return self.records_of(size) * (size + OTHER_BYTES)


@dataclasses.dataclass(frozen=True)
class Cell:
    """One figure: it is measured once in each round."""

    system: System
    size: int
    workload: str
    clients: int
    depth: int


@dataclasses.dataclass
class Measured:
    cell: Cell
    command: list[str]
    runs: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    operations: int = 0  # of the next run
    refused: str | None = None  # why a store refused puts, if it did in a run; that run was made again, or has no figure

    def median(self, *path: str) -> float | None:
        """Over the rounds, of one number of the runs; None if this workload has none."""
        values = []
        for run in self.runs:
            found: Any = run
            for name in path:
                found = found.get(name) if found is not None else None
            if found is not None:
                values.append(found)
        return statistics.median(values) if values else None

    @property
    def ops_per_second(self) -> float | None:
        return self.median("ops_per_second")


class Progress:
    """A line on a terminal that is written over; else one line for each part."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._terminal = sys.stderr.isatty()

    def part(self, text: str) -> None:
        self.clear()
        print(text, file=sys.stderr, flush=True)

    def step(self, text: str) -> None:
        self._done += 1
        if self._terminal:
            print(f"\r\033[K[{self._done}/{self._total}] {text}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def cells_of(plan: Plan, size: int) -> tuple[list[Cell], list[Cell]]:
    """What is measured of one value size: the systems without persistence, and updates with it."""
    depths = sorted({1, plan.depth})
    main = [
        Cell(system, size, workload, clients, depth)
        for workload in WORKLOADS
        for clients in plan.clients
        for depth in depths
        for system in systems.MAIN
    ]
    durable = [
        Cell(system, size, "update", clients, depth)
        for clients in plan.clients
        for depth in depths
        for system in systems.DURABLE
    ]
    return main, durable


def measure(plan: Plan) -> tuple[list[Measured], dict[str, list[str]]]:
    """All cells, and the command of each server."""
    cells = {size: cells_of(plan, size) for size in plan.sizes}
    progress = Progress(plan.rounds * sum(len(part) for both in cells.values() for part in both))
    measured: list[Measured] = []
    commands: dict[str, list[str]] = {}
    for size in plan.sizes:
        for part, what in zip(cells[size], ("no persistence", "persistence"), strict=True):
            records = plan.records_of(size)
            progress.part(f"values of {charts.size(size)}, {what}: loading {records:,} records into each system")
            measured += _measure_part(plan, part, progress, commands)
    progress.clear()
    return measured, commands


def _measure_part(plan: Plan, cells: Sequence[Cell], progress: Progress, commands: dict[str, list[str]]) -> list[Measured]:
    size = cells[0].size
    servers: dict[str, Server] = {}
    part = plan.folder / f"{size}-{cells[0].system.name}"
    part.mkdir()
    try:
        for key in dict.fromkeys(cell.system.server for cell in cells):
            server = servers[key] = systems.start(key, plan.build, part, plan.stored_bytes(size))
            commands.setdefault(key, [word.replace(str(part), "DIR") for word in server.command])
            _load(plan, size, server)
        measured = [Measured(cell, _command(plan, cell, servers[cell.system.server])) for cell in cells]
        for number in range(plan.rounds):
            for entry in _turns(measured, number):
                _run(plan, entry, servers[entry.cell.system.server])
                cell = entry.cell
                rate = f"{charts.number(entry.runs[-1]['ops_per_second'])}/s" if entry.runs else "refused"
                progress.step(
                    f"round {number + 1}: {cell.system.title}, {charts.size(cell.size)}, {cell.workload}, "
                    f"{cell.clients} x {cell.depth}: {rate}"
                )
        if "memcached" in servers and (count := systems.evictions(servers["memcached"])):
            raise CompareError(f"memcached evicted {count} values: its figures would be those of a smaller store")
        for entry in measured:
            if entry.refused:
                entry.refused = entry.refused.replace(str(part), "DIR")
            entry.command = [word.replace(str(part), "DIR") for word in entry.command]
        return measured
    finally:
        for server in servers.values():
            server.stop()
        for file in part.rglob("*"):  # the next value size needs the room
            if file.is_file():
                file.unlink()


def _turns(measured: Sequence[Measured], number: int) -> Iterator[Measured]:
    """The systems one after the other in each place, beginning with another one in each round."""
    together: dict[tuple[Any, ...], list[Measured]] = {}
    for entry in measured:
        cell = entry.cell
        together.setdefault((cell.size, cell.workload, cell.clients, cell.depth), []).append(entry)
    for entries in together.values():
        first = number % len(entries)
        yield from entries[first:] + entries[:first]


def _ycsb(plan: Plan, size: int, address: str) -> list[str]:
    return [
        str(plan.build / "bin" / "erda-ycsb"), "--address", address, "--records", str(plan.records_of(size)),
        "--value-size", str(size), "--timeout-ms", "60000", "--quiet",
    ]


def _command(plan: Plan, cell: Cell, server: Server) -> list[str]:
    command = [*_ycsb(plan, cell.size, server.address), "--workload", cell.workload, "--no-load",
               "--threads", str(cell.clients), "--depth", str(cell.depth)]
    return [*command, "--ack", cell.system.ack] if cell.system.ack else command


def _load(plan: Plan, size: int, server: Server) -> None:
    """Puts all records. Erda's log is written through once, so that its memory is in use as in a server that has run for a
    while; the others overwrite values in place.
    """
    load = [*_ycsb(plan, size, server.address), "--threads", str(LOAD_THREADS), "--depth", "16"]
    updates = 1
    if server.address.startswith("shm:"):
        updates = systems.pool_bytes(plan.stored_bytes(size)) // (size + OTHER_BYTES)
    _execute([*load, "--workload", "update", "--operations", str(updates)], server)


class Refused(CompareError):
    """A store had no room for a put."""


def _execute(command: Sequence[str], server: Server) -> None:
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise CompareError(f"not done in {RUN_SECONDS} s: {' '.join(command)}") from error
    if result.returncode != 0:
        server.require_running()
        if "resource exhausted" in result.stderr:
            raise Refused(result.stderr.strip())
        raise CompareError(result.stderr.strip() or f"exit code {result.returncode} of {' '.join(command)}")


def _run(plan: Plan, entry: Measured, server: Server) -> None:
    """Runs long enough: the number of operations is found the first time, and kept."""
    if entry.operations == 0:
        cell = entry.cell
        # Not so few that the start and end of the threads are most of it.
        if cell.system.server == "erda":
            entry.operations = 200_000 if cell.size <= 4096 else 40_000
        else:
            entry.operations = cell.clients * cell.depth * 20
    path = plan.folder / "result.json"
    tries = 0
    for _ in range(8):
        before = server.processor_seconds()
        try:
            _execute([*entry.command, "--operations", str(entry.operations), "--json", str(path)], server)
        except Refused as error:
            entry.refused = str(error)
            tries += 1
            if tries == REFUSED_TRIES:
                return
            time.sleep(1)  # An idle shard settles what it has not yet.
            continue
        processor = server.processor_seconds() - before
        result = json.loads(path.read_text(encoding="utf-8"))
        seconds = result["run"]["seconds"]
        enough = seconds >= plan.slice_seconds * 0.5
        if not enough or not entry.runs:
            wanted = entry.operations * plan.slice_seconds / max(seconds, 1e-6)
            entry.operations = max(int(min(wanted, entry.operations * 50)), entry.cell.clients * entry.cell.depth * 4)
        if enough:
            break
    if result["not_found"] != 0:
        raise CompareError(f"{entry.cell.system.title} does not have {result['not_found']} values that were put")
    entry.runs.append(_in_microseconds(result, processor))


def _in_microseconds(result: dict[str, Any], processor: float) -> dict[str, Any]:
    run = result["run"]
    kept: dict[str, Any] = {
        "operations": result["operations"],
        "seconds": run["seconds"],
        "ops_per_second": run["ops_per_second"],
        "server_processor_us_per_op": processor * 1e6 / result["operations"],
    }
    for kind in ("get", "put"):
        if run[kind]["count"]:
            kept[kind] = {f"{name}_us": run[kind][f"{name}_ns"] / 1000 for name in PERCENTILES}
    return kept
