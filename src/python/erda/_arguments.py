"""Arguments of Client and Server: what programs give, as the C API takes it."""

from __future__ import annotations

from typing import Union

from ._native import InvalidArgumentError

Bytes = Union[bytes, bytearray, memoryview, str]

POLLING = {"adaptive": 0, "busy": 1, "sleep": 2}


def as_bytes(data: Bytes) -> bytes:
    if isinstance(data, bytes):
        return data
    if isinstance(data, str):
        return data.encode()
    if isinstance(data, (bytearray, memoryview)):
        return bytes(data)
    raise TypeError(f"a key or value must be bytes or str, not {type(data).__name__}")


def as_milliseconds(seconds: float, what: str) -> int:
    try:
        return round(seconds * 1000)
    except (OverflowError, ValueError):  # an infinity, or no number
        raise InvalidArgumentError(f"{what} must be a finite number of seconds, not {seconds}") from None


def choice(choices: dict[str, int], name: str, what: str) -> int:
    if name not in choices:
        raise InvalidArgumentError(f"{what} must be one of {', '.join(choices)}, not {name!r}")
    return choices[name]
