"""The four remote paths of the paper on persistent memory regions (PMRAccess), and its figures beside the measured ones.

See docs/benchmarks/pmr.md.
"""

from __future__ import annotations

import json
import pathlib
import shlex
import tempfile
from typing import Any

from evaluation.measure import in_lab, step
from evaluation.store import write_json
from measuring.programs import ROOT, ToolError, execute, shown
from report import charts
from report import machine as machines
from report.charts import Axis, Series
from report.page import Card, Column, Page

RESULTS = "pmr.json"
SECONDS = 1200
PATHS = ("SSDSync", "PMRSync", "PMEMDirect", "PMRDirect")
QUICK = ("--ops", "60", "--rounds", "2", "--milliseconds", "60")
LAB = ("--nvdimm", "16M", "--pmr", "8M", "--disk", "128M")
IN_LAB = ("--clients", "2", "--flush", "server", "--folder", "/mnt/disk", "--nvm", "/dev/dax0.0",
          "--region", "pmr:/sys/bus/pci/devices/0000:00:1e.0/resource4_wc")
VERBS = ("--fabric", "verbs", "--address", "verbs://10.9.0.1:7700")
NOTHING = "–"

# The paper's text has these (section V-B): latency in microseconds, and throughput in MB/s of the clients that it needs
# to get the most. By size in bytes.
PAPER_US = {
    "SSDSync": {64: 16.0, 4096: 16.0}, "PMRSync": {64: 2.54, 4096: 4.1}, "PMEMDirect": {64: 1.63, 4096: 13.0},
    "PMRDirect": {64: 1.63, 4096: 3.1},
}
PAPER_MB = {"SSDSync": {64: 30.0, 4096: 1200.0}, "PMRSync": {4096: 1742.0}, "PMEMDirect": {4096: 1300.0}, "PMRDirect": {4096: 2600.0}}
RATIOS = (("SSDSync", "PMRSync"), ("PMRSync", "PMRDirect"), ("PMEMDirect", "PMRDirect"), ("SSDSync", "PMEMDirect"))

TITLE = "Four remote paths to persistent bytes, measured again"
LEAD = "A disk, NVM, and the persistent memory region of an NVMe disk: the paths that the paper on PMRAccess compares."
NOTES = (
    "SSDSync and PMRSync are messages: the server writes to the disk, or copies into the region, and answers. PMEMDirect and "
    "PMRDirect are one-sided Writes into NVM and into the region, and then a flush. Latency is the median of one client with "
    "one operation at a time. Throughput is that of all clients. docs/benchmarks/pmr.md has the method.",
    "The paper measured with 100 GbE NICs, Optane NVM and an NVMe disk with a region of 8 MiB. It gives numbers for 64 B and "
    "4 KiB in its text, and has its other figures only as charts. Compare ratios, and not times.",
)
NOTE_LAB = (
    "This is the lab: an emulated machine with Soft-RoCE, an emulated NVMe disk and an NVDIMM that is memory. No time here is one "
    "of real hardware, and emulated memory has no times of NVM. Soft-RoCE's Reads flush nothing, so the server flushes one-sided "
    "Writes upon a message."
)
NOTE_HERE = "There is no NIC here, and the NVM and the region are memory (dram:). So their times are those of the software."


def evaluate(folder: pathlib.Path, build: pathlib.Path, lab: bool, quick: bool, report_only: bool, command: str) -> None:
    file = folder / RESULTS
    if report_only:
        if not file.is_file():
            raise ToolError(f"{folder} has no results of --pmr")
        results = json.loads(file.read_text(encoding="utf-8"))
    else:
        if folder.is_dir() and any(folder.iterdir()) and not file.is_file():
            raise ToolError(f"{folder} is not empty, and has no results of --pmr: name another folder")
        folder.mkdir(exist_ok=True)
        results = {"machine": machines.machine(), "commit": machines.commit(ROOT), "command": command, "lab": lab,
                   "runs": _in_lab(folder, build, quick) if lab else _here(build, quick)}
        write_json(file, results)
    (folder / "report.html").write_text(to_page(results), encoding="utf-8")
    print(to_text(results))
    print(f"\n{folder / 'report.html'}")


def _bench(build: pathlib.Path, quick: bool) -> list[str]:
    return [str(build / "bin" / "erda-bench"), "pmr", *(QUICK if quick else ())]


def _here(build: pathlib.Path, quick: bool) -> list[dict[str, Any]]:
    """The disk is that of the folder for large temporary files."""
    step("four paths over shm, with memory for NVM and region")
    with tempfile.TemporaryDirectory(prefix="erda-paper.", dir="/var/tmp") as name:
        folder = pathlib.Path(name)
        command = [*_bench(build, quick), "--folder", name]
        execute([*command, "--json", str(folder / "result.json")], seconds=SECONDS)
        result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        return [{"command": shown(command, build, folder), "result": result}]


