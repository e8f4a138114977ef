"""Weights & Biases: a view of a run's record; whatever goes wrong here is said once and ends nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dream.config.schema import TrackingConfig

_LOG = logging.getLogger(__name__)


class Tracker:
    """One W&B run, or nothing where tracking is disabled or lost."""

    def __init__(self, config: TrackingConfig, run_dir: Path, *, group: str, run_id: str, settings: Any) -> None:
        """Starts the W&B run.

        Args:
          config: mode, project, tags and so on.
          run_dir: where the W&B files go; its name is the run's.
          group: used where the configuration names none.
          run_id: W&B's id; a resumed run goes on under the same one.
          settings: the resolved configuration, plain.
        """
        self._run: Any = None
        if config.mode == "disabled":
            return
        self._run = self._try(lambda: _start(config, run_dir, config.group or group, run_id, settings))

    def log(self, record: dict[str, Any]) -> None:
        """Sends one record of metrics.jsonl."""
        if self._run is not None:
            self._try(lambda: self._run.log(record))

    def log_evaluation(self, opponent: str, report: dict[str, Any]) -> None:
        """Sends a final evaluation as a table, and its means as the run's summary."""
        if self._run is not None:
            self._try(lambda: _log_table(self._run, opponent, report))

    def close(self) -> None:
        """Ends the W&B run."""
        if self._run is not None:
            self._try(lambda: self._run.finish())

    def _try(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except Exception as error:
            _LOG.warning("W&B is lost (%s: %s); the run goes on without it", type(error).__name__, error)
            self._run = None
            return None


def _start(config: TrackingConfig, run_dir: Path, group: str, run_id: str, settings: Any) -> Any:
    import wandb

    run = wandb.init(
        mode=config.mode,
        project=config.project,
        entity=config.entity,
        group=group,
        job_type=config.job_type,
        tags=list(config.tags),
        name=run_dir.name,
        id=run_id,
        resume="allow",
        dir=str(run_dir),
        config=settings,
        settings=wandb.Settings(silent=True, console="off", init_timeout=30),
    )
    # Any of these can be the horizontal axis; none is W&B's own step, which a resumed run could not repeat.
    for axis in ("iteration", "decisions", "seconds"):
        run.define_metric(axis, summary="max")
    run.define_metric("*", step_metric="iteration")
    return run


def _log_table(run: Any, opponent: str, report: dict[str, Any]) -> None:
    import wandb

    rows = [[name, *value] for name, value in report.items() if hasattr(value, "mean")]
    run.log({f"evaluation/{opponent}": wandb.Table(columns=["quantity", "mean", "low", "high"], data=rows)})
    run.summary.update({f"final/{opponent}/{name}": mean for name, mean, _, _ in rows})
