"""A self-contained page: text, tables, charts of charts.py, and the machine of the measurements."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from html import escape
from typing import Any

from report import charts
from report.machine import describe, describe_commit

_STYLE = """
:root { color-scheme: light dark; --paper: #fdfcfa; --ink: #1d2430; --quiet: #5c6675; --rule: #dfdcd5; --panel: #ffffff;
  --good: #047857; --short: #b45309; LIGHT }
@media (prefers-color-scheme: dark) { :root { --paper: #14171c; --ink: #e7e9ec; --quiet: #9aa4b2; --rule: #2d333c;
  --panel: #1b1f26; --good: #34d399; --short: #fbbf24; DARK } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto,
  "Noto Sans", "DejaVu Sans", sans-serif; font-variant-numeric: tabular-nums; }
main { max-width: 1180px; margin: 0 auto; padding: 48px 24px 72px; }
h1 { font: 600 clamp(1.7rem, 1.2rem + 2.2vw, 2.6rem)/1.15 Georgia, "Iowan Old Style", "Noto Serif", "DejaVu Serif", serif;
  letter-spacing: -0.01em; margin: 0 0 12px; text-wrap: balance; }
h2 { font: 600 1.4rem/1.25 Georgia, "Iowan Old Style", "Noto Serif", "DejaVu Serif", serif; margin: 56px 0 8px;
  padding-top: 20px; border-top: 1px solid var(--rule); }
h3 { font-size: 1rem; font-weight: 600; margin: 28px 0 8px; }
p, li { max-width: 44rem; }
p { margin: 0 0 12px; }
.lead { font-size: 1.1rem; color: var(--quiet); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 250px), 1fr)); gap: 16px; margin: 28px 0 24px; }
.card { background: var(--panel); border: 1px solid var(--rule); border-radius: 10px; padding: 18px 20px 16px; }
.card .number { font: 600 2.5rem/1.1 Georgia, "Noto Serif", "DejaVu Serif", serif; }
.card .what { margin: 4px 0 10px; }
.card .target { font-size: 0.85rem; color: var(--quiet); margin: 0; }
.card .target.good { color: var(--good); }
.card .target.short { color: var(--short); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 340px), 1fr)); gap: 16px; margin: 16px 0; }
.charts.pairs { grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); }
.charts.pairs .chart { max-width: 520px; }
figure { display: flex; flex-direction: column; margin: 0; background: var(--panel); border: 1px solid var(--rule); border-radius: 10px; padding: 14px 14px 8px; }
figcaption { font-weight: 600; font-size: 0.95rem; line-height: 1.35; margin: 0 2px 8px; }
figcaption span { display: block; font-weight: 400; font-size: 0.85rem; color: var(--quiet); }
.chart { display: block; width: 100%; height: auto; max-width: 460px; margin: auto auto 0; overflow: visible;
  font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
.chart text { fill: var(--ink); }
.chart .tick, .chart .label { fill: var(--quiet); font-size: 11.5px; }
.chart .value { font-size: 10px; fill: var(--quiet); }
.chart .grid { stroke: var(--rule); stroke-width: 1; }
.chart .axis { stroke: var(--quiet); stroke-width: 1; }
.chart .line { fill: none; stroke-width: 2.2; stroke-linejoin: round; stroke-linecap: round; }
.chart .point:hover, .chart .bar:hover { opacity: 0.75; }
COLOURS
.scroll { overflow-x: auto; margin: 12px 0 20px; border: 1px solid var(--rule); border-radius: 10px; background: var(--panel); }
table { border-collapse: collapse; width: 100%; font-size: 0.88rem; line-height: 1.35; }
caption { text-align: left; font-weight: 600; padding: 12px 11px 4px; font-size: 0.95rem; }
th, td { padding: 6px 11px; text-align: right; white-space: nowrap; border-top: 1px solid var(--rule); }
thead th { border-top: 0; padding-top: 2px; color: var(--quiet); font-weight: 600; vertical-align: bottom; }
th.text, td.text { text-align: left; }
td.wrap { white-space: normal; min-width: 11rem; }
th.group { text-align: center; color: var(--ink); padding-top: 8px; }
th.group:not(:empty) { box-shadow: inset 0 -1px var(--rule); }
th.begins, td.begins { border-left: 1px solid var(--rule); }
tr.first td { border-top: 2px solid var(--rule); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 18px; margin: 12px 0; font-size: 0.92rem; }
dt { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
pre { overflow-x: auto; background: var(--panel); border: 1px solid var(--rule); border-radius: 10px; padding: 12px 14px;
  font: 0.8rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
details { margin: 12px 0; }
summary { cursor: pointer; font-weight: 600; }
@media (max-width: 520px) { main { padding: 28px 14px 48px; } dl { grid-template-columns: 1fr; } dd { margin-bottom: 6px; }
  th, td { padding: 6px 10px; } td.wrap { min-width: 20rem; } figure { padding: 12px 8px 6px; } }
@media print { main { max-width: none; } figure, .card, .scroll { break-inside: avoid; } }
"""


def _style() -> str:
    light = " ".join(f"--c{i}: {colour};" for i, (colour, _) in enumerate(charts.COLOURS))
    dark = " ".join(f"--c{i}: {colour};" for i, (_, colour) in enumerate(charts.COLOURS))
    classes = "\n".join(
        f".chart .point.c{i}, .chart .bar.c{i} {{ fill: var(--c{i}); }} .chart .line.c{i} {{ stroke: var(--c{i}); }}"
        for i in range(len(charts.COLOURS))
    )
    return _STYLE.replace("LIGHT", light).replace("DARK", dark).replace("COLOURS", classes)


@dataclasses.dataclass(frozen=True)
class Card:
    """One important figure."""

    number: str
    what: str
    target: str = ""
    reached: bool | None = None


@dataclasses.dataclass(frozen=True)
class Column:
    title: str
    text: bool = False  # If false: a number, aligned to the right.
    wrap: bool = False
    group: str = ""  # The title that it shares with its neighbours, written once above them.


class Page:
    """Grows from the top. Escapes all text."""

    def __init__(self, title: str, lead: str) -> None:
        self._title = title
        self._parts = [f"<h1>{escape(title)}</h1>", f'<p class="lead">{escape(lead)}</p>']

    def heading(self, text: str) -> None:
        self._parts.append(f"<h2>{escape(text)}</h2>")

    def subheading(self, text: str) -> None:
        self._parts.append(f"<h3>{escape(text)}</h3>")

    def paragraph(self, text: str) -> None:
        self._parts.append(f"<p>{escape(text)}</p>")

    def cards(self, cards: Sequence[Card]) -> None:
        self._parts.append('<div class="cards">')
        for card in cards:
            kind = "" if card.reached is None else " good" if card.reached else " short"
            target = f'<p class="target{kind}">{escape(card.target)}</p>' if card.target else ""
            self._parts.append(
                f'<div class="card"><div class="number">{escape(card.number)}</div>'
                f'<p class="what">{escape(card.what)}</p>{target}</div>'
            )
        self._parts.append("</div>")

    def charts(self, figures: Sequence[tuple[str, str, str]], pairs: bool = False) -> None:
        """Shows charts side by side, two or as many as there is room for: title, further text, and the SVG."""
        self._parts.append(f'<div class="charts{" pairs" if pairs else ""}">')
        for title, more, svg in figures:
            self._parts.append(f"<figure><figcaption>{escape(title)}<span>{escape(more)}</span></figcaption>{svg}</figure>")
        self._parts.append("</div>")

    def table(self, caption: str, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        """A line separates rows with different first cells."""

        groups: list[list[Column]] = []
        for column in columns:
            if not groups or groups[-1][0].group != column.group:
                groups.append([])
            groups[-1].append(column)
        firsts = [column for group in groups if group[0].group for column in group[:1]]

        def kind(column: Column) -> str:
            marks = (("text", column.text), ("wrap", column.wrap), ("begins", any(column is first for first in firsts)))
            names = [name for name, holds in marks if holds]
            return f' class="{" ".join(names)}"' if names else ""

        above = "".join(
            f'<th scope="colgroup" class="group{" begins" if group[0].group else ""}" colspan="{len(group)}">'
            f"{escape(group[0].group)}</th>"
            for group in groups
        )
        head = "".join(f'<th scope="col"{kind(column)}>{escape(column.title)}</th>' for column in columns)
        head = f"<tr>{above}</tr><tr>{head}</tr>" if firsts else f"<tr>{head}</tr>"
        body = []
        before = None
        for row in rows:
            begins = before is not None and row[0] != before
            before = row[0]
            cells = "".join(f"<td{kind(column)}>{escape(cell)}</td>" for column, cell in zip(columns, row, strict=True))
            body.append(_row(begins, cells))
        self._parts.append(
            f'<div class="scroll"><table><caption>{escape(caption)}</caption><thead>{head}</thead>'
            f"<tbody>{''.join(body)}</tbody></table></div>"
        )

    def origin(
        self, machine: dict[str, Any], commit: dict[str, Any], facts: Sequence[tuple[str, str]], commands: Sequence[str]
    ) -> None:
        """Tells the machine, the programs, and the commands that repeat the measurement."""
        self.heading("Measured on")
        lines = [("Machine", describe(machine)), ("Time", machine["time"]), ("Erda's commit", describe_commit(commit)), *facts]
        items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in lines)
        self._parts.append(f"<dl>{items}</dl>")
        if commands:
            text = escape("\n".join(commands))
            self._parts.append(f"<details open><summary>Commands</summary><pre>{text}</pre></details>")

    def html(self) -> str:
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(self._title)}</title><style>{_style()}</style></head>\n<body><main>\n"
            + "\n".join(self._parts)
            + "\n</main></body></html>\n"
        )


def _row(begins: bool, cells: str) -> str:
    return f'<tr class="first">{cells}</tr>' if begins else f"<tr>{cells}</tr>"
