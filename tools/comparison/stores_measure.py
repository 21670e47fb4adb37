"""Runs erda-ycsb on each store in turn, round after round, in one process or in several at once."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
import statistics
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any

from comparison import stores
from comparison.measure import LOAD_THREADS, OTHER_BYTES
from comparison.stores import FileStore, Opened
from measuring import ycsb
from measuring.programs import RUN_SECONDS, ToolError, ending_with_this, execute, shown
from measuring.progress import Progress
from report import charts

KINDS = ("get", "put", "rmw")
PERCENTILES = ("p50", "p90", "p99", "p999", "max")
MAIN_KIND = {"A": "get", "B": "get", "C": "get", "D": "get", "F": "rmw", "rmw": "rmw", "update": "put", "readers": "get",
             "beside": "put"}
MIXES = ("rmw", "C", "A", "B", "D", "F")
READERS = 2  # Beside one writer.
RATE_MAX = 6_000_000  # More operations of one client in a second than any store does.
WARM_UP_BYTES = 64 << 20
WARM_UP_MAX = 30_000
SYNCED_RECORDS = 1000


PARTS = {
    "mixes": "one client, by workload",
    "puts": "one client, puts alone",
    "clients": "several clients",
    "readers": f"one writer beside {READERS} readers",
    "load": "a load of new keys, one by one",
    "synced": "updates that survive a power cut",
}


def stores_of(part: str) -> tuple[FileStore, ...]:
    return {"readers": stores.BESIDE, "synced": stores.SYNCED}.get(part, stores.MAIN)


@dataclasses.dataclass(frozen=True)
class Plan:
    build: pathlib.Path
    folder: pathlib.Path  # The folder for temporary folders.
    parts: Sequence[str]
    sizes: dict[str, Sequence[int]]  # Of each part.
    stores: Sequence[FileStore]
    workloads: Sequence[str]  # Of the part "mixes".
    clients: Sequence[int]  # Of the part "clients".
    rounds: int
    seconds: float
    records: int
    most_value_bytes: int

    def stores_of(self, part: str) -> list[FileStore]:
        return [store for store in stores_of(part) if store in self.stores]

    def records_of(self, size: int, part: str) -> int:
        """Returns a smaller number for large values, so that all stores fit into the memory at once."""
        most = min(SYNCED_RECORDS, self.records // 10) if part == "synced" else self.records
        return max(min(100, most), min(most, self.most_value_bytes // size))

    def stored_bytes(self, size: int, part: str) -> int:
        """Returns an estimate, with keys and headers."""
        return self.records_of(size, part) * (size + OTHER_BYTES)


@dataclasses.dataclass(frozen=True)
class Cell:
    """One figure, which each round measures once."""

    part: str
    store: FileStore
    size: int
    workload: str  # Also "load"; "readers", which only get; "beside", where one more client updates meanwhile.
    clients: int


@dataclasses.dataclass
class Measured:
    cell: Cell
    command: str
    runs: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    def median(self, name: str) -> float:
        """Returns the median over the rounds of one number of the runs."""
        return statistics.median(run[name] for run in self.runs)


def cells_of(plan: Plan, part: str, size: int) -> list[Cell]:
    points: dict[str, Iterable[tuple[str, int]]] = {
        "mixes": [(workload, 1) for workload in plan.workloads],
        "puts": [("update", 1)],
        "clients": [(workload, clients) for workload in ("rmw", "C") for clients in plan.clients],
        "readers": [("readers", READERS), ("beside", READERS + 1)],
        "load": [("load", 1)],
        "synced": [("update", 1)],
    }
    return [Cell(part, store, size, workload, clients) for workload, clients in points[part] for store in plan.stores_of(part)]


def measure(plan: Plan) -> tuple[list[Measured], dict[str, str]]:
    """Measures all cells. Returns them, and the command of each server."""
    places = [(part, size) for part in plan.parts for size in plan.sizes[part]]
    progress = Progress(plan.rounds * sum(len(cells_of(plan, part, size)) for part, size in places))
    measured: list[Measured] = []
    commands: dict[str, str] = {}
    for part, size in places:
        progress.part(f"{PARTS[part]}, values of {charts.size(size)}, {plan.records_of(size, part):,} records")
        measured += (_measure_loads if part == "load" else _measure_place)(plan, part, size, progress, commands)
    progress.clear()
    return measured, commands


def _measure_place(plan: Plan, part: str, size: int, progress: Progress, commands: dict[str, str]) -> list[Measured]:
    with tempfile.TemporaryDirectory(prefix="erda-compare.", dir=plan.folder) as name, contextlib.ExitStack() as stack:
        folder = pathlib.Path(name)
        opened: dict[FileStore, Opened] = {}
        for store in plan.stores_of(part):
            opened[store] = _open(plan, part, size, store, folder, stack, commands)
            _load_and_age(plan, part, size, opened[store])
        # D inserts records, so that each of its runs has more than the one before.
        records = dict.fromkeys(opened, plan.records_of(size, part))
        measured = [Measured(cell, "") for cell in cells_of(plan, part, size)]
        for number in range(plan.rounds):
            for entry in _turns(measured, number):
                cell = entry.cell
                one = opened[cell.store]
                has = records[cell.store] if cell.workload == "D" else plan.records_of(size, part)
                clients = _clients(plan, cell, one.address, has, entry.runs[-1]["ops_per_second"] if entry.runs else None)
                if not entry.command:
                    entry.command = "; ".join(shown(command, plan.build, folder) for command in dict.fromkeys(map(tuple, clients)))
                results = run_together(clients, folder, one)
                if cell.workload == "D":
                    records[cell.store] = results[0]["records_after"]
                entry.runs.append(summary(results))
                _tell(progress, number, entry)
    return measured


def _measure_loads(plan: Plan, part: str, size: int, progress: Progress, commands: dict[str, str]) -> list[Measured]:
    """Each round loads new stores."""
    measured = [Measured(cell, "") for cell in cells_of(plan, part, size)]
    for number in range(plan.rounds):
        for entry in _turns(measured, number):
            with tempfile.TemporaryDirectory(prefix="erda-compare.", dir=plan.folder) as name, contextlib.ExitStack() as stack:
                folder = pathlib.Path(name)
                one = _open(plan, part, size, entry.cell.store, folder, stack, commands)
                records = plan.records_of(size, part)
                path = folder / "result.json"
                command = [*ycsb.command(plan.build, one.address, records, size), "--load-only", "--load-depth", "1"]
                entry.command = shown(command, plan.build, folder)
                execute([*command, "--json", str(path)], one.server)
                load = json.loads(path.read_text(encoding="utf-8"))["load"]
                entry.runs.append({"ops_per_second": load["ops_per_second"], "mean_us": 1e6 / load["ops_per_second"]})
            _tell(progress, number, entry)
    return measured


def _tell(progress: Progress, number: int, entry: Measured) -> None:
    cell = entry.cell
    progress.step(f"round {number + 1}: {cell.store.title}, {charts.size(cell.size)}, {cell.workload}, {cell.clients}: "
                  f"{charts.number(entry.runs[-1]['ops_per_second'])}/s")


def _turns(measured: Sequence[Measured], number: int) -> Iterable[Measured]:
    """Yields the stores one after the other in each place, beginning with another one in each round."""
    together: dict[tuple[str, int], list[Measured]] = {}
    for entry in measured:
        together.setdefault((entry.cell.workload, entry.cell.clients), []).append(entry)
    for entries in together.values():
        first = number % len(entries)
        yield from entries[first:] + entries[:first]


def _open(
    plan: Plan, part: str, size: int, store: FileStore, folder: pathlib.Path, stack: contextlib.ExitStack, commands: dict[str, str]
) -> Opened:
    one = Opened(store, plan.build, folder, plan.stored_bytes(size, part))
    stack.callback(one.stop)
    if one.server:
        commands.setdefault(store.name, shown(one.server.command, plan.build, folder))
    return one


def _load_and_age(plan: Plan, part: str, size: int, one: Opened) -> None:
    records = plan.records_of(size, part)
    updates = stores.updates_to_age(one.store, records, size, plan.stored_bytes(size, part), OTHER_BYTES)
    threads = LOAD_THREADS if one.server else 1
    execute([*ycsb.command(plan.build, one.address, records, size), "--threads", str(threads), "--depth", "16", "--workload",
             "update", "--operations", str(updates)], one.server)


def _clients(plan: Plan, cell: Cell, address: str, records: int, rate: float | None) -> list[list[str]]:
    """Returns a command for each process: one for each client, or one with a thread for each. `rate` is that of the round
    before. The number of operations only limits how many are drawn before the run."""
    most = int(RATE_MAX * plan.seconds)
    if rate:
        # Beside a writer all readers must run to the end of the time. Each may do nearly all of the operations.
        share = 1 if cell.workload in ("readers", "beside") else cell.clients
        most = min(most, int(4 * rate / share * plan.seconds) + 1000)
    if cell.workload == "D":
        most = min(most, 2 * records)  # Of which a twentieth are new records.
    warm_up = max(20, min(WARM_UP_MAX, WARM_UP_BYTES // cell.size, records))
    command = [*ycsb.command(plan.build, address, records, cell.size), "--no-load", "--warm-up", str(warm_up), "--operations",
               str(most), "--seconds", f"{plan.seconds:g}", "--hold"]
    if cell.store.processes:
        writers = 1 if cell.workload == "beside" else 0
        workload = "C" if cell.workload in ("readers", "beside") else cell.workload
        # Clients that use different seeds do not follow each other from key to key.
        return [[*command, "--workload", "update" if client < writers else workload, "--seed", str(client + 1)]
                for client in range(cell.clients)]
    command[command.index("--operations") + 1] = str(most * cell.clients)
    threads = ["--threads", str(cell.clients)]
    if cell.workload == "beside":
        return [[*command, *threads, "--writers", "1"]]
    return [[*command, *threads, "--workload", "C" if cell.workload == "readers" else cell.workload]]


def run_together(commands: Sequence[Sequence[str]], folder: pathlib.Path, one: Opened) -> list[dict[str, Any]]:
    """Starts all commands, and lets their runs begin at once. Returns their results."""
    paths = [folder / f"result{number}.json" for number in range(len(commands))]
    with contextlib.ExitStack() as stack:
        processes = []
        for command, path in zip(commands, paths, strict=True):
            process = subprocess.Popen(
                [*command, "--json", str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                preexec_fn=ending_with_this(),
            )
            stack.callback(_end, process)
            processes.append(process)
        for process in processes:
            if process.stdout.readline() != "ready\n":  # type: ignore[union-attr]
                raise _failed(process, one)
        for process in processes:
            process.stdin.write("go\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
        for process in processes:
            try:
                process.wait(RUN_SECONDS)
            except subprocess.TimeoutExpired as error:
                raise ToolError(f"this command did not end in {RUN_SECONDS} s: {' '.join(map(str, process.args))}") from error  # type: ignore[arg-type]
            if process.returncode != 0:
                raise _failed(process, one)
    results = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    if missing := sum(result["not_found"] for result in results):
        raise ToolError(f"{one.address} does not have {missing} values that were put")
    return results


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.kill()
    process.communicate()


def _failed(process: subprocess.Popen[str], one: Opened) -> ToolError:
    if one.server:
        one.server.require_running()
    _, said = process.communicate()
    return ToolError(said.strip().split("\n")[-1] or f"exit code {process.returncode} of {' '.join(map(str, process.args))}")  # type: ignore[arg-type]


def summary(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns the numbers of clients that ran at once. A mean is over all operations. A percentile is the median of the
    processes'. mean_us is the time of an operation in the store: of its get, its put, or both."""
    runs = [result["run"] for result in results]
    operations = sum(run["operations"] for run in runs)
    in_store = sum(run[kind]["count"] * run[kind]["mean_ns"] for run in runs for kind in ("get", "put"))
    kept: dict[str, Any] = {
        "operations": operations,
        "ops_per_second": sum(run["ops_per_second"] for run in runs),
        "mean_us": in_store / operations / 1000,
    }
    for kind in KINDS:
        having = [run for run in runs if run.get(kind, {"count": 0})["count"]]
        if not having:
            continue
        count = sum(run[kind]["count"] for run in having)
        kept[f"{kind}_per_second"] = sum(run[kind]["count"] / run["seconds"] for run in having)
        kept[f"{kind}_mean_us"] = sum(run[kind]["count"] * run[kind]["mean_ns"] for run in having) / count / 1000
        for name in PERCENTILES:
            kept[f"{kind}_{name}_us"] = statistics.median(run[kind][f"{name}_ns"] for run in having) / 1000
    return kept
