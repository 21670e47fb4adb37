"""Runs erda-ycsb for a given time."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Sequence
from typing import Any

from measuring.programs import Server, ToolError, execute

FIRST_RATE = 2000.0  # Operations per second, if no rate is known.
TRIES = 8


def command(build: pathlib.Path, address: str, records: int, value_size: int, *more: str) -> list[str]:
    return [
        str(build / "bin" / "erda-ycsb"), "--address", address, "--records", str(records), "--value-size", str(value_size),
        "--timeout-ms", "60000", "--quiet", *more,
    ]


def measured(
    command: Sequence[str], server: Server, in_flight: int, seconds: float, rate: float | None, path: pathlib.Path
) -> dict[str, Any]:
    """Returns the JSON that erda-ycsb writes to `path`. Does as many operations as take this time at this rate, or more
    if that was too few. Half as many run before, and are not measured: they let clients remember locations.
    """
    least = max(20 * in_flight, 200)
    operations = max(int((rate or FIRST_RATE) * seconds), least)
    for _ in range(TRIES):
        execute([*command, "--warm-up", str(operations // 2), "--operations", str(operations), "--json", str(path)], server)
        result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        took = result["run"]["seconds"]
        if took >= seconds * 0.5:
            break
        operations = max(int(min(operations * seconds / max(took, 1e-6), operations * 50.0)), least)
    if result["not_found"]:
        raise ToolError(f"{server.address} does not have {result['not_found']} values that were put")
    return result
