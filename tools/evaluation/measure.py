"""Starts the servers, loads them, and runs erda-ycsb on them in turn; then erda-bench."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from evaluation import servers
from evaluation.common import ERDA, SCHEMES, Scheme
from evaluation.plan import Plan, Point, Run
from evaluation.servers import Place
from evaluation.store import LAB_FOLDER, Store
from measuring import ycsb
from measuring.programs import ROOT, Server, ToolError, ending_with_this, execute, shown
from measuring.progress import Progress
from report import charts

BENCH_SECONDS = 1200
LAB_SECONDS = 4 * 3600
LAB_NVDIMM = "512M"
# A size that an emulated processor fills and cleans in reasonable time (docs/benchmarks/method.md).
LAB_CLEANING_NVDIMM = "144M"
LAB_CLEANING = ("--rate", "1000", "--times", "1")
LAB_CLEANING_ROUNDS = {True: "2", False: "6"}  # By --quick.
LOAD_DEPTH = 16
FILL_VALUE = 15_000  # The size of the values that the log is written through with.
FILL_RECORDS = 500


def measure_points(plan: Plan, store: Store, place: Place) -> None:
    """Runs all that the store does not have."""
    missing = store.missing(plan.runs())
    if not missing:
        return
    progress = Progress(len(missing))
    rates: dict[tuple[Point, str], float] = {}  # Operations per second, of earlier runs.
    for entry in store.points():
        point = Point(entry["purpose"], entry["workload"], entry["value_size"], entry["threads"])
        rates[(point, entry["scheme"])] = entry["result"]["run"]["ops_per_second"]
    for runs in sessions(missing, place.one_at_a_time):
        _measure_session(plan, store, place, runs, rates, progress)
    progress.clear()


def sessions(runs: Sequence[Run], one_at_a_time: bool) -> Iterator[list[Run]]:
    """Yields the runs on servers that are started and loaded once. They have one value size. If all three servers have
    a pool at once, the runs of all rounds are together. On one device a round has a session for each scheme in turn.
    """

    def servers_of(run: Run) -> tuple[Any, ...]:
        return (run.point.value_size, run.point.server_sleeps)

    order = list(dict.fromkeys(servers_of(run) for run in runs))
    for key in order:
        group = [run for run in runs if servers_of(run) == key]
        if not one_at_a_time:
            yield group
            continue
        for _, of_round in itertools.groupby(group, key=lambda run: run.round):
            together = list(of_round)
            first = together[0].round % len(SCHEMES)
            for scheme in (*SCHEMES[first:], *SCHEMES[:first]):
                if part := [run for run in together if run.scheme is scheme]:
                    yield part


def _measure_session(
    plan: Plan, store: Store, place: Place, runs: Sequence[Run], rates: dict[tuple[Point, str], float], progress: Progress
) -> None:
    point = runs[0].point
    schemes = [scheme for scheme in SCHEMES if any(run.scheme is scheme for run in runs)]
    titles = ", ".join(scheme.title for scheme in schemes)
    asleep = ", servers that sleep when idle" if point.server_sleeps else ""
    if not place.device:
        servers.require_memory(plan.settings, point.value_size)
    progress.part(f"values of {charts.size(point.value_size)}{asleep}: starting and loading {titles}")
    with contextlib.ExitStack() as stack:
        started: dict[Scheme, Server] = {}
        for scheme in schemes:
            server = servers.start(place, scheme, plan.settings, point.value_size, point.server_sleeps)
            stack.callback(server.stop)
            started[scheme] = server
            _load(plan, place, scheme, server, point.value_size)
        for run in runs:
            entry = _run(plan, place, run, started[run.scheme], rates)
            store.put_run(run, entry)
            rate = entry["result"]["run"]["ops_per_second"]
            rates[(run.point, run.scheme.name)] = rate
            progress.step(
                f"round {run.round}: {run.scheme.title}, {charts.size(run.point.value_size)}, {run.point.workload}, "
                f"{run.point.threads} thread{'' if run.point.threads == 1 else 's'}: {charts.number(rate)}/s"
            )


def _ycsb(place: Place, scheme: Scheme, server: Server, value_size: int, records: int) -> list[str]:
    return ycsb.command(place.build, server.address, records, value_size, "--scheme", scheme.name)


def _load(plan: Plan, place: Place, scheme: Scheme, server: Server, value_size: int) -> None:
    """Puts all records. Before that, writes a log in this machine's memory through, since the kernel makes each page of
    it at the first write. NVM exists already, and so does the memory of a server that has run for some time.
    """
    if scheme is ERDA and not place.device:
        updates = servers.pool_bytes(scheme, plan.settings, value_size) // FILL_VALUE
        fill = _ycsb(place, scheme, server, FILL_VALUE, min(FILL_RECORDS, plan.settings.records))
        execute([*fill, "--workload", "update", "--operations", str(updates), "--depth", str(LOAD_DEPTH)], server)
    load = _ycsb(place, scheme, server, value_size, plan.settings.records)
    execute([*load, "--workload", "C", "--operations", "1", "--depth", str(LOAD_DEPTH)], server)
    # Not counted: the first operations of a server, which an emulated processor must first translate.
    execute([*load, "--workload", "A", "--no-load", "--operations", str(max(plan.settings.records // 5, 100))], server)


def _run(plan: Plan, place: Place, run: Run, server: Server, rates: dict[tuple[Point, str], float]) -> dict[str, Any]:
    """Runs as long as the plan says. The number of operations follows from the time of an earlier run, or is searched
    for."""
    point = run.point
    if run.scheme is ERDA and point.workload != "C":
        # The puts of a run find a log with room: the cost of cleaning has a separate figure.
        execute([str(place.build / "bin" / "erda-cli"), "--address", server.address, "--timeout-ms", "60000", "clean"], server)
    command = [
        *servers.on_processors(point.threads),
        *_ycsb(place, run.scheme, server, point.value_size, plan.settings.records), "--workload", point.workload,
        "--no-load", "--threads", str(point.threads), "--depth", str(plan.settings.depth), "--server-pid", str(server.pid),
    ]
    rate = rates.get((point, run.scheme.name)) or _nearest(rates, run)
    with tempfile.TemporaryDirectory(dir=place.folder) as folder:
        path = pathlib.Path(folder) / "result.json"
        result = ycsb.measured(command, server, point.threads * plan.settings.depth, plan.settings.seconds, rate, path)
    words = [*command, "--operations", str(result["operations"])]
    return {"result": result, "command": shown(words, place.build, place.folder),
            "server_command": shown(server.command, place.build, place.folder)}


def _nearest(rates: dict[tuple[Point, str], float], run: Run) -> float | None:
    """Returns the rate of the scheme in this workload at another point."""
    found = [rate for (point, name), rate in rates.items() if name == run.scheme.name and point.workload == run.point.workload]
    return found[-1] if found else None


# erda-bench.


def count_bytes(store: Store, build: pathlib.Path) -> None:
    """Counts table 1 over shm. The counts are the same on each fabric."""
    _bench(store, "bytes", [str(build / "bin" / "erda-bench"), "bytes"], build)


def measure_cleaning(store: Store, build: pathlib.Path, quick: bool) -> None:
    """Measures figure 26, on this machine."""
    _bench(store, "cleaning", [str(build / "bin" / "erda-bench"), "cleaning", *(["--quick"] if quick else [])], build)


def _bench(store: Store, name: str, command: Sequence[str], build: pathlib.Path) -> None:
    with tempfile.TemporaryDirectory(prefix="erda-paper.") as name_of_folder:
        folder = pathlib.Path(name_of_folder)
        path = folder / "result.json"
        # Temporary files of the program go with the folder, however it ends.
        execute([*command, "--json", str(path)], seconds=BENCH_SECONDS, environment={"TMPDIR": str(folder)})
        result = json.loads(path.read_text(encoding="utf-8"))
        store.put(name, {"result": result, "command": shown(command, build, folder)})


# The lab.


def place_in_lab(build: pathlib.Path, folder: pathlib.Path) -> Place:
    """Returns the place of a process inside of the guest."""
    try:
        host, device, size = (os.environ[f"ERDA_LAB_{name}"] for name in ("SERVER", "DAX", "DAX_SIZE"))
    except KeyError as error:
        raise ToolError("this part runs only in the guest of the lab: see --lab") from error
    return Place(build, folder, host, pathlib.Path(device), int(size))


def run_in_lab(arguments: Sequence[str], folder: pathlib.Path) -> None:
    """Runs this tool in the guest. Its results get into the folder."""
    tool = ["python3", str(ROOT / "tools" / "paper"), "--in-guest", *arguments]
    in_lab(["--timeout", str(LAB_SECONDS), "--nvdimm", LAB_NVDIMM, "--out", str(folder), "--env", "PYTHONDONTWRITEBYTECODE=1"], tool)


def measure_cleaning_in_lab(store: Store, build: pathlib.Path, quick: bool) -> None:
    folder = store.folder / LAB_FOLDER
    folder.mkdir(exist_ok=True)
    try:
        command = [
            str(build / "bin" / "erda-bench"), "cleaning", "--fabric", "verbs", "--address", f"verbs://10.9.0.1:{servers.START_PORT}",
            "--pool", "/dev/dax0.0", *LAB_CLEANING, "--rounds", LAB_CLEANING_ROUNDS[quick],
        ]
        options = ["--timeout", str(BENCH_SECONDS), "--nvdimm", LAB_CLEANING_NVDIMM, "--out", str(folder)]
        in_lab(options, [*command, "--json", str(folder / "cleaning.json")], output=subprocess.DEVNULL)
        result = json.loads((folder / "cleaning.json").read_text(encoding="utf-8"))
        text = f"tools/rdma-lab run --nvdimm {LAB_CLEANING_NVDIMM} -- {shown(command, build, folder)}"
        store.put("cleaning", {"result": result, "command": text})
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def in_lab(options: Sequence[str], command: Sequence[str], output: int | None = None) -> None:
    lab = subprocess.Popen(
        [str(ROOT / "tools" / "rdma-lab"), "run", *options, "--", *command], cwd=ROOT, stdout=output,
        preexec_fn=ending_with_this(signal.SIGTERM),
    )
    try:
        code = lab.wait()
    except BaseException:
        lab.terminate()
        lab.wait()
        raise
    if code != 0:
        raise ToolError(f"the command in the lab ended with exit code {code}")


def step(text: str) -> None:
    print(text, file=sys.stderr, flush=True)

