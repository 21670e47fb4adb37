"""Finds results, and computes the numbers of the report."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Iterable
from typing import Any

from evaluation.common import (
    ALL_FIGURES,
    CLEANING_FIGURE,
    CPU,
    CPU_FIGURES,
    ERDA,
    LATENCY,
    LATENCY_FIGURES,
    PAPER_CPU,
    PAPER_KOPS,
    PAPER_LATENCY_US,
    RATIO_SIZE,
    REDO,
    SCHEMES,
    TABLE,
    THROUGHPUT,
    THROUGHPUT_FIGURES,
    WORKLOADS,
    Scheme,
    Workload,
)
from evaluation.plan import Point
from evaluation.store import Store

OPERATIONS = ("create", "update", "delete")
STATES = ("idle", "cleaning")


@dataclasses.dataclass(frozen=True)
class Ratio:
    name: str
    what: str
    value: float
    paper: float | None = None
    target: float | None = None  # At most.
    more: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def reached(self) -> bool | None:
        return None if self.target is None else self.value <= self.target

    def to_json(self) -> dict[str, Any]:
        return {"what": self.what, "value": self.value, "paper": self.paper, "target": self.target, "reached": self.reached,
                **self.more}


def of_run(entry: dict[str, Any]) -> dict[str, float]:
    """Returns the numbers of one run of erda-ycsb."""
    operations = entry["result"]["operations"]
    run = entry["result"]["run"]
    kinds = {kind: run[kind] for kind in ("get", "put") if run[kind]["count"]}
    found = {
        "mean_us": sum(times["count"] * times["mean_ns"] for times in kinds.values())
        / sum(times["count"] for times in kinds.values()) / 1000,
        "ops_per_second": run["ops_per_second"],
        "server_us_per_op": run["server_cpu_seconds"] * 1e6 / operations,
        "nvm_bytes_per_op": run["nvm_bytes"] / operations,
    }
    for kind, times in kinds.items():
        for name in ("mean", "p50", "p99"):
            found[f"{kind}_{name}_us"] = times[f"{name}_ns"] / 1000
    return found


def over(first: float | None, second: float | None) -> float | None:
    return None if first is None or not second else first / second


def mean(values: Iterable[float | None]) -> float | None:
    """Returns the mean, or None if one value is unknown."""
    known = list(values)
    return None if not known or None in known else statistics.fmean(value for value in known if value is not None)


class Results:
    def __init__(self, store: Store) -> None:
        self.origin = store.origin
        self.points = store.points()
        self.bytes = store.get("bytes")
        self.cleaning = store.get("cleaning")
        self.guest = store.get("guest")
        self._rounds: dict[tuple[Point, str], list[dict[str, float]]] = {}
        for entry in self.points:
            point = Point(entry["purpose"], entry["workload"], entry["value_size"], entry["threads"])
            self._rounds.setdefault((point, entry["scheme"]), []).append(of_run(entry))

    @property
    def lab(self) -> bool:
        return bool(self.origin["conditions"]["lab"])

    @property
    def rounds(self) -> int:
        return max((entry["round"] for entry in self.points), default=0)

    def at(self, purpose: str, workload: str, size: int, threads: int, scheme: Scheme, name: str) -> float | None:
        """Returns the median of the rounds."""
        rounds = self._rounds.get((Point(purpose, workload, size, threads), scheme.name), [])
        values = [numbers[name] for numbers in rounds if name in numbers]
        return statistics.median(values) if values else None

    # Known values.

    def latency_sizes(self, workload: str) -> list[int]:
        return sorted({point.value_size for point, _ in self._rounds if point.purpose == LATENCY and point.workload == workload})

    def threads(self, workload: str) -> list[int]:
        return sorted({point.threads for point, _ in self._rounds if point.purpose == THROUGHPUT and point.workload == workload})

    def cpu_sizes(self) -> list[int]:
        return sorted({point.value_size for point, _ in self._rounds if point.purpose == CPU})

    def latency_figures(self) -> list[tuple[int, Workload]]:
        return [(figure, workload) for figure, workload in LATENCY_FIGURES.items() if self.latency_sizes(workload.name)]

    def throughput_figures(self) -> list[tuple[int, Workload]]:
        return [(figure, workload) for figure, workload in THROUGHPUT_FIGURES.items() if self.threads(workload.name)]

    def cpu_figures(self) -> list[tuple[int, int]]:
        sizes = self.cpu_sizes()
        return [(figure, size) for figure, size in CPU_FIGURES.items() if size in sizes]

    def lacks(self) -> list[str]:
        """Returns the names, for people, of the figures without results."""
        known = {figure for figure, _ in (*self.latency_figures(), *self.throughput_figures(), *self.cpu_figures())}
        if self.cleaning:
            known.add(CLEANING_FIGURE)
        names = [f"figure {figure}" for figure in ALL_FIGURES if figure != TABLE and figure not in known]
        return names if self.bytes else [*names, "table 1"]

    # Of figures.

    def latency(self, workload: str, size: int, scheme: Scheme, name: str = "mean_us") -> float | None:
        return self.at(LATENCY, workload, size, 1, scheme, name)

    def latency_average(self, workload: str, scheme: Scheme) -> float | None:
        """Returns the average over the value sizes, as the paper does."""
        return mean(self.latency(workload, size, scheme) for size in self.latency_sizes(workload))

    def rate(self, workload: str, threads: int, scheme: Scheme) -> float | None:
        return self.at(THROUGHPUT, workload, RATIO_SIZE, threads, scheme, "ops_per_second")

    def rate_average(self, workload: str, scheme: Scheme) -> float | None:
        return mean(self.rate(workload, threads, scheme) for threads in self.threads(workload))

    def cpu(self, workload: str, size: int, scheme: Scheme) -> float | None:
        return self.at(CPU, workload, size, 1, scheme, "server_us_per_op")

    def cpu_over_erda(self, workload: str, scheme: Scheme) -> float | None:
        """Returns the average over the value sizes of the cost over Erda's."""
        return mean(over(self.cpu(workload, size, scheme), self.cpu(workload, size, ERDA)) for size in self.cpu_sizes())

    def written(self, size: int, scheme: Scheme, operation: str, which: str = "counted") -> float | None:
        """Returns bytes of NVM. For Erda: the mean of its two put paths."""
        rows = self.bytes["result"]["rows"] if self.bytes else []
        return mean(row[operation][which] for row in rows if row["scheme"] == scheme.name and row["value_size"] == size)

    def byte_sizes(self) -> list[int]:
        return sorted({row["value_size"] for row in self.bytes["result"]["rows"]}) if self.bytes else []

    def cleaning_latency(self, workload_key: str, state: str) -> float | None:
        """Returns the mean of all gets and puts."""
        if not self.cleaning:
            return None
        slices = self.cleaning["result"]["workloads"][workload_key][state]
        kinds = [slices[kind] for kind in ("get", "put") if kind in slices]
        return sum(times["count"] * times["mean_us"] for times in kinds) / sum(times["count"] for times in kinds)

    # Ratios.

    def ratios(self) -> list[Ratio]:
        """Returns all ratios that follow from the results."""
        found: list[Ratio] = []

        def add(name: str, what: str, value: float | None, **more: Any) -> None:
            if value is not None:
                found.append(Ratio(name, what, value, **more))

        for workload in WORKLOADS:
            paper = PAPER_LATENCY_US[workload.name]
            kind = "put" if workload.name == "update" else "get"
            values = [self.latency(workload.name, RATIO_SIZE, scheme) for scheme in (ERDA, REDO)]
            medians = [self.latency(workload.name, RATIO_SIZE, scheme, f"{kind}_p50_us") for scheme in (ERDA, REDO)]
            add(f"{workload.key}_latency_1k", f"mean latency of {workload.title}, values of 1 KiB: Erda / Redo Logging",
                over(*values), paper=paper[0] / paper[1], target=0.60 if workload.name == "C" else None,
                more={"erda_us": values[0], "redo_us": values[1], f"of_{kind}_p50": over(*medians)})
            add(f"{workload.key}_latency", f"latency of {workload.title}, average over the value sizes: Erda / Redo Logging",
                over(self.latency_average(workload.name, ERDA), self.latency_average(workload.name, REDO)),
                paper=paper[0] / paper[1])
        for workload in WORKLOADS:
            kops = PAPER_KOPS.get(workload.name)
            add(f"{workload.key}_throughput", f"operations per second of {workload.title}, average over the threads: "
                "Erda / Redo Logging", over(self.rate_average(workload.name, ERDA), self.rate_average(workload.name, REDO)),
                paper=kops[0] / kops[1] if kops else 1.0)
        for workload in WORKLOADS:
            normalised = PAPER_CPU.get(workload.name)
            add(f"{workload.key}_server_cpu", f"the server's processor time in {workload.title}, average over the value sizes: "
                "Redo Logging / Erda", self.cpu_over_erda(workload.name, REDO), paper=normalised[0] if normalised else None)
        for operation in OPERATIONS:
            values = [self.written(RATIO_SIZE, scheme, operation) for scheme in (ERDA, REDO)]
            formulas = [self.written(RATIO_SIZE, scheme, operation, "paper") for scheme in (ERDA, REDO)]
            add(f"{operation}_bytes_1k", f"NVM bytes for one {operation}, values of 1 KiB: Erda / Redo Logging", over(*values),
                paper=over(*formulas), target=0.53 if operation == "update" else None,
                more={"erda_bytes": values[0], "redo_bytes": values[1]})
        for workload in WORKLOADS:
            add(f"{workload.key}_cleaning", f"mean latency of {workload.title}, values of 1 KiB: while cleaning / normal",
                over(self.cleaning_latency(workload.key, "cleaning"), self.cleaning_latency(workload.key, "idle")))
        return found


