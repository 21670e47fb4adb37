"""Prints the comparison of stores in files as tables for a terminal, as JSON, and as a page: who wins where."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from comparison import stores
from comparison.output import text_table
from comparison.stores import FileStore
from comparison.stores_measure import MAIN_KIND, PARTS, READERS, Cell, Measured, Plan
from report import charts
from report.charts import Axis, Series
from report.machine import describe, describe_commit
from report.page import Card, Column, Page

TITLES = {
    "rmw": "update: a get, then a put", "C": "C: gets", "A": "A: half gets, half puts", "B": "B: 95 % gets, 5 % puts",
    "D": "D: gets of the latest, 5 % inserts", "F": "F: half gets, half updates", "update": "puts alone", "load": "load",
    "readers": f"{READERS} readers", "beside": f"1 writer beside {READERS} readers",
}
LEAD = "Stores of one machine that keep their values in files, measured by one driver in one run: who wins where."
METHOD = (
    "Erda is a server with a pool in a file. LMDB, RocksDB and Tkrzw are libraries. LMDB's file may be used by many processes at "
    "once: several clients of Erda, LMDB and Redis are processes. RocksDB and Tkrzw belong to one process: their clients are its "
    "threads.",
    "All stores get the same keys of 24 bytes, the same values and the same zipfian choice of keys, one operation at a time. Each "
    "put of LMDB and RocksDB is a separate transaction or write, since it is acknowledged alone. An update is a get and then a put "
    "of the same key.",
    "Each figure is the median of the rounds. In a round the stores take turns at each point. Before, Erda's log was written "
    "through once, and every record of the other stores was replaced once. The mean is over all operations, so it has all of "
    "what a store does later: faults of pages, cleaning, compaction.",
)


@dataclasses.dataclass(frozen=True)
class Ratio:
    """A ratio with a target."""

    name: str
    what: str
    value: float
    target: float
    at_most: bool = False

    @property
    def reached(self) -> bool:
        return self.value <= self.target if self.at_most else self.value >= self.target

    @property
    def wanted(self) -> str:
        return f"{'at most' if self.at_most else 'at least'} {self.target:g}"


@dataclasses.dataclass(frozen=True)
class Lead:
    """The best store at one point."""

    best: FileStore
    factor: float  # Over the second, or over Erda if Erda is not the best.

    def text(self) -> str:
        return f"{self.best.title} {factor(self.factor)}×"


class Figures:
    """Finds results."""

    def __init__(self, plan: Plan, measured: Sequence[Measured]) -> None:
        self.plan = plan
        self.measured = list(measured)
        self._found = {entry.cell: entry for entry in measured}

    def find(self, part: str, store: FileStore, size: int, workload: str, clients: int) -> Measured | None:
        return self._found.get(Cell(part, store, size, workload, clients))

    def points(self, part: str) -> list[tuple[str, int]]:
        """Returns the workloads and numbers of clients of a part."""
        cells = [entry.cell for entry in self.measured if entry.cell.part == part]
        return list(dict.fromkeys((cell.workload, cell.clients) for cell in cells))

    def ratio(
        self, part: str, size: int, workload: str, clients: int, name: str, below: FileStore = stores.ERDA,
        above: FileStore = stores.LMDB
    ) -> float | None:
        upper, lower = (self.find(part, store, size, workload, clients) for store in (above, below))
        return upper.median(name) / lower.median(name) if upper and lower else None

    def lead(self, part: str, size: int, workload: str, clients: int) -> Lead | None:
        """Compares the times of an operation. Beside readers, it compares the rates of the writer."""
        times: dict[FileStore, float] = {}
        for store in self.plan.stores_of(part):
            entry = self.find(part, store, size, workload, clients)
            if entry:
                times[store] = 1 / entry.median("put_per_second") if workload == "beside" else entry.median("mean_us")
        if len(times) < 2:
            return None
        best, second = sorted(times, key=lambda store: times[store])[:2]
        other = second if best is stores.ERDA or stores.ERDA not in times else stores.ERDA
        return Lead(best, times[other] / times[best])

    def ratios(self) -> list[Ratio]:
        """Returns the ratios with a target, as far as they were measured."""
        found: list[Ratio] = []

        def add(name: str, what: str, value: float | None, target: float, at_most: bool = False) -> None:
            if value is not None:
                found.append(Ratio(name, what, value, target, at_most))

        sizes = self.plan.sizes
        for size in sizes.get("mixes", ()):
            of = charts.size(size)
            add(f"update_{size}", f"mean update of {of}, LMDB / Erda", self.ratio("mixes", size, "rmw", 1, "rmw_mean_us"), 1)
            erda = self.find("mixes", stores.ERDA, size, "rmw", 1)
            add(f"update_tail_{size}", f"mean / median of updates of {of}, Erda",
                erda.median("rmw_mean_us") / erda.median("rmw_p50_us") if erda else None, 1.3, at_most=True)
            add(f"get_{size}", f"mean get of {of}, LMDB / Erda", self.ratio("mixes", size, "C", 1, "get_mean_us"), 1.3)
        for size in sizes.get("puts", ()):
            add(f"put_{size}", f"mean put of {charts.size(size)}, LMDB / Erda",
                self.ratio("puts", size, "update", 1, "put_mean_us"), 1)
        for size in sizes.get("clients", ()):
            for clients in self.plan.clients:
                add(f"update_{size}_{clients}", f"mean update of {charts.size(size)}, {clients} clients, LMDB / Erda",
                    self.ratio("clients", size, "rmw", clients, "rmw_mean_us"), 2)
        for size in sizes.get("load", ()):
            add(f"load_{size}", f"records of {charts.size(size)} loaded per second, Erda / LMDB",
                self.ratio("load", size, "load", 1, "ops_per_second", below=stores.LMDB, above=stores.ERDA), 1)
        for size in sizes.get("readers", ()):
            of = charts.size(size)
            add(f"writer_{size}", f"updates of {of} beside {READERS} readers, per second, Erda / Redis",
                self.ratio("readers", size, "beside", READERS + 1, "put_per_second", below=stores.REDIS, above=stores.ERDA), 2)
            alone, beside = (self.find("readers", stores.ERDA, size, workload, clients)
                             for workload, clients in (("readers", READERS), ("beside", READERS + 1)))
            add(f"readers_{size}", f"gets of {of} beside a writer / without it, Erda",
                beside.median("get_per_second") / alone.median("get_per_second") if alone and beside else None, 0.9)
        return found


def factor(value: float) -> str:
    return f"{value:.0f}" if value >= 20 else f"{value:.1f}" if value >= 2 else f"{value:.2f}"


def _time(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def _rate(value: float) -> str:
    return f"{value:,.0f}"


def _clients(count: int) -> str:
    return f"{count} client{'' if count == 1 else 's'}"


def _title(part: str, workload: str, clients: int) -> str:
    more = {"clients": f", {_clients(clients)}", "synced": ", synced to the disk"}
    return TITLES[workload] + more.get(part, "")


# JSON.


def to_json(figures: Figures, origin: dict[str, Any]) -> dict[str, Any]:
    plan = figures.plan
    return {
        "machine": origin["machine"], "commit": origin["commit"], "versions": origin["versions"], "command": origin["command"],
        "server_commands": origin["servers"],
        "settings": {
            "rounds": plan.rounds, "seconds": plan.seconds, "sizes": {part: list(sizes) for part, sizes in plan.sizes.items()},
            "records": {part: {str(size): plan.records_of(size, part) for size in sizes} for part, sizes in plan.sizes.items()},
            "clients": list(plan.clients), "key_bytes": 24, "distribution": "zipfian 0.99", "file_system": origin["file_system"],
        },
        "stores": {store.name: {"title": store.title, "promise": store.promise} for store in _used(figures)},
        "ratios": {ratio.name: {"what": ratio.what, "value": ratio.value, "target": ratio.target, "at_most": ratio.at_most,
                                "reached": ratio.reached} for ratio in figures.ratios()},
        "results": [_result(entry) for entry in figures.measured],
    }


def _result(entry: Measured) -> dict[str, Any]:
    cell = entry.cell
    return {
        "part": cell.part, "store": cell.store.name, "value_size": cell.size, "workload": cell.workload, "clients": cell.clients,
        "median": {name: entry.median(name) for name in entry.runs[0]}, "rounds": entry.runs, "command": entry.command,
    }


def _used(figures: Figures) -> list[FileStore]:
    return [store for store in stores.ALL if any(entry.cell.store is store for entry in figures.measured)]


# Tables.


def winners(figures: Figures) -> tuple[list[Column], list[list[str]]]:
    """Returns a table with the best store for each work and size."""
    sizes = sorted({size for part in figures.plan.parts for size in figures.plan.sizes[part]})
    columns = [Column("Work", text=True), *(Column(charts.size(size), text=True) for size in sizes)]
    rows = []
    for part in figures.plan.parts:
        for workload, clients in figures.points(part):
            leads = [figures.lead(part, size, workload, clients) for size in sizes]
            rows.append([_title(part, workload, clients), *(lead.text() if lead else "" for lead in leads)])
    return columns, rows


def losses(figures: Figures) -> list[str]:
    """Returns a sentence for each work in which another store is faster than Erda, the largest loss first."""
    found = []
    for part in figures.plan.parts:
        for size in figures.plan.sizes[part]:
            for workload, clients in figures.points(part):
                lead = figures.lead(part, size, workload, clients)
                if lead and lead.best is not stores.ERDA and stores.ERDA in figures.plan.stores_of(part):
                    found.append((lead.factor, f"{_title(part, workload, clients)}, {charts.size(size)}: {lead.best.title} is "
                                               f"{factor(lead.factor)} times as fast."))
    return [text for _, text in sorted(found, key=lambda each: -each[0])]


def details(figures: Figures, part: str) -> tuple[list[Column], list[list[str]]]:
    """Returns a table with the figures of each store in a part."""
    titles = {"load": ("mean", "records/s"), "readers": ("updates/s", "gets/s")}.get(part, ("mean", "p50", "p99", "ops/s"))
    columns = [Column("Value", text=True), Column("Work", text=True)]
    columns += [Column(title, group=store.title) for store in figures.plan.stores_of(part) for title in titles]
    rows = []
    for size in figures.plan.sizes[part]:
        for workload, clients in figures.points(part):
            row = [charts.size(size), _title(part, workload, clients)]
            for store in figures.plan.stores_of(part):
                entry = figures.find(part, store, size, workload, clients)
                row += _details_of(part, entry) if entry else [""] * len(titles)
            rows.append(row)
    return columns, rows


def _details_of(part: str, entry: Measured) -> list[str]:
    if part == "load":
        return [_time(entry.median("mean_us")), _rate(entry.median("ops_per_second"))]
    if part == "readers":
        updates = _rate(entry.median("put_per_second")) if entry.cell.workload == "beside" else "—"
        return [updates, _rate(entry.median("get_per_second"))]
    kind = MAIN_KIND[entry.cell.workload]
    mean = f"{kind}_mean_us" if entry.cell.workload in ("C", "rmw", "update") else "mean_us"
    return [_time(entry.median(mean)), _time(entry.median(f"{kind}_p50_us")), _time(entry.median(f"{kind}_p99_us")),
            _rate(entry.median("ops_per_second"))]


def note(plan: Plan) -> str:
    return (
        "Times in µs, medians of "
        f"{plan.rounds} round{'' if plan.rounds == 1 else 's'}. Of A, B and D the mean is that of all operations, and p50 and p99 are "
        "those of gets; of F these are those of updates. Percentiles of several processes are medians over them."
    )


def about_files(origin: dict[str, Any]) -> str:
    kind = origin["file_system"]
    memory = ", which is memory: nothing is ever written back, and a sync costs nothing" if kind in ("tmpfs", "ramfs") else ""
    return f"All files were on {kind}{memory}."


def to_text(figures: Figures, origin: dict[str, Any]) -> str:
    plan = figures.plan
    parts = [
        f"{describe(origin['machine'])}; commit {describe_commit(origin['commit'])}",
        "; ".join(f"{name} {version}" for name, version in origin["versions"].items()),
        f"{note(plan)} {about_files(origin)}",
    ]
    for part in plan.parts:
        parts.append(f"\n{PARTS[part].capitalize()}")
        parts.append(text_table(*details(figures, part)))
    parts.append("\nWho wins, and how many times as fast as the second, or as Erda")
    parts.append(text_table(*winners(figures)))
    parts.append("\n" + "\n".join(f"  {store.title}: {store.promise}" for store in _used(figures)))
    if ratios := figures.ratios():
        parts.append("\nRatios with a target")
        parts += [f"  {ratio.name:<18}{ratio.value:>7.2f}   {ratio.what}; {ratio.wanted}: "
                  f"{'reached' if ratio.reached else 'not reached'}" for ratio in ratios]
    return "\n".join(parts)


# The page.


def _by_size(figures: Figures, part: str, workload: str, clients: int, of: Callable[[Measured], float]) -> list[Series]:
    series = []
    for store in figures.plan.stores_of(part):
        found = [(size, figures.find(part, store, size, workload, clients)) for size in figures.plan.sizes[part]]
        series.append(Series(store.title, [(size, of(entry)) for size, entry in found if entry], store.colour))
    return series


def _cards(figures: Figures) -> list[Card]:
    """Returns one card for each kind of ratio: the worst of them."""
    worst: dict[str, Ratio] = {}
    for ratio in figures.ratios():
        kind = ratio.name.rstrip("0123456789").rstrip("_").rstrip("0123456789").rstrip("_")
        kind += "_several" if ratio.name.count("_") == 2 and kind == "update" else ""

        def margin(each: Ratio) -> float:
            return each.target / each.value if each.at_most else each.value / each.target

        if kind not in worst or margin(ratio) < margin(worst[kind]):
            worst[kind] = ratio
    return [Card(f"{ratio.value:.2f}", ratio.what, f"The worst of its kind. Target: {ratio.wanted}, "
                 f"{'reached' if ratio.reached else 'not reached'}.", ratio.reached) for ratio in worst.values()]


def to_page(figures: Figures, origin: dict[str, Any]) -> str:
    plan = figures.plan
    page = Page("Erda beside LMDB, RocksDB and Tkrzw", LEAD)
    page.cards(_cards(figures))
    for paragraph in METHOD:
        page.paragraph(paragraph)

    page.heading("Who wins")
    page.paragraph("The store with the shortest mean time, and how many times as fast as the second it is, or as Erda if Erda is not "
                   "the first. Beside readers, it is the store whose writer does most updates.")
    page.table("The fastest store", *winners(figures))
    if lost := losses(figures):
        page.subheading("Where Erda is slower")
        page.table("The largest loss first", [Column("Work", text=True, wrap=True)], [[text] for text in lost])

    page.heading("Promises")
    page.paragraph("Compare only stores with the same promise. " + about_files(origin))
    page.table("The promise for an acknowledged put", [Column("Store", text=True), Column("Promise", text=True, wrap=True)],
               [[store.title, store.promise] for store in _used(figures)])

    for part in plan.parts:
        page.heading(PARTS[part].capitalize())
        sizes = Axis("Value size", log=True, format=charts.size, ticks=plan.sizes[part])
        time = Axis("Mean time", log=True, format=charts.microseconds)
        rate = Axis("Per second", log=True)
        page.charts([
            (_title(part, workload, clients), *(
                ("updates per second", charts.lines(workload, sizes, rate, _by_size(
                    figures, part, workload, clients, lambda entry: entry.median("put_per_second"))))
                if workload == "beside" else
                ("mean time of an operation", charts.lines(workload, sizes, time, _by_size(
                    figures, part, workload, clients, lambda entry: entry.median("mean_us"))))
            ))
            for workload, clients in figures.points(part)
        ])
        page.table(note(plan), *details(figures, part))

    if ratios := figures.ratios():
        page.heading("Ratios with a target")
        page.table("Medians of one run", [Column("Ratio", text=True, wrap=True), Column("Value"), Column("Target"),
                                          Column("", text=True)],
                   [[ratio.what, f"{ratio.value:.2f}", ratio.wanted, "reached" if ratio.reached else "not reached"]
                    for ratio in ratios])
    versions = [(name, version) for name, version in origin["versions"].items()]
    measured = (f"{plan.rounds} round{'' if plan.rounds == 1 else 's'}, each figure for {plan.seconds:g} s in each; "
                "keys of 24 bytes, zipfian 0.99")
    commands = [origin["command"], "", *origin["servers"].values(), "", *dict.fromkeys(
        entry.command for entry in figures.measured if entry.cell.size == plan.sizes[entry.cell.part][0])]
    page.origin(origin["machine"], origin["commit"], [*versions, ("Measured", measured)], commands)
    return page.html()
