"""The plan of the measurements: which points, and how many operations."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from evaluation.common import (
    ALL_FIGURES,
    CPU,
    CPU_FIGURES,
    LATENCY,
    LATENCY_FIGURES,
    RATIO_SIZE,
    SCHEMES,
    THROUGHPUT,
    THROUGHPUT_FIGURES,
    WORKLOADS,
    Scheme,
)
from measuring.programs import ToolError

MIB = 1 << 20
RECORD_BYTES = 128  # At most, beside its value, with its slot in the index.


@dataclasses.dataclass(frozen=True)
class Point:
    """One place in one of the charts. Each round measures each scheme there once."""

    purpose: str
    workload: str
    value_size: int
    threads: int

    @property
    def server_sleeps(self) -> bool:
        """Whether the server sleeps as soon as it has nothing to do, so that its processor time is that of its work."""
        return self.purpose == CPU


@dataclasses.dataclass(frozen=True)
class Run:
    point: Point
    scheme: Scheme
    round: int  # From 1 on.

    @property
    def name(self) -> str:
        point = self.point
        return f"{point.purpose}-{point.workload}-{point.value_size}b-{point.threads}t-{self.scheme.name}-{self.round}"


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings that all points of a folder share."""

    lab: bool
    quick: bool
    seconds: float  # The time that a run is to take.
    records: int
    pool_bytes: int  # Of Erda over shm, at least.
    depth: int = 1

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def stored_bytes(self, value_size: int) -> int:
        return self.records * (value_size + RECORD_BYTES)


@dataclasses.dataclass(frozen=True)
class Plan:
    settings: Settings
    figures: Sequence[int | str]
    sizes: Sequence[int]
    threads: Sequence[int]
    rounds: int

    def points(self) -> list[Point]:
        """Returns the points in the order of the measurement: values of one size together."""
        found = [Point(LATENCY, workload.name, size, 1) for size in self.sizes for workload in self._workloads(LATENCY_FIGURES)]
        found += [
            Point(THROUGHPUT, workload.name, RATIO_SIZE, threads)
            for workload in self._workloads(THROUGHPUT_FIGURES)
            for threads in self.threads
        ]
        found += [
            Point(CPU, workload.name, size, 1)
            for figure, size in CPU_FIGURES.items() if figure in self.figures
            for workload in WORKLOADS
        ]
        return found

    def runs(self) -> list[Run]:
        """Returns the runs, round after round. In each round the schemes take turns at each point, beginning with
        another one."""
        return [
            Run(point, SCHEMES[(place + number) % len(SCHEMES)], number)
            for number in range(1, self.rounds + 1)
            for point in self.points()
            for place in range(len(SCHEMES))
        ]

    def _workloads(self, figures: dict[int, Any]) -> list[Any]:
        return [workload for figure, workload in figures.items() if figure in self.figures]


@dataclasses.dataclass(frozen=True)
class Extent:
    """The defaults of one way to run."""

    sizes: tuple[int, ...]
    threads: tuple[int, ...]
    rounds: int
    seconds: float
    records: int
    pool_bytes: int = 0


ALL_SIZES = (16, 64, 256, 1024, 4096)
EXTENTS = {  # By (lab, quick).
    (False, False): Extent(ALL_SIZES, (1, 2, 4, 8, 16), 5, 0.8, 100_000, 2048 * MIB),
    (False, True): Extent((16, 1024, 4096), (1, 2, 4), 3, 0.1, 20_000, 512 * MIB),
    (True, False): Extent(ALL_SIZES, (1, 2, 4, 8), 3, 1.0, 4000),
    (True, True): Extent((16, 1024), (1, 2, 4), 1, 0.4, 1000),
}


def parse_figures(text: str) -> list[int | str]:
    """Parses a list such as 14-17,26,table1."""
    found: set[int | str] = set()
    for part in text.lower().split(","):
        first, dash, last = part.partition("-")
        if part in (str(figure) for figure in ALL_FIGURES):
            found.add(int(part) if part.isdecimal() else part)
        elif dash and first.isdecimal() and last.isdecimal() and 14 <= int(first) <= int(last) <= 26:
            found.update(range(int(first), int(last) + 1))
        else:
            raise ToolError(f"there is no figure '{part}': give numbers from 14 to 26, or table1")
    return [figure for figure in ALL_FIGURES if figure in found]
