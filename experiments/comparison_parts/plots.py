"""The pictures of the comparison of all learners: final values, values on the way, matches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from result_tables.comparison import judged


def draw(compared: dict[str, Any], path: Path) -> None:
    """Draws a panel per game: each learner's seeds and their mean, and uniform play as a line."""
    plt = _pyplot()
    figure, panels = plt.subplots(
        1, len(compared), figsize=(3.2 * len(compared) + 1.5, 4.2), squeeze=False, sharey=True
    )
    names = sorted({name for game in compared.values() for name in game["learners"]}, reverse=True)
    for axes, (title, game) in zip(panels[0], sorted(compared.items()), strict=True):
        for name, learner in game["learners"].items():
            policy = judged(learner["exploitability"])
            found, at = learner["exploitability"][policy], names.index(name)
            seeds = np.maximum(found["values"], 1e-4 * game["uniform"])
            axes.plot(seeds, [at] * len(seeds), "o", color="C0" if policy == "current" else "C1", alpha=0.4)
            axes.plot([max(found["mean"], 1e-4 * game["uniform"])], [at], "|", color="black", markersize=14)
        axes.axvline(game["uniform"], color="grey", linewidth=0.8, linestyle="--")
        axes.set(xscale="log", xlabel=f"exploitability, {game['unit']}", title=title, yticks=range(len(names)))
        _plain_ticks(axes.xaxis)
        axes.grid(True, axis="x", which="major", linewidth=0.4, alpha=0.5)
    panels[0][0].set_yticklabels(names)
    figure.suptitle(
        "blue: last iterate, orange: average policy; bar: mean over seeds; dashed: uniform play", fontsize=9
    )
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def draw_matches(played: dict[str, Any], path: Path) -> None:
    """Draws a heat map per game: what the learner of the row earns against that of the column."""
    plt = _pyplot()
    columns = min(len(played), 2)
    rows = -(-len(played) // columns)
    figure, panels = plt.subplots(rows, columns, figsize=(6.5 * columns, 5.5 * rows), squeeze=False)
    for axes in panels.flat[len(played) :]:
        axes.remove()
    for axes, (title, game) in zip(panels.flat, played.items(), strict=False):
        names = sorted(game["earned"], key=lambda name: -np.mean(list(game["earned"][name].values())))
        values = np.array([[game["earned"][a].get(b, 0.0) for b in names] for a in names])
        bound = np.abs(values).max()
        axes.imshow(values, cmap="RdBu", vmin=-bound, vmax=bound)
        for (row, column), value in np.ndenumerate(values):
            if row != column:
                axes.text(
                    column,
                    row,
                    f"{value:+.2f}",
                    ha="center",
                    va="center",
                    fontsize=6,
                    color="white" if abs(value) > 0.7 * bound else "black",
                )
        axes.set(
            xticks=range(len(names)), yticks=range(len(names)), title=f"{title}: {game['unit']} per game to the row"
        )
        axes.set_xticklabels(names, rotation=45, ha="right", fontsize=7)
        axes.set_yticklabels(names, fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def draw_curves(measured: dict[str, Any], path: Path) -> None:
    """Draws a panel per game: exploitability of the policy a learner is judged by against nodes, the mean of seeds."""
    plt = _pyplot()
    figure, panels = plt.subplots(1, len(measured), figsize=(4.6 * len(measured) + 2.6, 4.4), squeeze=False)
    names = sorted({name for game in measured.values() for name in game["learners"]})
    for axes, (title, game) in zip(panels[0], sorted(measured.items()), strict=True):
        least = 1e-4 * game["uniform"]
        for name, learner in game["learners"].items():
            policy = judged(learner["runs"][0]["policies"])
            nodes, values = mean_curve([run["policies"][policy] for run in learner["runs"]])
            number = names.index(name)
            line = ("-", "--")[policy == "current"]
            axes.plot(nodes / 1e6, np.maximum(values, least), line, color=f"C{number % 10}", marker=".o"[number // 10])
        axes.axhline(game["uniform"], color="grey", linewidth=0.8, linestyle=":")
        axes.set(yscale="log", xlabel="nodes (decisions of both players), millions", title=title)
        _plain_ticks(axes.yaxis)
        axes.grid(True, which="major", linewidth=0.4, alpha=0.5)
    unit = next(iter(measured.values()))["unit"]
    panels[0][0].set_ylabel(f"exploitability, {unit}")
    handles = [plt.Line2D([], [], color=f"C{n % 10}", marker=".o"[n // 10], label=name) for n, name in enumerate(names)]
    panels[0][-1].legend(handles=handles, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure.suptitle("solid: average policy, dashed: last iterate; dotted: uniform play", fontsize=9)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def mean_curve(curves: list[dict[str, list[float]]]) -> tuple[np.ndarray, np.ndarray]:
    """Returns nodes, those of the first seed within what all seeds have, and there the mean, linear between points."""
    first = max(curve["nodes"][0] for curve in curves)
    last = min(curve["nodes"][-1] for curve in curves)
    nodes = np.unique(np.clip(np.array(curves[0]["nodes"], float), first, last))
    values = [np.interp(nodes, curve["nodes"], curve["exploitability"]) for curve in curves]
    return nodes, np.mean(values, axis=0)


def _plain_ticks(axis: Any) -> None:
    """Names 1, 2 and 5 of each power of ten on a log scale, as plain numbers."""
    from matplotlib import ticker

    axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    axis.set_minor_formatter(ticker.NullFormatter())


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "dream"
    import matplotlib.pyplot as plt

    return plt
