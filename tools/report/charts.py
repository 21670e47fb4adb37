"""Charts as SVG, for a page of page.py, whose style colours them: lines over one axis, and grouped bars.

Each series has a separate colour and marker, so that no reader depends on the colours. The palette is that of Okabe and
Ito. A pointer over a point or bar shows its value.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from xml.sax.saxutils import escape, quoteattr

WIDTH = 360
HEIGHT = 270
_LEFT, _RIGHT, _BOTTOM = 52, 12, 44
_LINE = 18  # Of the legend.
_CHARACTER = 6.3  # The approximate width of a character at the size of the labels.

# Light and dark: vermillion, blue, green, orange, purple, sky blue, black, in the order of the series.
COLOURS = (
    ("#c2410c", "#ff8a4c"),
    ("#0369a1", "#56b4e9"),
    ("#047857", "#34d399"),
    ("#b07d00", "#f0c14b"),
    ("#9d3f7f", "#e09ac6"),
    ("#4b5563", "#b6bec9"),
    ("#111827", "#f3f4f6"),
)


# Formats of numbers.


def number(value: float) -> str:
    """Returns three significant digits, with k, M or G: 1.23 M."""
    for factor, suffix in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= factor * 0.9995:
            return _digits(value / factor) + suffix
    return _digits(value)


def size(value: float) -> str:
    """Returns a size in bytes: 64 B, 1 KiB."""
    for factor, suffix in ((2**30, " GiB"), (2**20, " MiB"), (2**10, " KiB")):
        if value >= factor:
            return _digits(value / factor) + suffix
    return f"{_digits(value)} B"


def microseconds(value: float) -> str:
    """Returns a time: 0.27 µs, 1.5 ms."""
    if value >= 999500:
        return _digits(value / 1e6) + " s"
    if value >= 999.5:
        return _digits(value / 1e3) + " ms"
    return _digits(value) + " µs"


def _digits(value: float) -> str:
    if value == 0:
        return "0"
    places = max(0, 2 - math.floor(math.log10(abs(value)) + 1e-9))
    text = f"{value:.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


# Axes.


@dataclasses.dataclass(frozen=True)
class Axis:
    label: str
    log: bool = False
    format: Callable[[float], str] = number
    ticks: Sequence[float] | None = None  # None: the chart chooses them.


@dataclasses.dataclass(frozen=True)
class Series:
    name: str
    points: Sequence[tuple[float, float | None]]  # None: not measured.
    colour: int | None = None  # None: by its place.


class Scale:
    """Maps values to positions."""

    def __init__(self, axis: Axis, values: Sequence[float], begin: float, end: float, zero: bool, pad: float = 0) -> None:
        if axis.log and any(value <= 0 for value in values):
            raise ValueError(f"{axis.label}: a logarithmic axis has no place for {min(values)}")
        self._log = axis.log
        self._begin, self._end = begin, end
        low, high = (min(values), max(values)) if values else (1.0, 10.0)
        if axis.ticks is not None:
            self.ticks = list(axis.ticks)
        elif axis.log:
            self.ticks = _log_ticks(low, high)
        else:
            self.ticks = _linear_ticks(0.0 if zero else low, high)
        low, high = min([low, *self.ticks]), max([high, *self.ticks])
        if low == high:
            low, high = (low / 2, high * 2) if axis.log else (low - 1, high + 1)
        self._low, self._high = self._position(low), self._position(high)
        margin = (self._high - self._low) * pad
        self._low, self._high = self._low - margin, self._high + margin

    def _position(self, value: float) -> float:
        return math.log10(value) if self._log else value

    def __call__(self, value: float) -> float:
        share = (self._position(value) - self._low) / (self._high - self._low)
        return self._begin + share * (self._end - self._begin)


def _linear_ticks(low: float, high: float) -> list[float]:
    if high <= low:
        high = low + 1
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    first, last = math.floor(low / step), math.ceil(high / step - 1e-9)
    return [count * step for count in range(first, last + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high) - 1e-9)
    decades = max(last - first, 1)
    factors = (1, 2, 5) if decades <= 2 else (1,)
    ticks = [factor * 10.0**power for power in range(first, first + decades) for factor in factors]
    ticks.append(10.0 ** (first + decades))
    # Takes no more room than the values need.
    while len(ticks) > 2 and ticks[1] <= low:
        ticks.pop(0)
    while len(ticks) > 2 and ticks[-2] >= high:
        ticks.pop()
    return ticks


# Drawing.


def lines(title: str, x: Axis, y: Axis, series: Sequence[Series]) -> str:
    """Draws a line with markers for each series."""
    drawing = _Drawing(title, [entry.name for entry in series], [_colour(series, i) for i in range(len(series))])
    xs = [point[0] for entry in series for point in entry.points]
    ys = [value for entry in series for _, value in entry.points if value is not None]
    x_scale = Scale(x, xs, _LEFT, WIDTH - _RIGHT, zero=False, pad=0.05)
    y_scale = Scale(y, ys, HEIGHT - _BOTTOM, drawing.top, zero=True)
    drawing.y_axis(y, y_scale)
    drawing.x_axis_numbers(x, x_scale)
    for index, entry in enumerate(series):
        colour = _colour(series, index)
        known = [(at, value) for at, value in entry.points if value is not None]
        if len(known) > 1:
            path = " ".join(f"{x_scale(at):.1f},{y_scale(value):.1f}" for at, value in known)
            drawing.add(f'<polyline class="line c{colour}" points="{path}"/>')
        for at, value in known:
            label = f"{entry.name}, {x.format(at)}: {y.format(value)}"
            drawing.add(f'<g class="point c{colour}">{_title(label)}{_marker(colour, x_scale(at), y_scale(value))}</g>')
    return drawing.finish()


def bars(title: str, y: Axis, groups: Sequence[str], series: Sequence[Series]) -> str:
    """Draws bars side by side for each group. The points of a series are (number of the group, value)."""
    drawing = _Drawing(title, [entry.name for entry in series], [_colour(series, i) for i in range(len(series))])
    values = [value for entry in series for _, value in entry.points if value is not None]
    y_scale = Scale(y, values, HEIGHT - _BOTTOM, drawing.top + 12, zero=True)
    drawing.y_axis(y, y_scale)
    room = (WIDTH - _LEFT - _RIGHT) / max(len(groups), 1)
    width = min(room * 0.86 / max(len(series), 1), 44)
    base = HEIGHT - _BOTTOM
    for group, name in enumerate(groups):
        middle = _LEFT + room * (group + 0.5)
        drawing.add(f'<text class="tick" x="{middle:.1f}" y="{base + 17}" text-anchor="middle">{escape(name)}</text>')
    for index, entry in enumerate(series):
        colour = _colour(series, index)
        for group, value in entry.points:
            if value is None:
                continue
            left = _LEFT + room * (group + 0.5) + (index - len(series) / 2) * width
            top = min(y_scale(value), base)
            label = f"{entry.name}, {groups[int(group)]}: {y.format(value)}"
            drawing.add(
                f'<g class="bar c{colour}">{_title(label)}'
                f'<rect x="{left + 1:.1f}" y="{top:.1f}" width="{width - 2:.1f}" height="{max(base - top, 0.5):.1f}" rx="1.5"/></g>'
            )
            short = y.format(value).replace(" ", "")
            if len(short) * _CHARACTER * 0.8 <= width:  # Otherwise it would overlap its neighbour's.
                drawing.add(
                    f'<text class="value" x="{left + width / 2:.1f}" y="{top - 4:.1f}" text-anchor="middle">{escape(short)}</text>'
                )
    return drawing.finish()


def _colour(series: Sequence[Series], index: int) -> int:
    chosen = series[index].colour
    return (index if chosen is None else chosen) % len(COLOURS)


def _title(text: str) -> str:
    return f"<title>{escape(text)}</title>"


def _marker(kind: int, x: float, y: float) -> str:
    """Draws a shape for each colour."""
    r = 4.2
    match kind % 7:
        case 0:
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}"/>'
        case 1:
            return f'<rect x="{x - r + 0.4:.1f}" y="{y - r + 0.4:.1f}" width="{2 * r - 0.8:.1f}" height="{2 * r - 0.8:.1f}"/>'
        case 2:
            shape = [(0, -r - 0.8), (r + 0.6, r - 0.6), (-r - 0.6, r - 0.6)]
        case 3:
            shape = [(0, -r - 1.2), (r + 1.2, 0), (0, r + 1.2), (-r - 1.2, 0)]
        case 4:
            shape = [(0, r + 0.8), (r + 0.6, -r + 0.6), (-r - 0.6, -r + 0.6)]
        case 5:
            shape = [(-r, -1.5), (r, -1.5), (r, 1.5), (-r, 1.5)]
        case _:
            shape = [(-1.5, -r), (1.5, -r), (1.5, r), (-1.5, r)]
    return '<polygon points="' + " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in shape) + '"/>'


class _Drawing:
    """The parts of one chart, from the top: legend, plot, axis. Its title is the figure's, and is read to users who
    cannot see it."""

    def __init__(self, title: str, names: Sequence[str], colours: Sequence[int]) -> None:
        self._parts: list[str] = []
        self._title = title
        x, y = 6.0, 14.0
        for name, colour in zip(names, colours, strict=True):
            width = 20 + len(name) * _CHARACTER
            if x + width > WIDTH and x > 6:
                x, y = 6.0, y + _LINE
            self.add(f'<g class="point c{colour}">{_marker(colour, x + 6, y - 4)}</g>')
            self.add(f'<text class="legend" x="{x + 16:.1f}" y="{y:.1f}">{escape(name)}</text>')
            x += width + 10
        self.top = y + 34  # Below the label of the y axis.

    def add(self, part: str) -> None:
        self._parts.append(part)

    def y_axis(self, axis: Axis, scale: Scale) -> None:
        self.add(f'<text class="label" x="6" y="{self.top - 14:.1f}">{escape(axis.label)}</text>')
        for tick in scale.ticks:
            y = scale(tick)
            self.add(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            self.add(f'<text class="tick" x="{_LEFT - 7}" y="{y + 4:.1f}" text-anchor="end">{escape(axis.format(tick))}</text>')

    def x_axis_numbers(self, axis: Axis, scale: Scale) -> None:
        base = HEIGHT - _BOTTOM
        self.add(f'<line class="axis" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{base}" y2="{base}"/>')
        for tick in scale.ticks:
            x = scale(tick)
            self.add(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{base}" y2="{base + 4}"/>')
            self.add(f'<text class="tick" x="{x:.1f}" y="{base + 17}" text-anchor="middle">{escape(axis.format(tick))}</text>')
        middle = (_LEFT + WIDTH - _RIGHT) / 2
        self.add(f'<text class="label" x="{middle:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{escape(axis.label)}</text>')

    def finish(self) -> str:
        return (
            f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label={quoteattr(self._title)} '
            f'xmlns="http://www.w3.org/2000/svg">{"".join(self._parts)}</svg>'
        )
