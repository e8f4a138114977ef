"""From the records of a row's runs to its result: mean and interval over seeds, counters, curves, times."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
from comparable import check_earlier, check_run
from omegaconf import OmegaConf
from rows import GameSpec, Row, Spec, short

import envs
from dream.config.compose import compose_config
from dream.evaluation.statistics import positive_interval
from dream.storage.files import CONFIG_FILE, VERSIONS_FILE
from dream.training import metrics
from envs.errors import InputError

POINTS = 60
"""Of a curve that is kept."""
COUNTED = ("seconds", "compile_seconds", "seconds_evaluate", *metrics.COUNTERS, "iterations")
CURVE = ("nodes", "seconds", "exploitability")


def measured(spec: Spec, name: str, run_dirs: dict[int, Path], earlier: dict[str, Any] | None = None) -> dict[str, Any]:
    """Returns the result of a row.

    Args:
      spec: the rows.
      name: the row's.
      run_dirs: seed -> run directory.
      earlier: the row's stored result, whose other seeds are kept; nothing for none.
    Raises:
      InputError: a run that is not there, not evaluated within the budget, or of other settings than the row's; an
        earlier result of others.
    """
    row, game = spec.row(name), spec.games[spec.row(name).game]
    runs = [one_run(row, game.thresholds, seed, run_dir) for seed, run_dir in run_dirs.items()]
    for seed, run_dir in run_dirs.items():
        check_run(spec, name, seed, run_dir)
    if earlier:
        check_earlier(spec, name, earlier)
    overrides = [text for text in spec.run_overrides(row, 0) if not text.startswith("seed=")]
    played = _game(game)
    runs = sorted([*_others(earlier, run_dirs), *runs], key=lambda run: run["seed"])
    values = np.array([run["exploitability"] for run in runs])
    low, high = interval(values.tolist(), row.deterministic)
    mean = float(values.mean())
    begun = [json.loads((run_dir / VERSIONS_FILE).read_text()) for run_dir in run_dirs.values()]
    made = [sitting for one in begun for sitting in (one, *one.get("resumed", ()))]
    return {
        "row": name,
        "game": row.game,
        "algorithm": row.algorithm,
        "kind": row.kind,
        "policy": row.policy,
        "identity": played.identity,
        "unit": f"{played.unit} / 1000",
        **{key: _rounded(value) for key, value in (("mean", mean), ("low", low), ("high", high))},
        "seeds": len(runs),
        "mean_over": row.mean_over,
        "published": row.published,
        "source": row.source,
        "tolerance": {"at_most": row.tolerance.at_most, "at_least": row.tolerance.at_least},
        "within_tolerance": row.tolerance.allows(mean),
        "budget": row.budget.limits,
        "shortened": shortened(row, runs),
        "note": row.note,
        **{key: _rounded(float(np.mean([run[key] for run in runs]))) for key in COUNTED},
        "seconds_to": {str(level): _time_to(level, runs) for level in game.thresholds},
        "deterministic": row.deterministic,
        "overrides": overrides,
        "recipe": recipe(next(iter(run_dirs.values()))),
        "machine": {key: _made(key, made, earlier) for key in ("device", "cores", "jax", "git_commit")},
        "load_1_minute": max(one["load_1_minute"] for one in (*made, *([earlier] if earlier else []))),
        "runs": runs,
    }


def _others(earlier: dict[str, Any] | None, run_dirs: dict[int, Path]) -> list[dict[str, Any]]:
    """Returns the runs of an earlier result whose seeds are not run again."""
    return [run for run in earlier["runs"] if run["seed"] not in run_dirs] if earlier else []


def _made(key: str, made: list[dict[str, Any]], earlier: dict[str, Any] | None) -> list[str]:
    """Returns what the runs ran on, or of which commit, those of an earlier result included."""
    return sorted({str(one[key]) for one in made} | set(earlier["machine"][key] if earlier else ()))


def recipe(run_dir: Path) -> dict[str, Any] | None:
    """Returns every setting of a run's algorithm and network, as resolved; None where the run stored none."""
    path = run_dir / CONFIG_FILE
    return resolved(OmegaConf.load(path)) if path.exists() else None


def resolved(node: Any) -> dict[str, Any]:
    """Returns the settings of a configuration's algorithm and network."""
    return {part: OmegaConf.to_container(node[part], resolve=True) for part in ("algo", "network")}


def _game(game: GameSpec) -> envs.Game:
    node = compose_config("config", list(game.overrides)).node
    return envs.make(node.env.name, **node.env.rules)


