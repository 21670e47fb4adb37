"""Runs erda-ycsb on each system in turn, round after round."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import operator
import pathlib
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from comparison import systems
from comparison.systems import System
from measuring import ycsb
from measuring.programs import Server, ToolError, execute, shown
from measuring.progress import Progress
from report import charts

WORKLOADS = ("B", "C", "update")
LOAD_THREADS = 16
OTHER_BYTES = 64  # Bytes of a record beside its value.
PERCENTILES = ("mean", "p50", "p90", "p99", "p999", "max")


@dataclasses.dataclass(frozen=True)
class Plan:
    build: pathlib.Path
    folder: pathlib.Path  # The folder for temporary folders.
    sizes: Sequence[int]
    clients: Sequence[int]
    depth: int
    rounds: int
    slice_seconds: float
    records: int
    most_value_bytes: int

    @property
    def depths(self) -> tuple[int, int]:
        """For latency, and for throughput."""
        return 1, self.depth

    def records_of(self, size: int) -> int:
        """Returns a smaller number for large values, so that all systems fit into the memory at once."""
        return max(1000, min(self.records, self.most_value_bytes // size))

    def stored_bytes(self, size: int) -> int:
        """Returns an estimate, with keys and headers."""
        return self.records_of(size) * (size + OTHER_BYTES)


@dataclasses.dataclass(frozen=True)
class Cell:
    """One figure, which each round measures once."""

    system: System
    size: int
    workload: str
    clients: int
    depth: int


@dataclasses.dataclass
class Measured:
    cell: Cell
    command: str
    runs: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    def median(self, *path: str) -> float:
        """Returns the median over the rounds of one number of the runs."""
        return statistics.median(functools.reduce(operator.getitem, path, run) for run in self.runs)

    @property
    def ops_per_second(self) -> float:
        return self.median("ops_per_second")


def cells_of(plan: Plan, size: int) -> tuple[list[Cell], list[Cell]]:
    """Returns the measurements of one value size: all systems without persistence, and updates with it."""
    main = [
        Cell(system, size, workload, clients, depth)
        for workload in WORKLOADS
        for clients in plan.clients
        for depth in plan.depths
        for system in systems.MAIN
    ]
    durable = [
        Cell(system, size, "update", clients, depth)
        for clients in plan.clients
        for depth in plan.depths
        for system in systems.DURABLE
    ]
    return main, durable


def measure(plan: Plan) -> tuple[list[Measured], dict[str, str]]:
    """Measures all cells. Returns them, and the command of each server."""
    cells = {size: cells_of(plan, size) for size in plan.sizes}
    progress = Progress(plan.rounds * sum(len(part) for both in cells.values() for part in both))
    measured: list[Measured] = []
    commands: dict[str, str] = {}
    for size in plan.sizes:
        for part, what in zip(cells[size], ("no persistence", "persistence"), strict=True):
            records = plan.records_of(size)
            progress.part(f"values of {charts.size(size)}, {what}: loading {records:,} records into each system")
            measured += _measure_part(plan, part, progress, commands)
    progress.clear()
    return measured, commands


def _measure_part(plan: Plan, cells: Sequence[Cell], progress: Progress, commands: dict[str, str]) -> list[Measured]:
    size = cells[0].size
    servers: dict[str, Server] = {}
    with tempfile.TemporaryDirectory(prefix="erda-compare.", dir=plan.folder) as name, contextlib.ExitStack() as stack:
        folder = pathlib.Path(name)
        for key in dict.fromkeys(cell.system.server for cell in cells):
            server = servers[key] = systems.start(key, plan.build, folder, plan.stored_bytes(size))
            stack.callback(server.stop)
            commands.setdefault(key, shown(server.command, plan.build, folder))
            _load(plan, size, server)
        measured = [Measured(cell, shown(_command(plan, cell, servers[cell.system.server]), plan.build, folder)) for cell in cells]
        for number in range(plan.rounds):
            for entry in _turns(measured, number):
                cell = entry.cell
                _run(plan, entry, servers[cell.system.server], folder)
                progress.step(
                    f"round {number + 1}: {cell.system.title}, {charts.size(cell.size)}, {cell.workload}, "
                    f"{cell.clients} x {cell.depth}: {charts.number(entry.runs[-1]['ops_per_second'])}/s"
                )
        if "memcached" in servers and (count := systems.evictions(servers["memcached"])):
            raise ToolError(f"memcached evicted {count} values, so its figures would be those of a smaller store; give fewer --records")
    return measured


def _turns(measured: Sequence[Measured], number: int) -> Iterator[Measured]:
    """Yields the systems one after the other in each place, beginning with another one in each round."""
    together: dict[tuple[Any, ...], list[Measured]] = {}
    for entry in measured:
        cell = entry.cell
        together.setdefault((cell.size, cell.workload, cell.clients, cell.depth), []).append(entry)
    for entries in together.values():
        first = number % len(entries)
        yield from entries[first:] + entries[:first]


def _ycsb(plan: Plan, size: int, server: Server, *more: str) -> list[str]:
    return ycsb.command(plan.build, server.address, plan.records_of(size), size, *more)


def _command(plan: Plan, cell: Cell, server: Server) -> list[str]:
    command = _ycsb(plan, cell.size, server, "--workload", cell.workload, "--no-load", "--threads", str(cell.clients),
                    "--depth", str(cell.depth), "--server-pid", str(server.pid))
    return [*command, "--ack", cell.system.ack] if cell.system.ack else command


def _load(plan: Plan, size: int, server: Server) -> None:
    """Puts all records. Writes Erda's log through once, so that its memory is in use as in a server that has run for
    some time. The other systems overwrite values in place.
    """
    updates = 1
    if server.address.startswith("shm:"):
        updates = systems.pool_bytes(plan.stored_bytes(size)) // (size + OTHER_BYTES)
    execute(_ycsb(plan, size, server, "--threads", str(LOAD_THREADS), "--depth", "16", "--workload", "update", "--operations",
                  str(updates)), server)


def _run(plan: Plan, entry: Measured, server: Server, folder: pathlib.Path) -> None:
    cell = entry.cell
    rate = entry.runs[-1]["ops_per_second"] if entry.runs else None
    result = ycsb.measured(
        _command(plan, cell, server), server, cell.clients * cell.depth, plan.slice_seconds, rate, folder / "result.json"
    )
    entry.runs.append(_in_microseconds(result))


def _in_microseconds(result: dict[str, Any]) -> dict[str, Any]:
    run = result["run"]
    kept: dict[str, Any] = {
        "operations": result["operations"],
        "seconds": run["seconds"],
        "ops_per_second": run["ops_per_second"],
        "server_processor_us_per_op": run["server_cpu_seconds"] * 1e6 / result["operations"],
    }
    for kind in ("get", "put"):
        if run[kind]["count"]:
            kept[kind] = {f"{name}_us": run[kind][f"{name}_ns"] / 1000 for name in PERCENTILES}
    return kept