def _in_lab(folder: pathlib.Path, build: pathlib.Path, quick: bool) -> list[dict[str, Any]]:
    step("in the lab: four paths over RDMA, and over shm")
    commands = [[*_bench(build, quick), *IN_LAB, *fabric] for fabric in (VERBS, ())]
    with tempfile.TemporaryDirectory(prefix=".lab.", dir=folder) as name:
        files = [pathlib.Path(name) / f"{number}.json" for number in range(len(commands))]
        script = " && ".join(shlex.join([*command, "--json", str(file)]) for command, file in zip(commands, files, strict=True))
        in_lab(["--timeout", str(SECONDS), *LAB, "--out", name], ["bash", "-c", f"({script}) >&2"])
        return [{"command": f"tools/rdma-lab run {shlex.join(LAB)} -- {shown(command, build, folder)}",
                 "result": json.loads(file.read_text(encoding="utf-8"))} for command, file in zip(commands, files, strict=True)]


def title_of(run: dict[str, Any]) -> str:
    result = run["result"]
    return f"Over {result['fabric']}" + (f" ({result['device']})" if result["device"] else "")


def at(run: dict[str, Any], path: str, size: int, name: str) -> float | None:
    """Returns a figure, or None if it was not measured."""
    found = [row[path][name] for row in run["result"]["rows"] if row["bytes"] == size and path in row]
    return found[0] if found else None


def over(first: float | None, second: float | None) -> float | None:
    return first / second if first and second else None


def ratios(run: dict[str, Any]) -> list[tuple[str, float, float]]:
    """Returns what each ratio of latencies is, the measured one and the paper's."""
    found = []
    for size in (64, 4096):
        for first, second in RATIOS:
            measured = over(at(run, first, size, "median_us"), at(run, second, size, "median_us"))
            if measured is not None:
                found.append((f"{first} / {second}, {charts.size(size)}", measured, PAPER_US[first][size] / PAPER_US[second][size]))
    return found


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def table(run: dict[str, Any], name: str, paper: dict[str, dict[int, float]]) -> tuple[list[Column], list[list[str]]]:
    columns = [Column("Size")]
    columns += [Column(title, group=path) for path in PATHS for title in ("here", "paper")]
    rows = []
    for row in run["result"]["rows"]:
        size = row["bytes"]
        cells = [cell for path in PATHS for cell in (at(run, path, size, name), paper[path].get(size))]
        rows.append([charts.size(size), *map(_number, cells)])
    return columns, rows


def chart(run: dict[str, Any], title: str, label: str, name: str) -> str:
    series = [Series(path, [(row["bytes"], at(run, path, row["bytes"], name)) for row in run["result"]["rows"]], index)
              for index, path in enumerate(PATHS)]
    series = [entry for entry in series if any(value is not None for _, value in entry.points)]
    sizes = [row["bytes"] for row in run["result"]["rows"]]
    return charts.lines(title, Axis("size", log=True, format=charts.size, ticks=sizes), Axis(label, log=True, format=charts.number), series)


def to_text(results: dict[str, Any]) -> str:
    parts = [f"{machines.describe(results['machine'])}; commit {machines.describe_commit(results['commit'])}"]
    for run in results["runs"]:
        parts.append(f"\n{title_of(run)}: ratios of median latencies, here and in the paper")
        parts += [f"  {measured:>8.2f} {paper:>8.2f}   {what}" for what, measured, paper in ratios(run)]
        parts += [f"  {path} cannot be measured: {why}" for path, why in run["result"]["not_measured"].items()]
    return "\n".join(parts)


def to_page(results: dict[str, Any]) -> str:
    page = Page(TITLE, LEAD)
    page.cards([Card(f"{measured:.2f}", f"{what}. {title_of(run)}", f"Paper: {paper:.2f}.")
                for run in results["runs"] for what, measured, paper in ratios(run)])
    for paragraph in (*NOTES, NOTE_LAB if results["lab"] else NOTE_HERE):
        page.paragraph(paragraph)
    for run in results["runs"]:
        result = run["result"]
        page.heading(title_of(run))
        page.paragraph(f"NVM: {result['nvm']['path']} ({result['nvm']['durability']}). Region: {result['region']['path']} "
                       f"({result['region']['durability']}). {result['clients']} clients for throughput.")
        for path, why in result["not_measured"].items():
            page.paragraph(f"{path} cannot be measured: {why}")
        page.charts([("Latency", "median µs", chart(run, "Latency", "µs", "median_us")),
                     ("Throughput", "MiB/s", chart(run, "Throughput", "MiB/s", "mib_per_second"))], pairs=True)
        page.table("Latency in µs", *table(run, "median_us", PAPER_US))
        page.table("Throughput: MiB/s here, MB/s in the paper", *table(run, "mib_per_second", PAPER_MB))
    page.origin(results["machine"], results["commit"], [], [results["command"], *(run["command"] for run in results["runs"])])
    return page.html()
