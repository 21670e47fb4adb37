"""Prints the comparison of durable puts as a table for a terminal, as JSON, and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from comparison import stores
from comparison.durable_measure import Cell, Disk, Measured, Plan
from comparison.output import text_table
from comparison.stores import FileStore
from comparison.stores_output import Ratio, factor
from comparison.systems import IN_MEMORY
from report import charts
from report.machine import describe, describe_commit
from report.page import Card, Column, Page

LEAD = "Puts that survive a power cut, on one disk of one machine, measured by one driver in one run."
METHOD = (
    "Each store has a put on the disk before it acknowledges it. All have the same keys of 24 bytes, the same values and the same "
    "zipfian choice of keys. A client is a thread of one process. In RocksDB and LMDB, which are libraries, the puts in flight of "
    "one client are one batch or one transaction.",
    "Each figure is the median of the rounds. In a round the disk itself is measured first, and then the stores take turns at each "
    "point. Before, Erda's log was written through once, and every record of the other stores was replaced once.",
)
# At least, in puts per second, of Erda over the other store: with one put in flight, and with the most. None: no target.
TARGETS: dict[FileStore, tuple[float | None, float | None]] = {
    stores.REDIS_ALWAYS: (3, 2), stores.ROCKSDB_SYNCED: (2, None), stores.LMDB_SYNCED: (5, None), stores.LMDB_MAP_SYNCED: (5, None),
}
DISK_SHARE = 0.8  # Or this share of the disk's sequential bytes, with the most in flight.


class Figures:
    """Finds results."""

    def __init__(self, plan: Plan, measured: Sequence[Measured], disk: Disk) -> None:
        self.plan = plan
        self.measured = list(measured)
        self.disk = disk
        self._found = {entry.cell: entry for entry in measured}

    def at(self, store: FileStore, clients: int, depth: int) -> Measured:
        return self._found[Cell(store, clients, depth)]

    @property
    def disk_share(self) -> float:
        """Returns the bytes of values that Erda puts with the most in flight, over those that the disk writes."""
        most = self.at(stores.ERDA_JOURNAL, max(self.plan.clients), max(self.plan.depths))
        return most.median("ops_per_second") * self.plan.size / self.disk.bytes_per_second

    def ratios(self) -> list[Ratio]:
        """Returns the ratios with a target: all of the most clients."""
        clients = max(self.plan.clients)
        found = []
        for store in self.plan.stores:
            for depth, target in zip((min(self.plan.depths), max(self.plan.depths)), TARGETS.get(store, ()), strict=False):
                if target is None:
                    continue
                rates = [self.at(each, clients, depth).median("ops_per_second") for each in (stores.ERDA_JOURNAL, store)]
                what = f"puts per second, Erda / {store.title}, {clients} x {depth}"
                found.append(Ratio(f"{store.name}_{depth}", what, rates[0] / rates[1], target))
        return [*found, Ratio("disk_share", "bytes put by Erda / the disk's sequential bytes", self.disk_share, DISK_SHARE)]


def about_disk(figures: Figures, origin: dict[str, Any]) -> str:
    disk = figures.disk
    memory = ", which is memory: a flush costs nothing, and nothing survives a power cut" if origin["file_system"] in IN_MEMORY else ""
    return (f"All files were on {origin['file_system']}{memory}. Without a store the disk takes "
            f"{charts.microseconds(disk.median('flushed', 'mean_us'))} in the mean for 4 KiB and fdatasync, "
            f"{charts.microseconds(disk.median('durable', 'mean_us'))} with RWF_DSYNC, and writes "
            f"{charts.size(disk.bytes_per_second)}/s in pieces of 1 MiB with a flush each.")


def table(figures: Figures) -> tuple[list[Column], list[list[str]]]:
    columns = [Column("Clients"), Column("In flight"), Column("Store", text=True), Column("puts/s"), Column("mean µs"),
               Column("p50"), Column("p99"), Column("Erda / store")]
    rows = []
    for entry in figures.measured:
        cell = entry.cell
        erda = figures.at(stores.ERDA_JOURNAL, cell.clients, cell.depth).median("ops_per_second")
        rate = entry.median("ops_per_second")
        rows.append([str(cell.clients), str(cell.depth), cell.store.title, f"{rate:,.0f}",
                     *(f"{entry.median(f'{name}_us'):,.0f}" for name in ("mean", "p50", "p99")),
                     "" if cell.store is stores.ERDA_JOURNAL else factor(erda / rate)])
    return columns, rows


def to_text(figures: Figures, origin: dict[str, Any]) -> str:
    plan = figures.plan
    parts = [
        f"{describe(origin['machine'])}; commit {describe_commit(origin['commit'])}",
        "; ".join(f"{name} {version}" for name, version in origin["versions"].items()),
        about_disk(figures, origin),
        f"\nPuts of {charts.size(plan.size)} that survive a power cut; medians of {plan.rounds} rounds",
        text_table(*table(figures)),
        "\n" + "\n".join(f"  {store.title}: {store.promise}" for store in plan.stores),
        "\nRatios with a target",
    ]
    parts += [f"  {ratio.value:>7.2f}   {ratio.what}; {ratio.wanted}: {_verdict(ratio)}" for ratio in figures.ratios()]
    return "\n".join(parts)


def _verdict(ratio: Ratio) -> str:
    return "reached" if ratio.reached else "not reached"


def to_json(figures: Figures, origin: dict[str, Any]) -> dict[str, Any]:
    plan = figures.plan
    return {
        **{name: origin[name] for name in ("machine", "commit", "versions", "command")},
        "server_commands": origin["servers"],
        "settings": {
            "rounds": plan.rounds, "seconds": plan.seconds, "value_size": plan.size, "records": plan.records, "clients": list(plan.clients),
            "depths": list(plan.depths), "key_bytes": 24, "distribution": "zipfian 0.99", "file_system": origin["file_system"],
        },
        "ratios": {ratio.name: {"what": ratio.what, "value": ratio.value, "target": ratio.target, "reached": ratio.reached}
                   for ratio in figures.ratios()},
        "stores": {store.name: {"title": store.title, "promise": store.promise} for store in plan.stores},
        "disk": {"bytes_per_second": figures.disk.bytes_per_second, "rounds": figures.disk.rounds},
        "results": [{
            "store": entry.cell.store.name, "clients": entry.cell.clients, "depth": entry.cell.depth,
            "median": {name: entry.median(name) for name in entry.runs[0]}, "rounds": entry.runs, "command": entry.command,
        } for entry in figures.measured],
    }


def to_page(figures: Figures, origin: dict[str, Any]) -> str:
    plan = figures.plan
    page = Page("Erda beside Redis, RocksDB and LMDB: durable puts", LEAD)
    page.cards([Card(f"{ratio.value:.2f}", ratio.what, f"Target: {ratio.wanted}, {_verdict(ratio)}.", ratio.reached)
                for ratio in figures.ratios()])
    for paragraph in (*METHOD, about_disk(figures, origin)):
        page.paragraph(paragraph)
    page.table(f"Puts of {charts.size(plan.size)}", *table(figures))
    page.table("The promise for an acknowledged put", [Column("Store", text=True), Column("Promise", text=True, wrap=True)],
               [[store.title, store.promise] for store in plan.stores])
    measured = f"{plan.rounds} rounds, each figure for {plan.seconds:g} s in each; keys of 24 bytes, zipfian 0.99"
    commands = [origin["command"], "", *origin["servers"].values(), "", *(entry.command for entry in figures.measured)]
    page.origin(origin["machine"], origin["commit"], [*origin["versions"].items(), ("Measured", measured)], commands)
    return page.html()
