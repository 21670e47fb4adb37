"""The work of a server: the structures of the C API in both libraries, and the classes of the module."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_size_t, c_uint64
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True)
class LatencyHistogram:
    """Durations of events of one kind, in seconds, counted in buckets.

    counts: for each bucket, the events that took at most its upper bound, and more than the bound before it.
    upper_bounds: each is twice the one before; the last is infinite.
    sum: the sum of all durations.

    now - earlier has the events since an earlier reading of the same server; a + b has the events of both.
    """

    counts: tuple[int, ...]
    upper_bounds: tuple[float, ...]
    sum: float

    @property
    def count(self) -> int:
        """The sum of all buckets."""
        return sum(self.counts)

    def quantile(self, share: float) -> float:
        """Returns an estimate of the duration that this share of the events (0 to 1) did not exceed; 0.0 without
        events.

        The estimate assumes that the durations in a bucket are spread evenly over it, so it lies in the right bucket.
        For the last bucket, returns its lower bound.
        """
        if not 0 <= share <= 1:
            raise ValueError(f"a share must be from 0 to 1, not {share}")
        rank = share * self.count
        below = 0
        begin = 0.0
        for here, end in zip(self.counts, self.upper_bounds):
            if here > 0 and below + here >= rank:
                if end == float("inf"):
                    return begin
                return begin + (end - begin) * max(0.0, rank - below) / here
            below += here
            begin = end
        return 0.0

    def _with(self, other: LatencyHistogram, sign: int) -> LatencyHistogram:
        if self.upper_bounds != other.upper_bounds:
            raise ValueError("the histograms have different buckets")
        counts = tuple(mine + sign * its for mine, its in zip(self.counts, other.counts))
        return LatencyHistogram(counts, self.upper_bounds, self.sum + sign * other.sum)

    def __add__(self, other: LatencyHistogram) -> LatencyHistogram:
        return self._with(other, 1) if isinstance(other, LatencyHistogram) else NotImplemented

    def __sub__(self, earlier: LatencyHistogram) -> LatencyHistogram:
        return self._with(earlier, -1) if isinstance(earlier, LatencyHistogram) else NotImplemented


class Outcomes(NamedTuple):
    """The number of requests with each outcome. not_found and conflict are answers like ok."""

    ok: int
    not_found: int
    invalid_argument: int
    conflict: int
    resource_exhausted: int
    unavailable: int
    timeout: int
    permission_denied: int
    corruption: int
    internal: int


@dataclass(frozen=True)
class OperationStats:
    """Requests of one kind. Gets and scans are one-sided: no server sees or counts them.

    kind: such as "put_inline"; docs/operations.md names and describes all.
    time: from when the shard saw the request until it had handed over the answer. The shard counts a request in
        outcomes just before it hands over the answer, and here just after that.
    """

    kind: str
    outcomes: Outcomes
    time: LatencyHistogram

    @property
    def count(self) -> int:
        """The sum of all outcomes."""
        return sum(self.outcomes)


@dataclass(frozen=True)
class FabricStats:
    """Connections and requests of one fabric.

    scheme: "shm" or "verbs".
    device: the NIC's name, at most 23 bytes of it; empty for shm.
    connections: connections now, one for each client and shard.
    requests: requests that were answered.
    refused: requests answered with an error, and clients that a shard did not let in.
    violations: connections closed because the peer broke the protocol.
    """

    scheme: str
    device: str
    connections: int
    requests: int
    refused: int
    violations: int


@dataclass(frozen=True)
class Activity:
    """Counts and durations of a server's work since it started: sums over all shards.

    A reader copies the numbers while they grow, so one may be older than another.

    operations: every kind of request, also those without requests. activity["put_inline"] is one kind.
    persist: the time that a step of a shard waited for the NVM; the shard times one such step in 64.
    hold: the time from when a shard asked the disk of the pool's journal to hold what it had stored, until the disk
        held it; nothing without a journal.
    clean_region: the time from the choice of a region until the cleaner has looked at all of it.
    """

    operations: tuple[OperationStats, ...]
    fabrics: tuple[FabricStats, ...]
    persist: LatencyHistogram
    hold: LatencyHistogram
    clean_region: LatencyHistogram

    def __getitem__(self, kind: str) -> OperationStats:
        for operation in self.operations:
            if operation.kind == kind:
                return operation
        raise KeyError(kind)


class LatencyHistogramInC(ctypes.Structure):
    _fields_ = [("counts", POINTER(c_uint64)), ("upper_bounds_ns", POINTER(c_uint64)), ("buckets", c_size_t),
                ("count", c_uint64), ("sum_ns", c_uint64)]


class OperationStatsInC(ctypes.Structure):
    _fields_ = [("kind", c_char_p), ("outcomes", POINTER(c_uint64)), ("outcome_count", c_size_t), ("count", c_uint64),
                ("time", POINTER(LatencyHistogramInC))]


class FabricStatsInC(ctypes.Structure):
    _fields_ = [("scheme", c_char_p), ("device", c_char_p), ("connections", c_uint64), ("requests", c_uint64),
                ("refused", c_uint64), ("violations", c_uint64)]


class ActivityInC(ctypes.Structure):
    _fields_ = [("operations", POINTER(POINTER(OperationStatsInC))), ("operation_count", c_size_t),
                ("fabrics", POINTER(POINTER(FabricStatsInC))), ("fabric_count", c_size_t),
                ("persist", POINTER(LatencyHistogramInC)), ("clean_region", POINTER(LatencyHistogramInC)),
                ("hold", POINTER(LatencyHistogramInC))]


def _histogram(pointer: Any) -> LatencyHistogram:
    told = pointer.contents
    bounds = [bound / 1e9 for bound in told.upper_bounds_ns[:told.buckets - 1]]
    return LatencyHistogram(tuple(told.counts[:told.buckets]), (*bounds, float("inf")), told.sum_ns / 1e9)


def _operation(told: OperationStatsInC) -> OperationStats:
    return OperationStats(told.kind.decode(), Outcomes(*told.outcomes[:len(Outcomes._fields)]), _histogram(told.time))


def _fabric(told: FabricStatsInC) -> FabricStats:
    return FabricStats(told.scheme.decode(), told.device.decode(), told.connections, told.requests, told.refused,
                       told.violations)


def copy(told: ActivityInC) -> Activity:
    """Copies everything out of the structure, which the caller may free afterwards."""
    return Activity(tuple(_operation(told.operations[i].contents) for i in range(told.operation_count)),
                    tuple(_fabric(told.fabrics[i].contents) for i in range(told.fabric_count)),
                    _histogram(told.persist), _histogram(told.hold), _histogram(told.clean_region))
