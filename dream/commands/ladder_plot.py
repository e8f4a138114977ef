"""Figures, where matplotlib (the extra `plots`) is installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any


def can_plot() -> bool:
    """Tells whether figures can be drawn, and prints what is missing where they cannot."""
    if importlib.util.find_spec("matplotlib") is None:
        print('no figure: matplotlib is not installed; pip install "dream-rummy[plots]"')
        return False
    return True


def plot_ratings(entries: list[dict[str, Any]], title: str, path: Path) -> Path:
    """Draws ratings with their intervals, the strongest on top.

    Args:
      entries: records with `name`, `rating`, `low`, `high`, the strongest first.
      title: of the figure.
      path: of the file, its ending the format.
    Returns:
      The path.
    """
    import matplotlib

    matplotlib.rcParams["svg.hashsalt"] = "dream"
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 1.2 + 0.3 * len(entries)), layout="constrained")
    axes = figure.subplots()
    rating, low, high = ([entry[name] for entry in entries] for name in ("rating", "low", "high"))
    place = list(range(len(entries)))[::-1]
    spread = [[r - a for r, a in zip(rating, low, strict=True)], [b - r for r, b in zip(rating, high, strict=True)]]
    axes.errorbar(rating, place, xerr=spread, fmt="o", capsize=3, color="C0")
    axes.set_yticks(place, [Path(entry["name"]).name for entry in entries])
    axes.set_xlabel("rating (400 points: odds of ten to one), 95 % interval")
    axes.set_title(title, loc="left", fontsize="medium")
    axes.grid(axis="x", alpha=0.3)
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(path, metadata=metadata, dpi=150)
    return path
