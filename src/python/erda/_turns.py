"""Turns: the lock of a client or server, which a fork leaves to the parent process."""

from __future__ import annotations

import os
import threading

from ._native import InvalidArgumentError


class Turns:
    """The lock of an object that belongs to the process that made it. A child of a fork must not wait for the lock: a
    thread that exists only in the parent may hold it forever."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def forked(self) -> bool:
        return os.getpid() != self._process

    def locked(self) -> bool:
        return self._lock.locked()

    def check(self) -> None:
        if self.forked:
            raise InvalidArgumentError(f"this {self._what} was made before a fork, and belongs to the parent process: "
                                       "make another one in the child, or let multiprocessing spawn")

    def __enter__(self) -> None:
        self.check()
        self._lock.acquire()

    def __exit__(self, *_error: object) -> None:
        self._lock.release()
