"""How far a tool is."""

from __future__ import annotations

import sys


class Progress:
    """A line on a terminal that is written over; else one line for each part."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._terminal = sys.stderr.isatty()

    def part(self, text: str) -> None:
        self.clear()
        print(text, file=sys.stderr, flush=True)

    def step(self, text: str) -> None:
        self._done += 1
        if self._terminal:
            print(f"\r\033[K[{self._done}/{self._total}] {text}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
