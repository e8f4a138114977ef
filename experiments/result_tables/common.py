"""What all tables are made of: stored results, and numbers with their intervals as cells of Markdown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dream.evaluation.statistics import Interval, mean_interval

EXPERIMENTS = Path(__file__).resolve().parents[1]
RESULTS = EXPERIMENTS / "results"
REPRODUCED = EXPERIMENTS / "reproduce" / "results"

RENAMED = (
    ("algo=dream_vr", "algo=dream"),
    ("algo=dream ", "algo=dueling_dream "),
    (".over=", ".transition_steps="),
    ("over:", "transition_steps:"),
    ("games_per_iteration", "episodes_per_iteration"),
    ("trace:", "gae_lambda:"),
)
"""Old -> new names, for command lines stored before the names changed."""


def stored(name: str) -> Any:
    """Returns a result file's content."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def reproduced(row: str) -> Any:
    """Returns the stored result of a row of reproduce/rows.yaml, None where there is none."""
    path = REPRODUCED / f"{row}.json"
    return json.loads(path.read_text()) if path.exists() else None


def table(head: str, rows: Iterable[Iterable[Any]], before: str = "") -> list[str]:
    """Returns the lines of a table.

    Args:
      head: names of the columns, between them " | ".
      rows: their cells.
      before: the line above it.
    """
    first, *others = (f"| {line} |" for line in (head, *(" | ".join(map(str, row)) for row in rows)))
    return [*([before, ""] if before else []), first, "|---" * (head.count(" | ") + 1) + "|", *others]


def over_samples(
    values: Sequence[float], interval: Callable[[np.ndarray], Interval] = mean_interval
) -> dict[str, float | None]:
    """Returns the mean and its interval over runs, or over pairs of them; one alone has none: null."""
    if len(values) < 2:
        return {"mean": float(values[0]), "low": None, "high": None}
    return interval(np.array(values))._asdict()


def percent(interval: dict[str, float | None]) -> str:
    """Returns a rate and its 95 % interval, cut to between 0 and 1, where it has one."""
    mean = f"{100 * interval['mean']:.2f} %"
    if interval["low"] is None:
        return mean
    low, high = max(interval["low"], 0.0), min(interval["high"], 1.0)
    return f"{mean} ({100 * low:.2f} to {100 * high:.2f})"


def signed(interval: dict[str, float | None]) -> str:
    """Returns points and their 95 % interval, where they have one, with signs."""
    return written(interval, "+.2f")


def written(interval: dict[str, float | None], form: str) -> str:
    """Returns a mean and its interval, where it has one, each number in a format."""
    mean, low, high = (None if x is None else format(x, form) for x in map(interval.get, ("mean", "low", "high")))
    return mean if low is None else f"{mean} ({low} to {high})"


def decided(report: dict[str, Any]) -> float:
    """Returns the share of rounds won of those that were not tied."""
    return report["win_rate"]["mean"] / (report["win_rate"]["mean"] + report["loss_rate"]["mean"])


def renamed(command: str) -> str:
    """Returns a stored command line by the names of today, for a shell: what it would expand is quoted."""
    for old, new in RENAMED:
        command = f"{command} ".replace(old, new).rstrip()
    return " ".join(f"'{word}'" if "{" in word else word for word in command.split(" "))
