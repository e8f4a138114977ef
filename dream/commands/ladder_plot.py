"""Figures by matplotlib (the extra `plots`), where it is installed."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from typing import Any

from dream.commands.ladder_report import points_form
from dream.commands.short_names import short_names
from dream.evaluation import charts
from dream.storage import files


def has_matplotlib() -> bool:
    """Returns whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def can_plot() -> bool:
    """Returns whether figures can be plotted; prints what is missing where they cannot."""
    if not has_matplotlib():
        print('no figure: matplotlib is not installed; pip install "dream-rummy[plots]"')
        return False
    return True


def plot_ladder(entries: list[dict[str, Any]], unit: str, title: str, folder: Path, ending: str) -> list[Path]:
    """Plots a ladder's ratings and its cross-tables as heat maps.

    Args:
      entries: records of ladder.json, the strongest first.
      unit: of points.
      title: of the figures.
      folder: where they are written.
      ending: of the files, their format; "none" for no figures.
    Returns:
      The paths.
    """
    if ending == "svg" and not has_matplotlib():
        return _plain_tables(entries, unit, title, folder)
    if ending == "none" or not can_plot():
        return []
    paths = [plot_ratings(entries, unit, title, folder / f"ladder.{ending}")]
    path, name = folder / f"ladder_points.{ending}", f"{title}: {unit} per hand of the row against the column"
    paths.append(plot_cross_table(entries, "points_against", name, path, form=points_form(entries)))
    if "games" in entries[0]:
        path, name = folder / f"ladder_games.{ending}", f"{title}: games won by the row against the column, %"
        paths.append(plot_cross_table(entries, "games_against", name, path, middle=50.0, scale=100.0, form=".0f"))
    return paths


def _plain_tables(entries: list[dict[str, Any]], unit: str, title: str, folder: Path) -> list[Path]:
    """Draws the cross-tables without matplotlib."""
    names = _names(entries)
    tables = {"points": [list(entry["points_against"].values()) for entry in entries]}
    what = {
        "points": f"{unit} per hand of the row against the column",
        "games": "games won by the row against the column, % above 50",
    }
    if "games" in entries[0]:
        shares = [entry["games_against"].values() for entry in entries]
        tables["games"] = [[None if x is None else 100 * x - 50 for x in row] for row in shares]
    paths, forms = [], {"points": points_form(entries), "games": "+.1f"}
    for kind, cells in tables.items():
        paths.append(folder / f"ladder_{kind}.svg")
        files.write_text(paths[-1], charts.page([charts.heat_map(f"{title}: {what[kind]}", names, cells, forms[kind])]))
    return paths


def _names(entries: list[dict[str, Any]]) -> list[str]:
    return list(short_names(entry["name"] for entry in entries).values())


def plot_ratings(entries: list[dict[str, Any]], unit: str, title: str, path: Path) -> Path:
    """Plots all ratings with their intervals, the strongest by rounds won on top.

    Args:
      entries: records with `name`, `rating`, `low`, `high`, and the last three of points under `points` and, where
        games are rated, under `games`; the strongest first.
      unit: of points.
      title: of the figure.
      path: of the file, its ending the format.
    Returns:
      The path.
    """
    kinds = [(entries, "rating by rounds won (400 points: odds of ten to one)")]
    if "games" in entries[0]:
        kinds.append(([entry["games"] for entry in entries], "rating by games won"))
    kinds.append(([entry["points"] for entry in entries], f"{unit} per hand"))
    figure = _figure(figsize=(1 + 5 * len(kinds), 1.2 + 0.3 * len(entries)))
    axes = figure.subplots(1, len(kinds), sharey=True)
    place = list(range(len(entries)))[::-1]
    for ax, (records, label) in zip(axes, kinds, strict=True):
        rating, low, high = ([record[name] for record in records] for name in ("rating", "low", "high"))
        below = [r - a for r, a in zip(rating, low, strict=True)]
        above = [b - r for r, b in zip(rating, high, strict=True)]
        ax.errorbar(rating, place, xerr=[below, above], fmt="o", capsize=3, color="C0")
        ax.set_xlabel(f"{label}, 95 % interval")
        ax.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(place, _names(entries))
    axes[0].set_title(title, loc="left", fontsize="medium")
    return _saved(figure, path)


def plot_cross_table(
    entries: list[dict[str, Any]],
    key: str,
    title: str,
    path: Path,
    *,
    middle: float = 0.0,
    scale: float = 1.0,
    form: str = "+.1f",
) -> Path:
    """Plots what every player comes to against every other as a heat map, the row's player against the column's.

    Args:
      entries: records with `name` and `key`, a number or None by name, in the order of the records.
      key: of the numbers.
      title: of the figure.
      path: of the file, its ending the format.
      middle: of the colours, after scaling: what equals come to.
      scale: by which the numbers are multiplied.
      form: of the numbers in the cells.
    Returns:
      The path.
    """
    size = len(entries)
    figure = _figure(figsize=(2.5 + 0.5 * size, 1.5 + 0.4 * size))
    axes = figure.subplots()
    cells = [[math.nan if x is None else scale * x for x in entry[key].values()] for entry in entries]
    most = max((abs(x - middle) for row in cells for x in row if not math.isnan(x)), default=1.0) or 1.0
    axes.imshow(cells, cmap="RdBu", vmin=middle - most, vmax=middle + most, aspect="auto")
    for i, row in enumerate(cells):
        for j, x in enumerate(row):
            if not math.isnan(x):
                colour = "white" if abs(x - middle) > 0.6 * most else "black"
                axes.text(j, i, format(x, form), ha="center", va="center", fontsize=7, color=colour)
    names = _names(entries)
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
    figure.savefig(path, metadata=metadata, dpi=150, bbox_inches="tight")  # the title may be wider than the axes
    return path
