"""A step of the test command: its work, and how many checks of it passed and failed."""

import subprocess
import threading
import time
from dataclasses import dataclass, field
from typing import Callable

from . import process

REPORT_LINES = 60


@dataclass
class Outcome:
    passed: int
    failed: int
    report: str = ""  # For the reader, after a failure.
    note: str = ""  # For the reader of the step's line.


@dataclass
class Step:
    name: str  # Also the name of its log.
    title: str
    run: Callable  # run(Log) -> Outcome.
    needs: tuple = ()  # Steps that must have passed.
    after: tuple = ()  # Steps that must have ended.
    lane: str = "main"  # Steps of one lane run one after the other, lanes in parallel.
    counts_tests: bool = False
    done: threading.Event = field(default_factory=threading.Event)
    ok: bool = False


class Log:
    """The log of a step: the output of its commands, and their processor time."""

    def __init__(self, path):
        self.path = path
        self.cpu_seconds = 0.0
        self._file = open(path, "w", buffering=1, errors="replace")

    def call(self, command, timeout=None, env=None):
        """Runs a command. Returns its status."""
        self._file.flush()
        ended = process.run([str(word) for word in command], self._file, timeout, env)
        self.cpu_seconds += ended.cpu_seconds
        if ended.status == 124:
            self.say(f"it did not end within {timeout} s")
        return ended.status

    def say(self, text):
        self._file.write(text + "\n")

    def tail(self, lines=REPORT_LINES):
        self._file.flush()
        with open(self.path, errors="replace") as file:
            return "\n".join(file.read().splitlines()[-lines:])

    def close(self):
        self._file.close()


def command(*words, timeout=None, env=None):
    """Returns the work of a step with one command."""
    return commands([words], timeout, env)


def commands(lines, timeout=None, env=None):
    """Returns the work of a step with several commands, one after the other. The first failure ends it."""

    def run(log):
        for words in lines:
            status = log.call(words, timeout, env)
            if status != 0:
                return Outcome(0, 1, log.tail() + f"\nit ended with status {status}")
        return Outcome(1, 0)

    return run


def check(function):
    """Returns the work of a step that calls a function, which returns its findings as text."""

    def run(log):
        found = function()
        log.say(found)
        return Outcome(0, 1, found) if found else Outcome(1, 0)

    return run


def output_of(words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def seconds_since(start):
    return time.monotonic() - start
