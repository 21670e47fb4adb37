"""Prints the results as tables for a terminal, as JSON, and as a page."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from comparison import systems
from comparison.measure import WORKLOADS, Cell, Measured, Plan
from comparison.systems import ERDA, MEMCACHED, REDIS, System
from report import charts
from report.charts import Axis, Series
from report.machine import describe, describe_commit
from report.page import Card, Column, Page

RATIO_SIZE = 1024  # The size of YCSB's records.
RATIO_WORKLOAD = "C"
RATIO_CLIENTS = 16
MIX = {"B": "95 % get, 5 % update", "C": "gets only", "update": "updates only"}
LEAD = "Three stores on one machine, measured by one driver in one run: Erda over shared memory, the others over Unix sockets."
METHOD = (
    "All stores get the same keys of 24 bytes, the same values and the same zipfian choice of keys. They have the same numbers "
    "of clients and of operations in flight. A client is a thread with a separate connection. The driver uses Redis through "
    "hiredis, and memcached through libmemcached: a client sends its outstanding operations together, and gets the answers "
    "together.",
    "Erda's clients read the server's memory themselves. So these figures tell what shared memory does for a client on the "
    "same machine, and nothing about a network.",
    "Each figure is the median of the rounds. In a round the systems take turns at each point. The servers that are not "
    "measured are idle. Erda's log was filled once before, so that its memory is in use as after long service. The others "
    "overwrite values in place.",
)


@dataclasses.dataclass(frozen=True)
class Ratio:
    name: str
    what: str
    target: float
    value: float
    size: int
    workload: str
    clients: int
    depth: int
    erda: float
    other: float

    @property
    def reached(self) -> bool:
        return self.value >= self.target

    def to_json(self) -> dict[str, Any]:
        return {
            "what": self.what, "value": self.value, "target": self.target, "reached": self.reached, "value_size": self.size,
            "workload": self.workload, "clients": self.clients, "depth": self.depth, "erda": self.erda, "other": self.other,
        }


class Figures:
    """Finds results."""

    def __init__(self, plan: Plan, measured: Sequence[Measured]) -> None:
        self.plan = plan
        self.measured = list(measured)
        self._found = {entry.cell: entry for entry in measured}

    def at(self, system: System, size: int, workload: str, clients: int, depth: int) -> Measured:
        return self._found[Cell(system, size, workload, clients, depth)]

    @property
    def ratio_size(self) -> int:
        return RATIO_SIZE if RATIO_SIZE in self.plan.sizes else min(self.plan.sizes)

    @property
    def ratio_clients(self) -> int:
        return RATIO_CLIENTS if RATIO_CLIENTS in self.plan.clients else max(self.plan.clients)

    def latency_ratio(self, size: int, workload: str, kind: str, target: float = 0) -> Ratio:
        clients = min(self.plan.clients)
        erda = self.at(ERDA, size, workload, clients, 1).median(kind, "p50_us")
        redis = self.at(REDIS, size, workload, clients, 1).median(kind, "p50_us")
        what = f"median {kind} latency, Redis / Erda"
        return Ratio("redis_latency", what, target, redis / erda, size, workload, clients, 1, erda, redis)

    def throughput_ratio(self, other: System, size: int, workload: str, clients: int, depth: int, target: float = 0) -> Ratio:
        erda = self.at(ERDA, size, workload, clients, depth).ops_per_second
        theirs = self.at(other, size, workload, clients, depth).ops_per_second
        what = f"operations per second, Erda / {other.title}"
        return Ratio(f"{other.name}_throughput", what, target, erda / theirs, size, workload, clients, depth, erda, theirs)

    def ratios(self) -> list[Ratio]:
        """Returns the three ratios that have a target."""
        size, clients, depth = self.ratio_size, self.ratio_clients, self.plan.depth
        return [
            self.latency_ratio(size, RATIO_WORKLOAD, "get", 60),
            self.throughput_ratio(REDIS, size, RATIO_WORKLOAD, clients, depth, 10),
            self.throughput_ratio(MEMCACHED, size, RATIO_WORKLOAD, clients, depth, 8),
        ]

    def all_ratios(self) -> list[Ratio]:
        """Returns the other ratios."""
        found = []
        for size in self.plan.sizes:
            for workload in WORKLOADS:
                found += [
                    self.latency_ratio(size, workload, kind)
                    for kind in ("get", "put")
                    if kind != {"C": "put", "update": "get"}.get(workload)
                ]
                found += [
                    self.throughput_ratio(other, size, workload, self.ratio_clients, depth)
                    for depth in self.plan.depths
                    for other in (REDIS, MEMCACHED)
                ]
        return found


def chosen(figures: Figures) -> str:
    """Explains the choice of the three ratios."""
    own = ", the size of YCSB's own records" if figures.ratio_size == RATIO_SIZE else ""
    return (
        f"The three ratios with a target are of workload {RATIO_WORKLOAD} ({MIX[RATIO_WORKLOAD]}). They are measured with "
        f"values of {charts.size(figures.ratio_size)}{own}: latency with {_clients(min(figures.plan.clients))} "
        f"and one operation in flight. Throughput is measured with {_clients(figures.ratio_clients)} and {figures.plan.depth} "
        "in flight for each. The table of ratios has the others."
    )


def about_files(origin: dict[str, Any]) -> str:
    """Describes the file system of the pool and of Redis's files."""
    kind = origin["file_system"]
    memory = ", which is memory: an fsync costs nothing, and nothing survives a power cut" if kind in ("tmpfs", "ramfs") else ""
    return f"The pool and Redis's files were on {kind}{memory}."


