"""Charts: what stands in them is what was given, where it should be."""

from __future__ import annotations

import itertools
import math
import xml.etree.ElementTree as ET

import pytest

from dream.evaluation import charts

_SVG = "{http://www.w3.org/2000/svg}"


def _texts(drawing: str) -> list[str]:
    return [text.text or "" for text in ET.fromstring(drawing).iter(f"{_SVG}text")]


def test_a_curve_goes_from_corner_to_corner() -> None:
    """The least value is at the bottom on the left, the greatest at the top on the right; what is not finite is out."""
    drawing = charts.page([charts.curves("loss", {"a": ([1, 2, 3], [1.0, math.nan, 5.0])}, "iteration")])
    (line,) = ET.fromstring(drawing).iter(f"{_SVG}polyline")
    (x1, y1), (x2, y2) = [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
    assert x1 < x2
    assert y1 > y2
    assert "loss" in _texts(drawing)


def test_a_wide_range_is_drawn_by_logarithms() -> None:
    """A straight line of powers of ten, with the powers at the axis; thousands of points are thinned, the last kept."""
    powers = [10.0**-n for n in range(4)]
    drawing = charts.page([charts.curves("x", {"a": ([0, 1, 2, 3], powers)}, "iteration")])
    (line,) = ET.fromstring(drawing).iter(f"{_SVG}polyline")
    ys = [float(point.split(",")[1]) for point in line.attrib["points"].split()]
    steps = [b - a for a, b in itertools.pairwise(ys)]
    assert steps == pytest.approx([steps[0]] * 3, abs=0.2)
    assert {"1", "0.1", "0.01", "0.001"} <= set(_texts(drawing))
    many = charts.page([charts.curves("x", {"a": (list(range(5001)), list(range(5001)))}, "iteration")])
    (line,) = ET.fromstring(many).iter(f"{_SVG}polyline")
    points = line.attrib["points"].split()
    assert len(points) <= 401
    assert float(points[-1].split(",")[0]) == max(float(point.split(",")[0]) for point in points)


def test_no_two_of_many_lines_look_alike() -> None:
    """32 lines, as a sweep may have: each pair of colour and dash once."""
    drawing = charts.page([charts.curves("t", {str(n): ([0, 1], [n, n]) for n in range(32)}, "iteration")])
    lines = [line.attrib for line in ET.fromstring(drawing).iter(f"{_SVG}polyline")]
    assert len({(line["stroke"], line.get("stroke-dasharray")) for line in lines}) == len(lines) == 32


def test_one_point_and_none() -> None:
    """A single value is a dot; nothing to show is said."""
    drawing = charts.page([charts.curves("x", {"a": ([4], [2.0])}, "iteration"), charts.curves("y", {}, "iteration")])
    assert len(list(ET.fromstring(drawing).iter(f"{_SVG}circle"))) == 1
    assert "y: nothing to show" in _texts(drawing)


def test_bars_start_at_zero() -> None:
    """A negative value to its left, and an infinite one in words."""
    drawing = charts.page([charts.values("objective", {"a": 2.0, "b": -1.0, "c": math.inf}, "lower is better")])
    bars = [bar for bar in ET.fromstring(drawing).iter(f"{_SVG}rect") if bar.attrib["height"] == "14"]
    left = [float(bar.attrib["x"]) for bar in bars]
    right = [x + float(bar.attrib["width"]) for x, bar in zip(left, bars, strict=True)]
    assert left[0] == pytest.approx(right[1], abs=0.2)
    assert float(bars[0].attrib["width"]) == pytest.approx(2 * float(bars[1].attrib["width"]), abs=0.3)
    assert {"2", "-1", "inf"} <= set(_texts(drawing))


def test_a_heat_map_has_signs_and_blanks() -> None:
    """Red below zero, blue above, nothing for None; names are escaped."""
    drawing = charts.page([charts.heat_map("points", ["<a>", "b"], [[None, 4.0], [-4.0, None]])])
    assert {"<a>", "+4.0", "-4.0"} <= set(_texts(drawing))
    cells = [rect.attrib["fill"] for rect in ET.fromstring(drawing).iter(f"{_SVG}rect")][1:]
    assert cells == ["#1657b0", "#b80f24"]


def test_a_title_fits_above_a_small_heat_map() -> None:
    """The drawing of two players is as wide as a long title."""
    title = "gin_rummy_openspiel, 2,000 rounds per pairing: points per hand of the row against the column"
    chart = charts.heat_map(title, ["a", "b"], [[None, 4.0], [-4.0, None]])
    assert chart.width >= 7 * len(title)


def test_a_strategy_is_a_divided_bar() -> None:
    """Widths are the probabilities, side by side."""
    cells = {("first", "K"): {"pass": 0.25, "bet": 0.75}, ("first", "J"): {"pass": 1.0, "bet": 0.0}}
    drawing = ET.fromstring(charts.page([charts.strategy("Kuhn", cells)]))
    bars = [bar for bar in drawing.iter(f"{_SVG}rect") if bar.attrib["height"] == "15"]
    widths = [float(bar.attrib["width"]) for bar in bars]
    assert widths == pytest.approx([14.5, 43.5, 58, 0], abs=0.1)
    titles = [title.text for title in drawing.iter(f"{_SVG}title")]
    assert titles[0] == "K, first: pass 25 %, bet 75 %"


@pytest.mark.parametrize(("low", "high"), [(2.268, 2.301), (0.0, 1.0), (-4e-5, 3e-5), (99_990, 100_004)])
def test_ticks_that_differ_have_labels_that_differ(low: float, high: float) -> None:
    """However near they are to each other."""
    ticks = charts._Scale(low, high, 0, 100).ticks()
    labels = [f"{tick:.{charts._digits(ticks)}g}" for tick in ticks]
    assert len(set(labels)) == len(ticks) > 2
    assert [float(label) for label in labels] == pytest.approx(ticks, abs=1e-9 * (high - low), rel=1e-9)
