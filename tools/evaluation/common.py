"""Names and statements of the paper that the parts share."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Scheme:
    name: str  # Of erda-ycsb --scheme.
    title: str
    colour: int


ERDA = Scheme("erda", "Erda", 0)
REDO = Scheme("redo", "Redo Logging", 1)
RAW = Scheme("raw", "Read After Write", 2)
SCHEMES = (ERDA, REDO, RAW)


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str  # Of erda-ycsb --workload.
    key: str  # In JSON, as erda-bench cleaning names them.
    title: str
    mix: str


WORKLOADS = (
    Workload("C", "ycsb_c", "YCSB-C", "100 % read"),
    Workload("B", "ycsb_b", "YCSB-B", "95 % read, 5 % write"),
    Workload("A", "ycsb_a", "YCSB-A", "50 % read, 50 % write"),
    Workload("update", "update", "Update only", "100 % write"),
)

# The figures' numbers, in the order of the workloads or of the value sizes.
LATENCY_FIGURES = dict(zip((14, 15, 16, 17), WORKLOADS, strict=True))
THROUGHPUT_FIGURES = dict(zip((18, 19, 20, 21), WORKLOADS, strict=True))
CPU_FIGURES = {22: 16, 23: 64, 24: 256, 25: 1024}
CLEANING_FIGURE = 26
TABLE = "table1"
ALL_FIGURES: tuple[int | str, ...] = (*range(14, 27), TABLE)

LATENCY, THROUGHPUT, CPU = "latency", "throughput", "cpu"  # The purposes of a point.
RATIO_SIZE = 1024

# The statements of section 5 of the paper, by workload: of Erda, Redo Logging and Read After Write.
PAPER_LATENCY_US = {"C": (62.84, 92.7, 92.48), "B": (62.76, 94.71, 94.25), "A": (74.64, 100.0, 100.18),
                    "update": (102.1, 103.89, 105.47)}  # Averages over the value sizes.
PAPER_KOPS = {"C": (96.35, 62.93, 63.28), "B": (92.57, 61.78, 62.57), "A": (79.77, 57.60, 58.32)}  # Over the threads.
# Redo Logging and Read After Write over Erda, averages over the value sizes. For C, Erda's time is 0, so that they are
# infinite.
PAPER_CPU = {"B": (20.09, 20.81), "A": (1.89, 1.96), "update": (1.17, 1.11)}