def one_run(row: Row, thresholds: tuple[float, ...], seed: int, run_dir: Path) -> dict[str, Any]:
    """Returns what is kept of one seed, up to the row's budget."""
    key = f"eval/exploitability/{row.policy}"
    records = metrics.read(run_dir)
    points, evaluating = [], 0.0
    for record in records:
        evaluating += record.get("seconds_evaluate", 0.0)
        if record.get(key) is not None:
            points.append(record | {"iterations": record["iteration"], "seconds_evaluate": round(evaluating, 3)})
    if not points:
        raise InputError(f"{run_dir} has no evaluation of the {row.policy} policy; run the row first")
    within = [point for point in points if row.budget.holds(point)]
    if not within:
        first = ", ".join(f"{short(points[0][name])} {name}" for name in row.budget.limits)
        raise InputError(
            f"{run_dir} has no evaluation within the budget of {row.budget}, the first is at {first}; "
            "evaluate earlier (eval.every)"
        )
    last, ended, window = within[-1], points[-1], within[-row.mean_over :]
    if len(window) < row.mean_over:
        raise InputError(f"{run_dir} has {len(window)} evaluations within the budget; mean_over={row.mean_over}")
    return {
        "seed": seed,
        "exploitability": _rounded(1000 * float(np.mean([point[key] for point in window]))),
        **{name: last[name] for name in COUNTED},
        "ended": {name: ended[name] for name in ("seconds", *metrics.COUNTERS, "iterations")},
        "seconds_to": {str(level): _first(within, key, level) for level in thresholds},
        "curve": _curve(within, key),
    }


def _first(points: list[dict[str, Any]], key: str, level: float) -> float | None:
    """Returns the seconds at the first evaluation at or below a level, None where there is none."""
    return next((point["seconds"] for point in points if point[key] <= level), None)


def _curve(points: list[dict[str, Any]], key: str) -> dict[str, list[float]]:
    """Returns at most POINTS evaluations, evenly spaced in the logarithm of their number, first and last among them."""
    chosen = np.unique(np.geomspace(1, len(points), min(POINTS, len(points))).round().astype(int)) - 1
    shown = [points[n] | {"exploitability": _rounded(1000 * points[n][key])} for n in chosen]
    return {name: [point[name] for point in shown] for name in CURVE}


def interval(values: list[float], deterministic: bool) -> tuple[float | None, float | None]:
    """Returns the 95 % interval over seeds, on a log scale as exploitability is positive.

    Args:
      values: of each seed; one alone has no interval.
      deterministic: whether nothing is random, so that the interval has no width.
    """
    if deterministic:
        return min(values), max(values)
    if len(values) < 2:
        return None, None
    low, high = positive_interval(np.array(values))[1:]
    return low, high


def _time_to(level: float, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the mean seconds to a level over the seeds that got there, and how many did."""
    times = [run["seconds_to"][str(level)] for run in runs if run["seconds_to"][str(level)] is not None]
    return {"mean": _rounded(float(np.mean(times))) if times else None, "reached": len(times)}


def shortened(row: Row, runs: list[dict[str, Any]]) -> str | None:
    """Returns in words by how much the runs fall short of the row; None where they do not."""
    reasons = []
    missing = [run for run in runs if not row.budget.reached(run["ended"])]
    if missing:
        least = min(missing, key=lambda run: run["ended"]["nodes"])["ended"]
        parts = (f"{short(least[name])} of {short(limit)} {name}" for name, limit in row.budget.limits.items())
        reasons.append(f"stopped at {', '.join(parts)}")
    if len(runs) < len(row.seeds):
        reasons.append(f"{len(runs)} of {len(row.seeds)} seeds")
    return "; ".join(reasons) or None


def _rounded(value: float | None) -> float | None:
    """Returns six significant digits, whole numbers whole."""
    if value is None or value == 0 or not math.isfinite(value):
        return value
    value = round(value, max(0, 5 - math.floor(math.log10(abs(value)))))
    return int(value) if value == int(value) and abs(value) >= 1e5 else value


def written(result: dict[str, Any], path: Path) -> Path:
    """Writes a result, a list of numbers on one line; returns the path."""
    text = re.sub(r"\[[^\[\]{}\"]*\]", _on_one_line, json.dumps(result, indent=2))
    metrics.write_text(path, text + "\n")
    return path


def _on_one_line(found: re.Match[str]) -> str:
    return f"[{' '.join(found.group()[1:-1].split())}]"