def to_json(results: Results) -> dict[str, Any]:
    ratios = results.ratios()
    figures: dict[str, Any] = {}

    def of_schemes(value: Callable[[Scheme], float | None]) -> dict[str, float | None]:
        return {scheme.name: value(scheme) for scheme in SCHEMES}

    for figure, workload in results.latency_figures():
        figures[str(figure)] = {"workload": workload.name, "threads": 1, "points": [
            {"value_size": size, **{
                name: of_schemes(lambda scheme: results.latency(workload.name, size, scheme, name))
                for name in ("mean_us", "get_p50_us", "put_p50_us", "get_p99_us", "put_p99_us")
            }} for size in results.latency_sizes(workload.name)
        ]}
    for figure, workload in results.throughput_figures():
        figures[str(figure)] = {"workload": workload.name, "value_size": RATIO_SIZE, "points": [
            {"threads": threads, "ops_per_second": of_schemes(lambda scheme: results.rate(workload.name, threads, scheme))}
            for threads in results.threads(workload.name)
        ]}
    for figure, size in results.cpu_figures():
        figures[str(figure)] = {"value_size": size, "points": [
            {"workload": workload.name,
             "server_us_per_op": of_schemes(lambda scheme: results.cpu(workload.name, size, scheme)),
             "over_erda": of_schemes(lambda scheme: over(results.cpu(workload.name, size, scheme),
                                                         results.cpu(workload.name, size, ERDA)))}
            for workload in WORKLOADS
        ]}
    if results.cleaning:
        figures["26"] = {"value_size": results.cleaning["result"]["value_bytes"], "points": [
            {"workload": workload.name, **{f"{state}_mean_us": results.cleaning_latency(workload.key, state) for state in STATES}}
            for workload in WORKLOADS
        ]}
    if results.bytes:
        figures["table1"] = {"key_size": results.bytes["result"]["key_size"], "rows": results.bytes["result"]["rows"]}
    return {
        **results.origin,
        "guest": results.guest["machine"] if results.guest else None,
        "rounds": results.rounds,
        "ratios": {ratio.name: ratio.value for ratio in ratios},
        "ratio_details": {ratio.name: ratio.to_json() for ratio in ratios},
        "figures": figures,
        "bytes": results.bytes,
        "cleaning": results.cleaning,
        "points": results.points,
    }
