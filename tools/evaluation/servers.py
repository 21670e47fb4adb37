"""The servers of the three schemes: over shm with pools in memory, or over verbs with one DAX device that they use in
turn."""

from __future__ import annotations

import dataclasses
import itertools
import mmap
import os
import pathlib

from evaluation.common import ERDA, SCHEMES, Scheme
from evaluation.plan import MIB, Settings
from measuring.programs import Server, ToolError, available_memory, require_built
from report import charts

SUPERBLOCK_BYTES = 2 * MIB  # The beginning of a pool. Zeroes there remove the pool from a device.
START_PORT = 7700
PORTS = 200


@dataclasses.dataclass(frozen=True)
class Place:
    """The addresses of servers, and the places of their pools."""

    build: pathlib.Path
    folder: pathlib.Path  # For sockets and logs.
    host: str | None = None  # Of an RDMA device; None: shm.
    device: pathlib.Path | None = None
    device_bytes: int = 0

    @property
    def one_at_a_time(self) -> bool:
        return self.device is not None


_numbers = itertools.count()


def on_processors(threads: int | None) -> list[str]:
    """Returns the command that chooses processors for a server (None), or for a client with this number of threads. The
    server runs on the last processor. The clients run on others as long as there is one for each thread. Otherwise they
    would share one in some runs and not in others.
    """
    here = sorted(os.sched_getaffinity(0))
    if len(here) == 1:
        return []
    chosen = here[-1:] if threads is None else here[:-1] if threads < len(here) else here
    return ["taskset", "-c", ",".join(map(str, chosen))]


def start(place: Place, scheme: Scheme, settings: Settings, value_size: int, sleeps: bool) -> Server:
    """Starts a server with a new pool that has room for all records, and more."""
    number = next(_numbers)
    if place.device:
        pool, size = str(place.device), place.device_bytes
        _forget(place.device)
    else:
        pool, size = "dram:", pool_bytes(scheme, settings, value_size)
    address = (
        f"verbs://{place.host}:{START_PORT + number % PORTS}" if place.host else f"shm:{place.folder}/{scheme.name}{number}.sock"
    )
    arguments = ["--pool", pool, "--size", str(size), "--listen", address]
    if sleeps:
        arguments += ["--spin-us", "0"]
    if scheme is ERDA:
        # Over RDMA the operator must allow the paper's path, in which clients write where they reserved.
        program, more = "erda-server", ["--shards", "1", "--pool-writes", "everybody"]
    else:
        program, more = "erda-scheme-server", ["--scheme", scheme.name]
    command = [*on_processors(None), str(place.build / "bin" / program), *arguments, *more]
    return Server(f"{scheme.name}{number}", command, address, place.folder, lambda server: server.said(f"{program}: ready"))


def pool_bytes(scheme: Scheme, settings: Settings, value_size: int) -> int:
    """Returns a size. Erda's log has room for a run of puts. The other schemes overwrite in place, and need room for
    the records alone."""
    stored = settings.stored_bytes(value_size)
    return max(settings.pool_bytes, 4 * stored) if scheme is ERDA else max(256 * MIB, 3 * stored)


def _forget(device: pathlib.Path) -> None:
    """Removes the pool that an earlier server left on the device."""
    descriptor = os.open(device, os.O_RDWR)
    try:
        with mmap.mmap(descriptor, SUPERBLOCK_BYTES) as memory:
            memory[:] = bytes(SUPERBLOCK_BYTES)
    finally:
        os.close(descriptor)


def require_programs(build: pathlib.Path) -> None:
    require_built(build, ("erda-server", "erda-scheme-server", "erda-ycsb", "erda-bench", "erda-cli"))


def require_memory(settings: Settings, value_size: int) -> None:
    """Checks the memory for all three servers with values of this size at once."""
    available = available_memory()
    needed = sum(pool_bytes(scheme, settings, value_size) for scheme in SCHEMES) + 512 * MIB
    if available < needed:
        raise ToolError(f"this needs {charts.size(needed)} of memory, and {charts.size(available)} are free; see --records")
