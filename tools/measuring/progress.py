"""Shows the progress of a tool."""

from __future__ import annotations

import sys
import threading
import time

QUIET_SECONDS = 8
"""The longest silence if the output is no terminal."""


class Progress:
    """On a terminal: one line that it overwrites. Elsewhere: one line for each part, and one every few seconds."""

    def __init__(self, total: int, quiet_seconds: float = QUIET_SECONDS) -> None:
        self._total = total
        self._done = 0
        self._terminal = sys.stderr.isatty()
        self._quiet_seconds = quiet_seconds
        self._text = ""
        self._begin = time.monotonic()
        self._ended = threading.Event()
        self._teller: threading.Thread | None = None

    def part(self, text: str) -> None:
        self._wipe()
        print(text, file=sys.stderr, flush=True)
        self._text = text
        if self._teller is None and not self._terminal:
            self._teller = threading.Thread(target=self._tell, daemon=True)
            self._teller.start()

    def step(self, text: str) -> None:
        self._done += 1
        self._text = text
        if self._terminal:
            print(f"\r\033[K[{self._done}/{self._total}] {text}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        self._wipe()
        self._ended.set()
        if self._teller is not None:
            self._teller.join()

    def _wipe(self) -> None:
        if self._terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def _tell(self) -> None:
        """Also reports in the middle of a step: a load may take a minute."""
        while not self._ended.wait(self._quiet_seconds):
            passed = time.monotonic() - self._begin
            print(f"[{self._done}/{self._total}] {self._text}, after {passed:.0f} s", file=sys.stderr, flush=True)
