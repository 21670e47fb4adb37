"""Names that the parts of the lab share."""

from __future__ import annotations

import pathlib
import sys

TOOLS = pathlib.Path(__file__).resolve().parent.parent
LAB = TOOLS / "lab"

EXIT_LAB = 125  # A guest or the lab itself failed.


class LabError(Exception):
    """An error that is reported to the user in one line."""


class Interrupted(BaseException):
    """A signal asks the lab to end, or no process reads its output any more."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.exit_code = 128 + signal_number


def say(text: str) -> None:
    print(f"rdma-lab: {text}", file=sys.stderr, flush=True)
