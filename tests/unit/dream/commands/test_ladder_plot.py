"""Figures of a ladder: nothing is cut off at their edges."""

from __future__ import annotations

import pathlib
import xml.etree.ElementTree as ET

import pytest

from dream.commands.ladder_plot import plot_cross_table


def test_a_title_fits_above_a_small_cross_table(tmp_path: pathlib.Path) -> None:
    """A figure of two players is as wide as its title needs."""
    pytest.importorskip("matplotlib")
    entries = [
        {"name": "a", "points_against": {"a": None, "b": 1.0}},
        {"name": "b", "points_against": {"a": -1.0, "b": None}},
    ]
    title = "leduc_poker, 2,000 rounds per pairing: chips per hand of the row against the column"
    widths = []
    for text in ("x", title):
        path = plot_cross_table(entries, "points_against", text, tmp_path / "table.svg")
        widths.append(float(ET.parse(path).getroot().attrib["width"].removesuffix("pt")))
    assert widths[1] > 5 * len(title) > widths[0]
