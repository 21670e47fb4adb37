"""Measures puts that survive a power cut: the stores in turn on one disk, and beside them the disk itself."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from comparison import stores, systems
from comparison.measure import LOAD_THREADS, OTHER_BYTES, PERCENTILES
from comparison.stores import FileStore, Opened
from measuring import ycsb
from measuring.programs import execute, shown
from measuring.progress import Progress
from report import charts

LOAD_DEPTH = 256  # A library writes this number of records with one sync.
FIRST_RATE = 200_000  # More puts in a second than any store does with few in flight.


@dataclasses.dataclass(frozen=True)
class Plan:
    build: pathlib.Path
    folder: pathlib.Path  # The folder for the temporary folder, on the disk.
    stores: Sequence[FileStore]
    size: int
    clients: Sequence[int]  # Threads, each with a client.
    depths: Sequence[int]  # Puts in flight of each client.
    rounds: int
    seconds: float
    records: int

    @property
    def stored_bytes(self) -> int:
        """Returns an estimate, with keys and headers."""
        return self.records * (self.size + OTHER_BYTES)


@dataclasses.dataclass(frozen=True)
class Cell:
    """One figure, which each round measures once."""

    store: FileStore
    clients: int
    depth: int


@dataclasses.dataclass
class Measured:
    cell: Cell
    command: str = ""
    runs: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    def median(self, name: str) -> float:
        """Returns the median over the rounds of one number of the runs."""
        return statistics.median(run[name] for run in self.runs)


@dataclasses.dataclass
class Disk:
    """The disk without a store: what erda-bench says of it in each round."""

    rounds: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    def median(self, kind: str, name: str) -> float:
        """Returns the median over the rounds. `kind` is flushed, durable or sequential."""
        return statistics.median(each[kind][name] for each in self.rounds)

    @property
    def bytes_per_second(self) -> float:
        return statistics.median(each["bytes_per_second"] for each in self.rounds)


def cells_of(plan: Plan) -> list[Cell]:
    return [Cell(store, clients, depth) for clients in plan.clients for depth in plan.depths for store in plan.stores]


def measure(plan: Plan) -> tuple[list[Measured], Disk, dict[str, str]]:
    """Measures all cells. Returns them, the disk, and the command of each server."""
    measured = [Measured(cell) for cell in cells_of(plan)]
    disk = Disk()
    commands: dict[str, str] = {}
    progress = Progress(plan.rounds * (len(measured) + 1))
    with tempfile.TemporaryDirectory(prefix="erda-compare.", dir=plan.folder) as name, contextlib.ExitStack() as stack:
        folder = pathlib.Path(name)
        progress.part(f"values of {charts.size(plan.size)}: loading {plan.records:,} records into each store")
        opened = {store: _open(plan, store, folder, stack, commands) for store in plan.stores}
        for number in range(plan.rounds):
            disk.rounds.append(_measure_disk(plan, folder))
            progress.step(f"round {number + 1}: the disk")
            for entry in _turns(measured, number):
                _run(plan, entry, opened[entry.cell.store], folder)
                progress.step(f"round {number + 1}: {entry.cell.store.title}, {entry.cell.clients} x {entry.cell.depth}: "
                              f"{charts.number(entry.runs[-1]['ops_per_second'])}/s")
    progress.clear()
    return measured, disk, commands


def _open(plan: Plan, store: FileStore, folder: pathlib.Path, stack: contextlib.ExitStack, commands: dict[str, str]) -> Opened:
    """Opens a store, loads its records, and replaces them. Erda's log is written through once."""
    one = Opened(store, plan.build, folder, plan.stored_bytes)
    stack.callback(one.stop)
    if one.server:
        commands[store.name] = shown(one.server.command, plan.build, folder)
        if store is stores.REDIS_ALWAYS:
            systems.require_always(one.server)
    command = ycsb.command(plan.build, one.address, plan.records, plan.size)
    execute([*command, "--load-only", "--load-depth", str(LOAD_DEPTH)], one.server)
    updates = stores.updates_to_age(store, plan.records, plan.size, plan.stored_bytes, OTHER_BYTES)
    execute([*command, "--no-load", "--workload", "update", "--threads", str(LOAD_THREADS if one.server else 1), "--depth",
             str(LOAD_DEPTH), "--operations", str(updates)], one.server)
    return one


def _measure_disk(plan: Plan, folder: pathlib.Path) -> dict[str, Any]:
    path = folder / "disk.json"
    execute([str(plan.build / "bin" / "erda-bench"), "journal", "--folder", str(folder), "--disk-only", "--rounds", "1",
             "--milliseconds", str(max(1, int(plan.seconds * 1000))), "--json", str(path)])
    disk: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["disk"]
    return disk


def _turns(measured: Sequence[Measured], number: int) -> Iterator[Measured]:
    """Yields the stores one after the other in each place, beginning with another one in each round."""
    together: dict[tuple[int, int], list[Measured]] = {}
    for entry in measured:
        together.setdefault((entry.cell.clients, entry.cell.depth), []).append(entry)
    for entries in together.values():
        first = number % len(entries)
        yield from entries[first:] + entries[:first]


def command_of(plan: Plan, cell: Cell, address: str, rate: float) -> list[str]:
    """Returns the command of one run. `rate` is that of the round before: the number of operations only limits how many
    are drawn before the run."""
    in_flight = cell.clients * cell.depth
    return [*ycsb.command(plan.build, address, plan.records, plan.size), "--no-load", "--workload", "update", "--threads",
            str(cell.clients), "--depth", str(cell.depth), "--warm-up", str(2 * in_flight), "--operations",
            str(int(4 * rate * plan.seconds) + 1000), "--seconds", f"{plan.seconds:g}"]


def _run(plan: Plan, entry: Measured, one: Opened, folder: pathlib.Path) -> None:
    path = folder / "result.json"
    command = command_of(plan, entry.cell, one.address, entry.runs[-1]["ops_per_second"] if entry.runs else FIRST_RATE)
    entry.command = entry.command or shown(command, plan.build, folder)
    execute([*command, "--json", str(path)], one.server)
    run = json.loads(path.read_text(encoding="utf-8"))["run"]
    entry.runs.append({"operations": run["operations"], "ops_per_second": run["ops_per_second"],
                       **{f"{name}_us": run["put"][f"{name}_ns"] / 1000 for name in PERCENTILES}})
