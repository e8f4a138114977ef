"""Figures by matplotlib (the extra `plots`), where it is installed."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from typing import Any


def has_matplotlib() -> bool:
    """Returns whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def can_plot() -> bool:
    """Returns whether figures can be plotted; prints what is missing where they cannot."""
    if not has_matplotlib():
        print('no figure: matplotlib is not installed; pip install "dream-rummy[plots]"')
        return False
    return True


def plot_ratings(entries: list[dict[str, Any]], unit: str, title: str, path: Path) -> Path:
    """Plots both ratings with their intervals, the strongest by rounds won on top.

    Args:
      entries: records with `name`, `rating`, `low`, `high`, and the last three of points under `points`, the
        strongest first.
      unit: of points.
      title: of the figure.
      path: of the file, its ending the format.
    Returns:
      The path.
    """
    figure = _figure(figsize=(11, 1.2 + 0.3 * len(entries)))
    axes = figure.subplots(1, 2, sharey=True)
    place = list(range(len(entries)))[::-1]
    for ax, records, label in (
        (axes[0], entries, "rating by rounds won (400 points: odds of ten to one), 95 % interval"),
        (axes[1], [entry["points"] for entry in entries], f"{unit} per hand, 95 % interval"),
    ):
        rating, low, high = ([record[name] for record in records] for name in ("rating", "low", "high"))
        below = [r - a for r, a in zip(rating, low, strict=True)]
        above = [b - r for r, b in zip(rating, high, strict=True)]
        ax.errorbar(rating, place, xerr=[below, above], fmt="o", capsize=3, color="C0")
        ax.set_xlabel(label)
        ax.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(place, [Path(entry["name"]).name for entry in entries])
    axes[0].set_title(title, loc="left", fontsize="medium")
    return _saved(figure, path)


def plot_cross_table(entries: list[dict[str, Any]], title: str, path: Path) -> Path:
    """Plots points per hand of every player against every other as a coloured table.

    Args:
      entries: records with `name` and `points_against`, a mean or None by name, in the order of the records.
      title: of the figure.
      path: of the file, its ending the format.
    Returns:
      The path.
    """
    size = len(entries)
    figure = _figure(figsize=(2.5 + 0.5 * size, 1.5 + 0.4 * size))
    axes = figure.subplots()
    means = [[math.nan if mean is None else mean for mean in entry["points_against"].values()] for entry in entries]
    most = max((abs(mean) for row in means for mean in row if not math.isnan(mean)), default=1.0) or 1.0
    axes.imshow(means, cmap="RdBu", vmin=-most, vmax=most, aspect="auto")
    for i, row in enumerate(means):
        for j, mean in enumerate(row):
            if not math.isnan(mean):
                colour = "white" if abs(mean) > 0.6 * most else "black"
                axes.text(j, i, f"{mean:+.1f}", ha="center", va="center", fontsize=7, color=colour)
    names = [Path(entry["name"]).name for entry in entries]
    axes.set_xticks(range(size), names, rotation=60, ha="right")
    axes.set_yticks(range(size), names)
    axes.set_title(title, loc="left", fontsize="medium")
    return _saved(figure, path)


def _figure(figsize: tuple[float, float]) -> Any:
    import matplotlib

    matplotlib.rcParams["svg.hashsalt"] = "dream"
    from matplotlib.figure import Figure

    return Figure(figsize=figsize, layout="constrained")


def _saved(figure: Any, path: Path) -> Path:
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(path, metadata=metadata, dpi=150)
    return path
