"""A step of the test command: something that runs, and how many passed and failed in it."""

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
    report: str = ""  # for the reader, if something failed


@dataclass
class Step:
    name: str  # of its log
    title: str
    run: Callable  # run(Log) -> Outcome
    needs: tuple = ()  # steps that must have passed
    after: tuple = ()  # steps that must have ended
    lane: str = "main"  # steps of one lane run one after the other, lanes beside each other
    counts_tests: bool = False
    done: threading.Event = field(default_factory=threading.Event)
    ok: bool = False


class Log:
    """Where a step writes what its commands say, and the processor time of those."""

    def __init__(self, path):
        self.path = path
        self.cpu_seconds = 0.0
        self._file = open(path, "w", buffering=1, errors="replace")

    def call(self, command, timeout=None, env=None):
        """Runs a command; its status."""
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
    """For a step that is one command."""
    return commands([words], timeout, env)


def commands(lines, timeout=None, env=None):
    """For a step that is some commands, one after the other; the first that fails ends it."""

    def run(log):
        for words in lines:
            status = log.call(words, timeout, env)
            if status != 0:
                return Outcome(0, 1, log.tail() + f"\nit ended with status {status}")
        return Outcome(1, 0)

    return run


def check(function):
    """For a step that is a function which returns what it found wrong, as text."""

    def run(log):
        found = function()
        log.say(found)
        return Outcome(0, 1, found) if found else Outcome(1, 0)

    return run


def output_of(words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def seconds_since(start):
    return time.monotonic() - start
