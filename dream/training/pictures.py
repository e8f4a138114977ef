"""Pictures of a run in its directory: curves of what was measured, and the strategy where a game has a chart of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from dream.evaluation import charts
from dream.game_tree.tabular_policy import tabulate
from dream.game_tree.tree import Tree
from dream.storage import files
from dream.training import metrics
from envs import Policy

CURVES_FILE, STRATEGY_FILE, SWEEP_FILE = "curves.svg", "strategy.svg", "sweep.svg"
_PANELS = ("exploitability", "points_per_hand", "win_rate", "loss", "entropy")
"""Metrics drawn, each a panel: names that end in it, or for the last two hold it and are neither rates nor weights."""
_IN_POINTS = _PANELS[:2]
_MOST_SETS = 5000
"""Information sets of a game that is asked for a chart of its strategy."""


def draw_run(
    run_dir: Path, title: str, unit: str, tree: Tree | None, policies: Mapping[str, Policy], *, keeps: bool = True
) -> list[Path]:
    """Writes the pictures of a run; what fails is said in one line, and the run is none the worse.

    Args:
      run_dir: of the run, with its metrics.
      title: of the curves.
      unit: of the game's points.
      tree: of the game, None where there is none.
      policies: by name.
      keeps: False computes what is drawn and writes nothing, as hosts do that help the first one to compute it.
    Returns:
      The files written.
    """
    written = []
    for name, draw in (
        (CURVES_FILE, lambda: _curves(run_dir, title, unit)),
        (STRATEGY_FILE, lambda: _strategies(tree, policies)),
    ):
        try:
            drawing = draw()
            if drawing and keeps:
                files.write_text(run_dir / name, drawing)
                written.append(run_dir / name)
        except Exception as error:
            print(f"no {name}: {type(error).__name__}: {error}", flush=True)
    return written


def draw_sweep(folder: Path, outcomes: Iterable[tuple[str, float | None, Path]]) -> Path | None:
    """Writes one picture that compares a sweep's jobs: their objectives, and the curves that all of them have.

    Args:
      folder: of the sweep.
      outcomes: label, objective (None without one) and run directory of each job, a number in `folder`.
    Returns:
      The file; None where there is nothing to compare, or drawing failed, which is said in one line.
    """
    jobs = [(f"{path.name}. {label}", objective, path) for label, objective, path in outcomes]
    ended = {label: objective for label, objective, _ in jobs if objective is not None}
    if len(ended) < 2 or not folder.is_dir():
        return None
    try:
        drawn = [charts.values("objective by job", ended, "lower is better")]
        by_job = {label: columns(_records(path)) for label, _, path in jobs}
        shared = sorted(set.intersection(*(set(found) for found in by_job.values())))
        units = {_unit(path) for _, _, path in jobs} - {None}
        for name in [name for name in shared if name.startswith("eval/") and _measures(name)][:4]:
            counted = len(units) == 1 and any(_belongs(name, panel) for panel in _IN_POINTS)
            title = f"{name}, {next(iter(units))} per hand" if counted else name
            drawn.append(charts.curves(title, {label: found[name] for label, found in by_job.items()}, "iteration"))
        files.write_text(folder / SWEEP_FILE, charts.page(drawn, columns=1))
    except Exception as error:
        print(f"no {SWEEP_FILE}: {type(error).__name__}: {error}", flush=True)
        return None
    return folder / SWEEP_FILE


def columns(records: Iterable[Mapping[str, Any]]) -> dict[str, tuple[list[float], list[float]]]:
    """Returns metrics as curves over the iterations: name -> (iterations, values)."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    for record in records:
        for name, value in record.items():
            if isinstance(value, int | float) and name != "iteration":
                xs, ys = found.setdefault(name, ([], []))
                xs.append(record["iteration"])
                ys.append(value)
    return found


def _records(run_dir: Path) -> list[dict[str, Any]]:
    path = run_dir / metrics.FILE
    return [json.loads(line) for line in path.read_text().splitlines() if line] if path.exists() else []


def _unit(run_dir: Path) -> str | None:
    """Returns the unit of a run's points; None where it was not evaluated at its end."""
    path = run_dir / files.EVALUATION_FILE
    return files.decoded(path.read_bytes()).get("unit") if path.exists() else None


def _curves(run_dir: Path, title: str, unit: str) -> str:
    found = columns(_records(run_dir))
    words = {"exploitability": f"exploitability, {unit} per hand", "points_per_hand": f"{unit} per hand"}
    drawn = []
    for panel in _PANELS:
        series = {name: curve for name, curve in found.items() if _belongs(name, panel)}
        if series:
            drawn.append(charts.curves(f"{title}: {words.get(panel, panel.replace('_', ' '))}", series, "iteration"))
    return charts.page(drawn) if drawn else ""


def _measures(name: str) -> bool:
    return any(_belongs(name, panel) for panel in _PANELS[:3])


def _belongs(name: str, panel: str) -> bool:
    parts = name.split("/")
    if panel == "exploitability":
        return panel in parts
    if panel in ("loss", "entropy"):
        return panel in parts[-1] and parts[0] != "eval" and not parts[-1].endswith(("_rate", "_weight"))
    return parts[-1] == panel


def _strategies(tree: Tree | None, policies: Mapping[str, Policy]) -> str:
    """Returns the chart of each policy; "" where the game names no situations."""
    if tree is None or tree.num_infosets > _MOST_SETS:
        return ""
    views = [jax.tree.map(lambda x, n=n: x[n], tree.views) for n in range(tree.num_infosets)]
    places = [tree.game.situation(view) for view in views]
    if any(place is None for place in places):
        return ""
    drawn = []
    for name, policy in policies.items():
        cells = _cells(tree, places, tabulate(tree, policy))
        drawn.append(charts.strategy(f"{tree.game.name}: {name} policy", cells))
    return charts.page(drawn, columns=1)


def _cells(tree: Tree, places: list[tuple[str, str]], table: np.ndarray) -> dict[tuple[str, str], dict[str, float]]:
    """Returns the mean probabilities of the information sets that share a place in the chart."""
    sums: dict[tuple[str, str], list[np.ndarray]] = {}
    legal: dict[tuple[str, str], np.ndarray] = {}
    for n, place in enumerate(places):
        sums.setdefault(place, []).append(table[n])
        legal[place] = legal.get(place, False) | tree.legal[n]
    order = sorted(sums, key=lambda place: (len(place[1]), len(place[0].split()), place[0]))  # as a game goes on
    return {
        place: {
            tree.game.action_name(int(action)): float(np.mean(sums[place], axis=0)[action])
            for action in np.flatnonzero(legal[place])
        }
        for place in order
    }
