"""Charts as SVG text, drawn by no other library: curves, values by name, coloured tables, strategies."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

_COLOURS = ("#1657b0", "#b4500f", "#11682f", "#b80f24", "#6b3fa0", "#00707a", "#8a6d00", "#5a5a5a")
_DASHES = ("", "5 3", "1 3", "9 3 2 3")
"""Of lines, one after the other once all colours are used."""
_INK, _GRID, _BACK = "#1a1a1a", "#d9d9d9", "#ffffff"
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 520, 260, 64, 34, 44
_MOST_POINTS, _MOST_NAME = 400, 60
"""Points drawn of a curve; characters shown of a name."""


@dataclasses.dataclass(frozen=True)
class Chart:
    """A drawing without its frame.

    Attributes:
      width, height: in units of SVG.
      body: its elements.
    """

    width: int
    height: int
    body: str


def page(charts: Sequence[Chart], columns: int = 2) -> str:
    """Returns charts side by side as one SVG document."""
    parts, y, width = [], 0, 0
    for start in range(0, len(charts), columns):
        x, row = 0, charts[start : start + columns]
        for chart in row:
            parts.append(f'<g transform="translate({x} {y})">{chart.body}</g>')
            x += chart.width
        y, width = y + max(chart.height for chart in row), max(width, x)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y}" width="{width}" height="{y}"'
    font = 'font-family="DejaVu Sans, Arial, sans-serif" font-size="11"'
    back = f'<rect width="100%" height="100%" fill="{_BACK}"/>'
    return f"{head} {font}>{back}{''.join(parts)}</svg>\n"


def curves(title: str, series: Mapping[str, tuple[Sequence[float], Sequence[float]]], x_label: str) -> Chart:
    """Draws one line per series; the scale is logarithmic where all values are positive and span a factor of 30.

    Args:
      title: of the chart.
      series: name -> (x, y); what is not finite is left out.
      x_label: below the axis.
    """
    kept = {name: _thinned(*values) for name, values in series.items()}
    kept = {name: points for name, points in kept.items() if points}
    ys = [y for points in kept.values() for _, y in points]
    if not ys:
        return Chart(_WIDTH, _HEIGHT, _text(10, 20, f"{title}: nothing to show"))
    logs = min(ys) > 0 and max(ys) / min(ys) > 30
    xs = [x for points in kept.values() for x, _ in points]
    across = _Scale(min(xs), max(xs), _LEFT, _WIDTH - 14)
    height = _HEIGHT + 14 * ((len(kept) + 1) // 2)
    up = _Scale(*(math.log10(v) if logs else v for v in (min(ys), max(ys))), _HEIGHT - _BOTTOM, _TOP)
    parts = [_text(10, 20, title, bold=True), *_axes(across, up, logs, x_label)]
    for n, (name, points) in enumerate(kept.items()):
        colour = _COLOURS[n % len(_COLOURS)]
        pattern = _DASHES[n // len(_COLOURS) % len(_DASHES)]
        dash = f' stroke-dasharray="{pattern}"' if pattern else ""
        at = [(across(x), up(math.log10(y) if logs else y)) for x, y in points]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}/>')
        if len(at) < 30:
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="{colour}"/>' for x, y in at]
        place_x, place_y = _LEFT + (n % 2) * 225, _HEIGHT + 4 + 14 * (n // 2)
        parts.append(f'<rect x="{place_x}" y="{place_y - 8}" width="12" height="8" fill="{colour}"/>')
        parts.append(_text(place_x + 16, place_y, _cut(name, 32)))
    return Chart(_WIDTH, height, "".join(parts))


def values(title: str, by_name: Mapping[str, float], label: str) -> Chart:
    """Draws a value for each name as a bar from zero, from top to bottom; what is not finite is said in words."""
    finite = [v for v in by_name.values() if math.isfinite(v)]
    scale = _Scale(min([*finite, 0.0]), max([*finite, 0.0]), 250, 640)
    parts = [_text(10, 20, title, bold=True)]
    for n, (name, value) in enumerate(by_name.items()):
        y = 34 + 20 * n
        parts.append(_text(240, y + 11, _cut(name, 36), anchor="end"))
        if math.isfinite(value):
            left, right = sorted((scale(0.0), scale(value)))
            size = f'width="{max(right - left, 1):.1f}" height="14"'
            parts.append(f'<rect x="{left:.1f}" y="{y}" {size} fill="{_COLOURS[0]}"/>')
        parts.append(_text(648, y + 11, f"{value:.4g}"))
    height = 34 + 20 * len(by_name)
    return Chart(720, height + 26, "".join([*parts, _text(250, height + 14, label)]))


def heat_map(title: str, names: Sequence[str], cells: Sequence[Sequence[float | None]], form: str = "+.1f") -> Chart:
    """Draws a coloured table of numbers, red below zero and blue above; None is left blank.

    Args:
      title: of the table.
      names: of its rows, and of its columns.
      cells: by row and column.
      form: of the numbers.
    """
    known = [abs(x) for row in cells for x in row if x is not None and math.isfinite(x)]
    names = [_cut(name) for name in names]
    longest = max(map(len, names), default=0)
    most, left, size = max(known, default=1.0) or 1.0, max(190, 14 + 7 * longest), 46
    parts = [_text(10, 20, title, bold=True)]
    top = max(150, 30 + 6 * longest)
    for n, name in enumerate(names):
        x = left + size * n + size / 2
        parts.append(f'<g transform="translate({x + 4} {top - 6}) rotate(-60)">{_text(0, 0, name)}</g>')
        parts.append(_text(left - 6, top + 22 * n + 15, name, anchor="end"))
    for i, row in enumerate(cells):
        for j, value in enumerate(row):
            if value is None or not math.isfinite(value):
                continue
            x, y, strength = left + size * j, top + 22 * i, abs(value) / most
            back = _mixed("#b80f24" if value < 0 else "#1657b0", strength)
            parts.append(f'<rect x="{x}" y="{y}" width="{size - 1}" height="21" fill="{back}"/>')
            ink = "#ffffff" if strength > 0.55 else _INK
            parts.append(_text(x + size / 2, y + 15, format(value, form), anchor="middle", fill=ink))
    return Chart(max(left + size * len(names) + 60, 8 * len(title) + 20), top + 22 * len(names) + 14, "".join(parts))


def strategy(title: str, cells: Mapping[tuple[str, str], Mapping[str, float]]) -> Chart:
    """Draws what is done in each situation as a bar divided by the actions' probabilities.

    Args:
      title: of the chart.
      cells: (row, column) -> action -> probability; rows and columns in the order in which they first come.
    """
    rows, columns = (list(dict.fromkeys(place[n] for place in cells)) for n in range(2))
    actions = list(dict.fromkeys(action for cell in cells.values() for action in cell))
    left, top = 24 + 7 * max(len(row) for row in rows), 74
    parts = [_text(10, 20, title, bold=True)]
    for n, action in enumerate(actions):
        parts.append(f'<rect x="{10 + 110 * n}" y="32" width="12" height="10" fill="{_COLOURS[n % len(_COLOURS)]}"/>')
        parts.append(_text(26 + 110 * n, 41, _cut(action, 14)))
    parts += [_text(left + 66 * n, top - 8, column, bold=True) for n, column in enumerate(columns)]
    parts += [_text(left - 10, top + 20 * n + 12, row, anchor="end") for n, row in enumerate(rows)]
    for (row, column), cell in cells.items():
        x, y = left + 66 * columns.index(column), top + 20 * rows.index(row)
        words = ", ".join(f"{action} {100 * chance:.0f} %" for action, chance in cell.items())
        parts.append(f"<g><title>{_clean(f'{column}, {row}: {words}')}</title>")
        for action, chance in cell.items():
            width = 58 * chance
            colour = _COLOURS[actions.index(action) % len(_COLOURS)]
            parts.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="15" fill="{colour}"/>')
            x += width
        parts.append("</g>")
    return Chart(max(left + 66 * len(columns) + 10, 8 * len(title) + 20), top + 20 * len(rows) + 12, "".join(parts))


@dataclasses.dataclass(frozen=True)
class _Scale:
    low: float
    high: float
    first: float
    last: float

    def __call__(self, value: float) -> float:
        span = self.high - self.low
        share = (value - self.low) / span if span > 0 else 0.5
        return self.first + share * (self.last - self.first)

    def ticks(self) -> list[float]:
        """Returns about five round values within the scale."""
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        step = 10 ** math.floor(math.log10(span / 4))
        step *= next(m for m in (1, 2, 5, 10) if span / (step * m) <= 6)
        first = math.ceil(self.low / step)
        return [step * n for n in range(first, math.floor(self.high / step) + 1)]


def _axes(across: _Scale, up: _Scale, logs: bool, x_label: str) -> list[str]:
    parts, ticks = [], up.ticks()
    digits = 3 if logs else _digits(ticks)
    for value in ticks:
        y = up(value)
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - 14}" y1="{y:.1f}" y2="{y:.1f}" stroke="{_GRID}"/>')
        parts.append(_text(_LEFT - 6, y + 4, f"{10**value if logs else value:.{digits}g}", anchor="end"))
    for value in across.ticks():
        parts.append(_text(across(value), _HEIGHT - _BOTTOM + 16, f"{value:g}", anchor="middle"))
    return [*parts, _text(_WIDTH - 14, _HEIGHT - _BOTTOM + 30, x_label, anchor="end")]


def _digits(ticks: Sequence[float]) -> int:
    """Returns how many significant digits tell ticks apart, three at least."""
    if len(ticks) < 2:
        return 3
    largest, step = max(map(abs, ticks)), ticks[1] - ticks[0]
    return max(3, math.floor(math.log10(largest)) - math.floor(math.log10(step * (1 + 1e-9))) + 1)


def _thinned(xs: Sequence[float], ys: Sequence[float]) -> list[tuple[float, float]]:
    """Returns the finite points, of many every nth and the last."""
    points = [(float(x), float(y)) for x, y in zip(xs, ys, strict=True) if math.isfinite(x) and math.isfinite(y)]
    step = -(-len(points) // _MOST_POINTS) or 1
    return points[::step] + points[-1:] * ((len(points) - 1) % step > 0)


def _mixed(colour: str, strength: float) -> str:
    parts = (int(colour[n : n + 2], 16) for n in (1, 3, 5))
    return "#" + "".join(f"{round(255 - (255 - part) * strength):02x}" for part in parts)


def _cut(text: str, most: int = _MOST_NAME) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _clean(text: str) -> str:
    return escape("".join(char if char.isprintable() else "\ufffd" for char in text))


def _text(x: float, y: float, text: str, *, anchor: str = "start", bold: bool = False, fill: str = _INK) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:g}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}"{weight}>{_clean(text)}</text>'
