"""A disk with a volatile write cache: two images, of which a power cut leaves one."""

from __future__ import annotations

import mmap
import os
import pathlib
import random
import socket
import threading

from lab.common import LabError
from lab.nbd import serve

SECTOR = 512
REQUESTS = 6  # A power cut comes before one of this number of requests.


class Disk:
    """A write goes into the volatile image. A flush copies it to the durable one. A power cut copies the durable
    image to the volatile one, so it loses what was not flushed. Half of the cuts keep some of those sectors instead:
    a disk may have written any of them by itself, in any order.
    """

    def __init__(self, size: int, seed: int, file: pathlib.Path | None = None) -> None:
        if size % SECTOR or size < 1 << 20:
            raise LabError(f"the size of a disk must be a multiple of {SECTOR} bytes, at least 1 MiB; not {size} bytes")
        self.size = size
        self.random = random.Random(seed)
        if file:
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        else:
            descriptor = os.memfd_create("disk", os.MFD_CLOEXEC)
        try:
            present = os.fstat(descriptor).st_size
            if present not in (0, size):
                raise LabError(f"{file} has {present} bytes, not {size}: name another file")
            os.ftruncate(descriptor, size)
            self.durable = mmap.mmap(descriptor, size)
        finally:
            os.close(descriptor)
        self.volatile = mmap.mmap(-1, size)
        if present:
            self.volatile[:] = self.durable[:]
        self.unflushed: set[int] = set()  # numbers of sectors
        self.lies = False  # From now on a flush does nothing, and says ok. The next power cut loses all since.
        self.requests_left: int | None = None  # The write or flush after these waits for the power cut.
        self.request_waits = threading.Event()
        self.power_off = threading.Event()
        self.thread: threading.Thread | None = None
        self._count_anew()

    def _count_anew(self) -> None:
        self.flushes = 0
        self.sectors_written = 0

    def read(self, offset: int, size: int) -> bytes:
        return self.volatile[offset : offset + size]

    def write(self, offset: int, data: bytes) -> None:
        self._wait_for_cut()
        self.volatile[offset : offset + len(data)] = data
        sectors = range(offset // SECTOR, (offset + len(data)) // SECTOR)
        self.unflushed.update(sectors)
        self.sectors_written += len(sectors)

    def flush(self) -> None:
        self._wait_for_cut()
        self.flushes += 1
        if not self.lies:
            for sector in self.unflushed:
                self._copy(sector, self.volatile, self.durable)
            self.unflushed.clear()

    def _wait_for_cut(self) -> None:
        """Ends the service if the power is cut before this request."""
        if self.requests_left == 0:
            self.request_waits.set()
            self.power_off.wait()
            raise ConnectionAbortedError
        if self.requests_left:
            self.requests_left -= 1

    def await_cut(self, seconds: float) -> None:
        """Lets the power cut come just before one of the next writes or flushes, which gets no answer. Waits for that
        request, but not longer than this time."""
        self.requests_left = self.random.randrange(REQUESTS)
        self.request_waits.wait(seconds)

    def cut_power(self) -> str:
        """Returns what the cut took. REQUIRES: the machine has no power any more."""
        self.power_off.set()
        if self.thread:
            self.thread.join()
        kept = 0 if self.lies else self.random.choice((0, self.random.random()))
        lost = 0
        for sector in sorted(self.unflushed):
            place = slice(sector * SECTOR, (sector + 1) * SECTOR)
            if self.random.random() < kept:
                self._copy(sector, self.volatile, self.durable)
            else:
                lost += self.volatile[place] != self.durable[place]
                self._copy(sector, self.durable, self.volatile)
        told = (
            f"it lost {lost} of {len(self.unflushed)} sectors that were not flushed; since its power came on it had got "
            f"{self.sectors_written} sectors and {self.flushes} flushes" + (", and lied" if self.lies else "")
        )
        self.unflushed.clear()
        self.lies = False
        self.requests_left = None
        self.request_waits.clear()
        self.power_off.clear()
        self._count_anew()
        return told

    @staticmethod
    def _copy(sector: int, source: mmap.mmap, target: mmap.mmap) -> None:
        begin = sector * SECTOR
        target[begin : begin + SECTOR] = source[begin : begin + SECTOR]

    def connect(self) -> socket.socket:
        """Returns a socket on which a thread serves the disk until the other end is closed."""
        if self.thread:
            self.thread.join()
        ours, theirs = socket.socketpair()
        self.thread = threading.Thread(target=serve, args=(ours, self, SECTOR), daemon=True)
        self.thread.start()
        return theirs
