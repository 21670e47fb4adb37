"""Arguments, exit codes and signals."""

from __future__ import annotations

import argparse
import signal
import sys
import types
from collections.abc import Callable

from measuring.programs import ToolError

EXIT_FAILURE = 1


class Interrupted(BaseException):
    """A signal asks the tool to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


def run(name: str, work: Callable[[], int], stopped: str) -> int:
    """Returns the exit code of the work, or of the signal that ended it. SIGINT, SIGTERM and SIGHUP let the work clean
    up; a second signal is ignored."""
    heeded = [number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
              if signal.getsignal(number) != signal.SIG_IGN]  # As under nohup.

    def interrupt(number: int, _: types.FrameType | None) -> None:
        for each in heeded:
            signal.signal(each, signal.SIG_IGN)
        raise Interrupted(number)

    for number in heeded:
        signal.signal(number, interrupt)
    try:
        return work()
    except (ToolError, OSError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return EXIT_FAILURE
    except Interrupted as interrupted:
        print(f"{name}: {stopped}", file=sys.stderr)
        return interrupted.exit_code


def size_up_to(most: int) -> Callable[[str], int]:
    """Returns a parser of sizes such as 64, 64K, 1M."""
    factors = {"K": 1 << 10, "M": 1 << 20}

    def parse(text: str) -> int:
        unit = text[-1:].upper()
        digits = text[:-1] if unit in factors else text
        value = int(digits) * factors.get(unit, 1) if digits.isdecimal() and len(digits) < 10 else 0
        if not 1 <= value <= most:
            raise argparse.ArgumentTypeError(f"'{text}' is not a size from 1 to {most >> 10}K")
        return value

    return parse


def number_from(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text) if text.isdecimal() and len(text) < 10 else low - 1
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"'{text}' is not a number from {low} to {high}")
        return value

    return parse


def list_of(item: Callable[[str], int]) -> Callable[[str], list[int]]:
    def parse(text: str) -> list[int]:
        return sorted({item(part) for part in text.split(",")})

    return parse