def _clients(count: int) -> str:
    return f"{count} client{'' if count == 1 else 's'}"


# JSON.


def to_json(figures: Figures, origin: dict[str, Any]) -> dict[str, Any]:
    plan = figures.plan
    return {
        "machine": origin["machine"],
        "commit": origin["commit"],
        "versions": origin["versions"],
        "command": origin["command"],
        "server_commands": origin["servers"],
        "settings": {
            "rounds": plan.rounds, "slice_seconds": plan.slice_seconds, "value_sizes": list(plan.sizes),
            "records": {str(size): plan.records_of(size) for size in plan.sizes}, "clients": list(plan.clients),
            "depths": list(plan.depths), "key_bytes": 24, "distribution": "zipfian 0.99", "file_system": origin["file_system"],
        },
        "ratios": {ratio.name: ratio.value for ratio in figures.ratios()},
        "ratio_choice": chosen(figures),
        "ratio_details": {ratio.name: ratio.to_json() for ratio in figures.ratios()},
        "other_ratios": [{"name": ratio.name, **_without_target(ratio)} for ratio in figures.all_ratios()],
        "systems": {
            system.name: {"title": system.title, "promise": system.promise} for system in (*systems.MAIN, *systems.DURABLE)
        },
        "results": [_result(entry) for entry in figures.measured],
    }


def _without_target(ratio: Ratio) -> dict[str, Any]:
    return {name: value for name, value in ratio.to_json().items() if name not in ("target", "reached")}


def _result(entry: Measured) -> dict[str, Any]:
    cell = entry.cell
    medians: dict[str, Any] = {
        "ops_per_second": entry.ops_per_second,
        "server_processor_us_per_op": entry.median("server_processor_us_per_op"),
    }
    for kind in ("get", "put"):
        if kind in entry.runs[0]:
            medians[kind] = {name: entry.median(kind, name) for name in entry.runs[0][kind]}
    return {
        "system": cell.system.name, "value_size": cell.size, "workload": cell.workload, "clients": cell.clients,
        "depth": cell.depth, "median": medians, "rounds": entry.runs, "command": entry.command,
    }


# Tables.


