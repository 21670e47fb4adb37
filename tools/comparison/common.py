"""What the parts share."""

from __future__ import annotations

import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class CompareError(Exception):
    """Something that the user is told in one line."""
