"""The recorded counts of instructions, and how a run differs from them."""

from __future__ import annotations

import dataclasses
import json
import pathlib

from counting import callgrind
from measuring.programs import ToolError

# A count may be larger or smaller than the recorded one by this factor.
TOLERANCE = 1.02
# The server's side of a work with both sides (bench/micro/shm_store.h).
SERVER = "erda::micro::ShmStore::Serve("
COUNTER = "instructions of user code in one run, counted by callgrind"


@dataclasses.dataclass
class Baseline:
    build: str
    counts: dict[str, float]

    @classmethod
    def load(cls, path: pathlib.Path) -> Baseline:
        try:
            content = json.loads(path.read_text())
            return cls(content["build"], content["works"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ToolError(f"{path} has no counts ({error}): record them with tools/micro --record") from error

    def store(self, path: pathlib.Path) -> None:
        path.write_text(json.dumps({"counter": COUNTER, "build": self.build, "works": self.counts}, indent=2) + "\n")


def counts_of(run: callgrind.Run) -> dict[str, float]:
    """Returns the count of each work. A work with two sides has one more for each side, as in shm_put_64.client."""
    counts = {}
    for name, work in run.works.items():
        counts[name] = round(work.instructions, 1)
        server = work.within(lambda function: function.startswith(SERVER))
        if server > 0:
            counts[f"{name}.client"] = round(work.instructions - server, 1)
            counts[f"{name}.shard"] = round(server, 1)
    return counts


def differences(baseline: Baseline, build: str, counts: dict[str, float]) -> list[str]:
    """Returns a line for each difference that needs a reader. No line: the counts are as recorded."""
    if build != baseline.build:
        return [f"the counts cannot be compared: this build is by {build}; the baseline is by {baseline.build}. Build "
                "with the compiler and the options of the baseline (cmake --preset test && cmake --build build --target "
                "erda-micro), or record this build with tools/micro --record"]
    lines = []
    for name, recorded in baseline.counts.items():
        if name not in counts:
            lines.append(f"{name}: recorded, and not counted. If the work is gone, record the counts with tools/micro "
                         "--record")
            continue
        count = counts[name]
        if count > recorded * TOLERANCE:
            lines.append(f"{name}: {count:.1f} instructions, {_more(count, recorded)} than the {recorded:.1f} recorded. "
                         f"tools/micro --profile {name.split('.')[0]} shows the functions; if the loss is intended, "
                         "record the counts with tools/micro --record")
        elif count * TOLERANCE < recorded:
            lines.append(f"{name}: {count:.1f} instructions, {_more(recorded, count, 'fewer')} than the {recorded:.1f} "
                         "recorded. Record the counts with tools/micro --record, so that they guard the gain")
    lines += [f"{name}: {count:.1f} instructions, and not recorded. Record the counts with tools/micro --record"
              for name, count in counts.items() if name not in baseline.counts]
    return lines


def _more(larger: float, smaller: float, word: str = "more") -> str:
    share = (larger - smaller) / (smaller if word == "more" else larger)
    return f"{100 * share:.1f} % {word}"