def _main_columns() -> list[Column]:
    columns = [Column("Workload", text=True), Column("Clients")]
    for system in systems.MAIN:
        columns += [Column("p50", group=system.title), Column("p99", group=system.title),
                    Column("ops/s", group=system.title)]
    return [*columns, Column("p50", group="Redis / Erda"), Column("ops/s", group="Erda / Redis"),
            Column("ops/s", group="Erda / memcached")]


def _main_rows(figures: Figures, size: int) -> list[list[str]]:
    rows = []
    depth = figures.plan.depth
    for workload in WORKLOADS:
        kind = "put" if workload == "update" else "get"
        for clients in figures.plan.clients:
            row = [workload, str(clients)]
            p50 = {}
            rates = {}
            for system in systems.MAIN:
                alone = figures.at(system, size, workload, clients, 1)
                p50[system.name] = alone.median(kind, "p50_us")
                rates[system.name] = figures.at(system, size, workload, clients, depth).ops_per_second
                row += [_time(p50[system.name]), _time(alone.median(kind, "p99_us")), _rate(rates[system.name])]
            row.append(_factor(p50["redis"] / p50["erda"]))
            row += [_factor(rates["erda"] / rates[name]) for name in ("redis", "memcached")]
            rows.append(row)
    return rows


def _ratio_columns(depth: int) -> list[Column]:
    columns = [Column("Value", text=True), Column("Workload", text=True), Column("p50", group="Redis / Erda")]
    for other in (REDIS, MEMCACHED):
        columns += [Column(f"ops/s, depth {d}", group=f"Erda / {other.title}") for d in (1, depth)]
    return columns


def _ratio_rows(figures: Figures) -> list[list[str]]:
    """Latencies with the smallest number of clients, throughput with the number of clients in the ratios."""
    rows = []
    for size in figures.plan.sizes:
        for workload in WORKLOADS:
            row = [charts.size(size), workload]
            row.append(_factor(figures.latency_ratio(size, workload, "put" if workload == "update" else "get").value))
            for other in (REDIS, MEMCACHED):
                for depth in figures.plan.depths:
                    row.append(_factor(figures.throughput_ratio(other, size, workload, figures.ratio_clients, depth).value))
            rows.append(row)
    return rows


def _rate(value: float) -> str:
    return f"{value:,.0f}"


