"""The chart of docs/benchmarks.md: Erda beside Redis and memcached, from the table in docs/benchmarks/results.md.

Run `python3 tools/report/overview.py` after a change of that table. It writes docs/benchmarks/overview.svg.
"""

from __future__ import annotations

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from report import charts
from report.charts import Axis, Series

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
TABLE = DOCS / "benchmarks" / "results.md"
CHART = DOCS / "benchmarks" / "overview.svg"
VALUE_SIZE = "1 KiB"
WORKLOADS = {"C": "get", "update": "put"}
SYSTEMS = ("Erda", "Redis", "memcached")

_STYLE = """
svg { font: 12px "DejaVu Sans", sans-serif; } text { fill: #1d2430; } .tick, .label, .value { fill: #5c6675; }
.tick, .label { font-size: 11.5px; } .value { font-size: 10px; } .grid { stroke: #dfdcd5; } .axis { stroke: #5c6675; }
"""


def read(text: str) -> tuple[list[Series], list[Series]]:
    """Returns median times in microseconds, and operations per second, of each system. The points are (workload,
    figure)."""
    rows = {}
    for line in text.partition("\n| value | workload | Erda p50 |")[2].partition("\n\n")[0].splitlines()[2:]:
        size, workload, *figures = (cell.strip() for cell in line.strip("|").split("|"))
        if size == VALUE_SIZE and workload in WORKLOADS:
            rows[workload] = [float(re.sub(r"[,k]", "", figure)) for figure in figures]
    times = [Series(name, [(at, rows[key][i]) for at, key in enumerate(WORKLOADS)]) for i, name in enumerate(SYSTEMS)]
    rates = [Series(name, [(at, rows[key][i + 3] * 1000) for at, key in enumerate(WORKLOADS)]) for i, name in enumerate(SYSTEMS)]
    return times, rates


def draw(text: str) -> str:
    times, rates = read(text)
    groups = list(WORKLOADS.values())
    parts = (
        charts.bars("Median time of one operation", Axis("median time, logarithmic", log=True, format=charts.microseconds),
                    groups, times),
        charts.bars("Operations per second", Axis("operations per second, 16 clients x 16"), groups, rates),
    )
    style = _STYLE + "".join(f".c{i} {{ fill: {light}; }}\n" for i, (light, _) in enumerate(charts.COLOURS))
    width = charts.WIDTH + 20
    placed = "\n".join(part.replace("<svg ", f'<svg x="{10 + i * width}" y="8" width="{charts.WIDTH}" height="{charts.HEIGHT}" ', 1)
                       for i, part in enumerate(parts))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * width} {charts.HEIGHT + 12}" width="{2 * width}" '
            f'height="{charts.HEIGHT + 12}">\n<style>{style}</style>\n'
            f'<rect width="100%" height="100%" fill="#ffffff"/>\n{placed}\n</svg>\n')


if __name__ == "__main__":
    CHART.write_text(draw(TABLE.read_text(encoding="utf-8")), encoding="utf-8")
