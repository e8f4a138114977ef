"""A run that has been trained, as an object: its directory, metrics, policies and final evaluation."""

from __future__ import annotations

import dataclasses
import functools
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from dream.evaluation.report import MatchReport
from dream.storage.checkpoint import Checkpoint, find
from dream.storage.files import EVALUATION_FILE, decoded
from dream.storage.policies import game_of, place_of, policies_of
from dream.storage.reports import measured
from dream.training import metrics
from envs import Game, InputError, Policy


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FinishedRun(os.PathLike):
    """A run on disk. It can be given wherever a run directory is asked for.

    Attributes:
      directory: of the run.
      game: what was played.
      metrics: the records of metrics.jsonl, one per iteration, in order.
      evaluation: the final matches by opponent; {} where the run was stopped before them.
      evaluated: the iteration that the final matches and exact values are of; None without them. Below `iteration` in a
        run that went on and was stopped before it measured again.
      exact: by policy, `nash_conv` and `exploitability` at the end, in game.unit; {} where the game is too
        large or not zero-sum.
    """

    directory: Path
    game: Game
    metrics: list[dict[str, float]]
    evaluation: dict[str, MatchReport]
    exact: dict[str, dict[str, float]]
    evaluated: int | None
    _checkpoint: Checkpoint

    @functools.cached_property
    def policies(self) -> dict[str, Policy]:
        """The policies of the latest checkpoint by name: "current", and "average" where the learner has one."""
        return policies_of(self._checkpoint, self.game)

    @property
    def iteration(self) -> int:
        """Iterations completed."""
        return self._checkpoint.meta["iteration"]

    @property
    def config(self) -> dict[str, Any]:
        """The whole configuration, nested as in config.yaml."""
        return self._checkpoint.meta["config"]

    def columns(self, *names: str) -> dict[str, np.ndarray]:
        """Returns the metrics as columns, ready for a plot or a data frame.

        Args:
          names: of metrics; only the records that hold all of them are used. Without names every metric is returned
            over all records, and NaN stands where a record lacks it.
        Returns:
          float64[records] by name.
        Raises:
          InputError: no record holds a metric of that name.
        """
        known = list(dict.fromkeys(key for record in self.metrics for key in record))
        for name in names:
            if name not in known:
                raise InputError(f"{self.directory} has no metric {name!r}; it has {', '.join(known)}")
        records = [record for record in self.metrics if all(name in record for name in names)]
        return {name: np.array([_number(record.get(name)) for record in records]) for name in names or known}

    def __fspath__(self) -> str:
        """Returns the run directory, so that a run can stand for its path."""
        return str(self.directory)

    def __str__(self) -> str:
        """Returns the run directory."""
        return str(self.directory)

    def __repr__(self) -> str:
        """Returns what the run is in one line."""
        return f"FinishedRun({str(self.directory)!r}, game={self.game.name}, iteration={self.iteration})"


def load_run(reference: str | os.PathLike[str]) -> FinishedRun:
    """Reads a run from disk.

    Args:
      reference: a run directory, or a checkpoint's folder in one.
    Returns:
      The FinishedRun, its policies those of the latest checkpoint or of the one named.
    Raises:
      InputError: there is no run with a readable checkpoint, or a checkpoint outside of a run.

    Example:
      >>> run = dream.load_run("runs/leduc")
      >>> curve = run.columns("iteration", "eval/exploitability/average")
      >>> curve["iteration"]
      array([1.])
    """
    trained = find(place_of(reference))
    directory = trained.run_dir
    report = _evaluation(directory / EVALUATION_FILE)
    by_opponent = report.get("by_opponent") or ({report["opponent"]: report} if "opponent" in report else {})
    game = game_of(trained)
    reports = {name: MatchReport.of_record(game.unit, record) for name, record in by_opponent.items()}
    exact, evaluated = report.get("exact", {}), report.get("iteration")
    if (other := _other(report, trained)) is not None:
        print(f"warning: {directory / EVALUATION_FILE} is of {other}", file=sys.stderr)
    return FinishedRun(directory, game, metrics.read(directory), reports, exact, evaluated, trained)


def _other(report: dict[str, Any], trained: Checkpoint) -> str | None:
    """Returns what a final evaluation is of, and what the run is, in words; None where it may be of this checkpoint."""
    newest, evaluated = trained.meta["iteration"], report.get("iteration")
    if evaluated is not None and evaluated != newest:
        return f"iteration {evaluated}, the checkpoint of iteration {newest}"
    stated = report.get("measured", {}).get("checkpoint")
    if stated is not None and stated != measured(trained):
        return f"another checkpoint of iteration {newest} than the one that is there"
    return None


def _evaluation(path: Path) -> dict[str, Any]:
    try:
        report = decoded(path.read_bytes()) if path.exists() else {}
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}); evaluate the run again") from error
    if not isinstance(report, dict):
        raise InputError(f"{path} holds no report; evaluate the run again")
    return report


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)