def _time(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def _factor(value: float) -> str:
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def _durable_columns(depth: int) -> list[Column]:
    return [Column("System", text=True), Column("Clients"), Column("put p50 µs"), Column("p99 µs"), Column("puts/s"),
            Column(f"puts/s, depth {depth}"), Column("An acknowledged put", text=True, wrap=True)]


def _durable_rows(figures: Figures, size: int) -> list[list[str]]:
    rows = []
    for system in (ERDA, REDIS, *systems.DURABLE):
        for index, clients in enumerate(figures.plan.clients):
            alone = figures.at(system, size, "update", clients, 1)
            deep = figures.at(system, size, "update", clients, figures.plan.depth)
            rows.append([system.title, str(clients), _time(alone.median("put", "p50_us")), _time(alone.median("put", "p99_us")),
                         _rate(alone.ops_per_second), _rate(deep.ops_per_second),
                         system.promise if index == 0 else ""])
    return rows


def text_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    titles = [f"{column.group}: {column.title}" if column.group else column.title for column in columns]
    for i in range(len(columns) - 1, 0, -1):
        if columns[i].group and columns[i].group == columns[i - 1].group:
            titles[i] = columns[i].title
    widths = [max(len(title), *(len(row[i]) for row in rows)) for i, title in enumerate(titles)]

    def line(cells: Sequence[str]) -> str:
        parts = [cell.ljust(width) if column.text else cell.rjust(width)
                 for cell, width, column in zip(cells, widths, columns, strict=True)]
        return "  " + "  ".join(parts).rstrip()

    return "\n".join([line(titles), *(line(row) for row in rows)])


def _table_note(plan: Plan) -> str:
    count = f"{plan.rounds} round{'' if plan.rounds == 1 else 's'}"
    return (
        f"p50 and p99 of gets, or of puts in updates: in µs, with one operation in flight. Operations per second: with "
        f"{plan.depth} in flight for each client. All are medians of {count}"
    )


def to_text(figures: Figures, origin: dict[str, Any]) -> str:
    plan = figures.plan
    parts = [
        f"{describe(origin['machine'])}; commit {describe_commit(origin['commit'])}",
        "; ".join(f"{name} {version}" for name, version in origin["versions"].items()),
        _table_note(plan),
    ]
    for size in plan.sizes:
        parts.append(f"\nValues of {charts.size(size)}, {plan.records_of(size):,} records, no persistence")
        parts.append(text_table(_main_columns(), _main_rows(figures, size)))
    for size in plan.sizes:
        parts.append(f"\nValues of {charts.size(size)}, updates, by the promise for an acknowledged put")
        columns = _durable_columns(plan.depth)[:-1]
        parts.append(text_table(columns, [row[:-1] for row in _durable_rows(figures, size)]))
    parts.append(f"\n  {about_files(origin)}\n")
    parts += [f"  {system.title}: {system.promise}" for system in (*systems.MAIN, *systems.DURABLE)]
    parts.append(f"\nRatios: p50 with {_clients(min(plan.clients))}, operations per second with {_clients(figures.ratio_clients)}")
    parts.append(text_table(_ratio_columns(plan.depth), _ratio_rows(figures)))
    parts.append("\n" + chosen(figures))
    for ratio in figures.ratios():
        verdict = "reached" if ratio.reached else "not reached"
        parts.append(f"  {ratio.name:<22}{_factor(ratio.value):>7}   {ratio.what}; target {ratio.target:g}: {verdict}")
    return "\n".join(parts)


# The page.


def _by_size(figures: Figures, group: Sequence[System], workload: str, kind: str, name: str, depth: int) -> list[Series]:
    clients = min(figures.plan.clients)
    return [
        Series(
            system.title,
            [(size, figures.at(system, size, workload, clients, depth).median(kind, name)) for size in figures.plan.sizes],
            system.colour,
        )
        for system in group
    ]


def _by_clients(figures: Figures, size: int, workload: str) -> list[Series]:
    depth = figures.plan.depth
    return [
        Series(
            system.title,
            [(clients, figures.at(system, size, workload, clients, depth).ops_per_second) for clients in figures.plan.clients],
            system.colour,
        )
        for system in systems.MAIN
    ]


def _bars(figures: Figures, group: Sequence[System], workload: str, name: str) -> list[Series]:
    clients, depth = figures.ratio_clients, figures.plan.depth
    return [
        Series(
            system.title,
            [(i, figures.at(system, size, workload, clients, depth).median(name)) for i, size in enumerate(figures.plan.sizes)],
            system.colour,
        )
        for system in group
    ]


def to_page(figures: Figures, origin: dict[str, Any]) -> str:
    plan = figures.plan
    page = Page("Erda beside Redis and memcached", LEAD)
    page.cards([
        Card(
            f"{ratio.value:.0f}×" if ratio.value >= 20 else f"{ratio.value:.1f}×",
            {"redis_latency": "the median time of a get: Redis over Erda",
             "redis_throughput": "gets per second: Erda over Redis",
             "memcached_throughput": "gets per second: Erda over memcached"}[ratio.name],
            f"Values of {charts.size(ratio.size)}; {_clients(ratio.clients)}, {ratio.depth} in flight"
            + (" for each" if ratio.clients > 1 else "")
            + f". Target {ratio.target:g}: {'reached' if ratio.reached else 'not reached'}.",
            ratio.reached,
        )
        for ratio in figures.ratios()
    ])
    page.paragraph(chosen(figures))
    for paragraph in METHOD:
        page.paragraph(paragraph)
    sizes = Axis("Value size", log=True, format=charts.size, ticks=plan.sizes)
    count = Axis("Clients", log=True, format=lambda value: f"{value:g}", ticks=plan.clients)
    time = Axis("Latency", log=True, format=charts.microseconds)
    rate = Axis("Operations per second", log=True)
    one = f"{_clients(min(plan.clients))}, one operation in flight"

    page.heading("Latency")
    page.charts([
        (title, f"{one}; {mix}", charts.lines(title, sizes, time, _by_size(figures, systems.MAIN, workload, kind, name, 1)))
        for title, mix, workload, kind, name in (
            ("Get, median", MIX["C"], "C", "get", "p50_us"),
            ("Get, 99th percentile", MIX["C"], "C", "get", "p99_us"),
            ("Get, median, among updates", MIX["B"], "B", "get", "p50_us"),
            ("Put, median", MIX["update"], "update", "put", "p50_us"),
            ("Put, 99th percentile", MIX["update"], "update", "put", "p99_us"),
            ("Put, median, among gets", MIX["B"], "B", "put", "p50_us"),
        )
    ])

    page.heading("Throughput")
    page.paragraph(f"With {plan.depth} operations in flight for each client. Both axes are logarithmic.")
    for workload in WORKLOADS:
        page.subheading("Updates" if workload == "update" else f"YCSB {workload}: {MIX[workload]}")
        page.charts([
            (f"Values of {charts.size(size)}", "", charts.lines(
                f"{workload}, {charts.size(size)}", count, rate, _by_clients(figures, size, workload)))
            for size in plan.sizes
        ])

    groups = [charts.size(size) for size in plan.sizes]
    deep = f"{_clients(figures.ratio_clients)}, {plan.depth} in flight for each"
    page.heading("The cost for the server")
    page.paragraph("The processor time of all of the server's threads during a run. It includes the kernel's work for them, and "
                   "the server's work in the background.")
    cost = Axis("Processor µs for one operation")
    page.charts([
        (title, deep, charts.bars(
            title, cost, groups, _bars(figures, systems.MAIN, workload, "server_processor_us_per_op")))
        for title, workload in (("Gets", "C"), ("Updates", "update"))
    ])

    page.heading("Updates that outlive the server")
    page.paragraph(
        "Compare only systems with the same promise. Erda with a pool in a file and Redis with appendfsync everysec both survive "
        "the death of the server. Redis with appendfsync always also survives a power cut. Erda does so with kPersisted on NVM "
        "only. " + about_files(origin)
    )
    page.table("The promise for an acknowledged put", [Column("System", text=True), Column("Promise", text=True, wrap=True)],
               [[system.title, system.promise] for system in (*systems.MAIN, *systems.DURABLE)])
    page.charts([
        ("Put, median", one, charts.lines(
            "Put, median", sizes, time, _by_size(figures, systems.DURABLE, "update", "put", "p50_us", 1))),
        ("Updates per second", deep, charts.bars(
            "Updates per second", Axis("Operations per second"), groups,
            _bars(figures, systems.DURABLE, "update", "ops_per_second"))),
    ])

    page.heading("All figures")
    page.paragraph(_table_note(plan) + ".")
    page.table(f"Ratios: p50 with {_clients(min(plan.clients))}, operations per second with {_clients(figures.ratio_clients)}",
               _ratio_columns(plan.depth), _ratio_rows(figures))
    for size in plan.sizes:
        page.table(f"Values of {charts.size(size)}, {plan.records_of(size):,} records", _main_columns(),
                   _main_rows(figures, size))
    for size in plan.sizes:
        page.table(f"Updates of {charts.size(size)}, with persistence", _durable_columns(plan.depth)[:-1],
                   [row[:-1] for row in _durable_rows(figures, size)])
    versions = [(name, version) for name, version in origin["versions"].items()]
    measured = (f"{plan.rounds} round{'' if plan.rounds == 1 else 's'}, each figure for {plan.slice_seconds:g} s in each; "
                "keys of 24 bytes, zipfian 0.99")
    commands = [origin["command"], "", *origin["servers"].values(), "", figures.measured[0].command]
    page.origin(origin["machine"], origin["commit"], [*versions, ("Measured", measured)], commands)
    return page.html()
