"""Draws results/<game>.svg from results/*.json: exploitability against nodes and seconds, every method on one axis."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from rows import RESULTS, Spec, read_spec
from table import collected

from envs.errors import InputError

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "dream"
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib import ticker  # noqa: E402

AXES = {"nodes": "nodes (decisions of both players)", "seconds": "seconds (compiling and evaluating included)"}
LINES = ("-", "--", ":")
"""A method has its own colour; beyond ten, its own way of being drawn too."""


def longest(spec: Spec, results: list[dict[str, Any]]) -> dict[str, dict[str, dict[str, Any]]]:
    """Returns game -> runs' row -> result with a label, of rows that read the same runs the one that goes furthest."""
    games: dict[str, dict[str, dict[str, Any]]] = {}
    for result in results:
        row = spec.row(result["row"])
        run = row.run or result["row"]
        name = run.removeprefix(f"{result['game'].removesuffix('_poker')}_")
        label = name if result["policy"] == "average" else f"{name}, current policy"
        chosen = games.setdefault(result["game"], {})
        if run not in chosen or chosen[run]["nodes"] < result["nodes"]:
            chosen[run] = result | {"label": label}
    return games


def band(runs: list[dict[str, Any]], axis: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Returns places on an axis, and there the mean over seeds, the lowest and the highest seed.

    Seeds are interpolated in logarithms at equal nodes, between the last of their first nodes and the first of their
    last ones. On another axis the place is the seeds' mean there: one seed may have compiled and another not.
    """
    curves = [{name: np.array(values, float) for name, values in run["curve"].items()} for run in runs]
    curves = [{name: x[curve["exploitability"] > 0] for name, x in curve.items()} for curve in curves]
    first, last = (f(curve["nodes"][n] for curve in curves) for f, n in ((max, 0), (min, -1)))
    nodes = np.geomspace(first, max(first, last), 100) if len(curves) > 1 else curves[0]["nodes"]
    at = {
        name: np.exp([np.interp(np.log(nodes), np.log(curve["nodes"]), np.log(curve[name])) for curve in curves])
        for name in (axis, "exploitability")
    }
    values = at["exploitability"]
    return at[axis].mean(axis=0), values.mean(axis=0), values.min(axis=0), values.max(axis=0)


def draw(results: list[dict[str, Any]], title: str, path: Path) -> None:
    """Draws one game's methods."""
    figure, panels = plt.subplots(1, 2, figsize=(11, 4.4), sharey=True)
    for axes, (axis, label) in zip(panels, AXES.items(), strict=True):
        for number, result in enumerate(results):
            places, mean, low, high = band(result["runs"], axis)
            colour, line = f"C{number % 10}", LINES[number // 10 % len(LINES)]
            axes.plot(
                places, mean, line, color=colour, linewidth=1.3, label=result["label"], marker="." * (len(places) == 1)
            )
            axes.fill_between(places, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.set(xscale="log", yscale="log", xlabel=label)
        axes.xaxis.set_minor_formatter(ticker.NullFormatter())
        axes.grid(True, which="major", linewidth=0.4, alpha=0.5)
    panels[1].xaxis.set_major_locator(ticker.LogLocator(subs=(1, 3)))
    panels[1].xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    panels[0].set_ylabel(f"exploitability, {results[0]['unit']}")
    panels[1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure.suptitle(f"{title}: mean over seeds, band from the lowest to the highest seed", fontsize=10)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS, help="where results are and plots go")
    folder = parser.parse_args().results
    try:
        spec = read_spec()
        games = longest(spec, collected(spec, folder))
        if not games:
            raise InputError(f"--results {folder} holds no results; it must be a folder of <row>.json")
    except InputError as error:
        parser.exit(2, f"error: {error}\n")
    for game, runs in games.items():
        path = folder / f"{game}.svg"
        draw(list(runs.values()), spec.games[game].title, path)
        print(path)


if __name__ == "__main__":
    main()
