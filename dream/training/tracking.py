"""Weights & Biases: a view of a run's record; whatever goes wrong here is said in one line and ends nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dream.config.schema import TrackingConfig
from dream.training import tracked
from envs import Game, Policy

_SECONDS_BETWEEN_RECORDS = 0.1
"""Records that come faster are not all sent: W&B takes longer over one than a small game's iteration; the run's own
file has them all."""
_CONNECT_SECONDS = 30
_FINISH_SECONDS = 60.0
"""What W&B has to send the rest of a run; a server that is gone would be waited for without end."""


class Tracker:
    """One W&B run, or nothing where tracking is disabled or lost."""

    def __init__(
        self, config: TrackingConfig, run_dir: Path, *, group: str, name: str, run_id: str, settings: Any
    ) -> None:
        """Starts the W&B run; one that cannot be reached online is kept offline.

        Args:
          config: mode, project, tags and so on.
          run_dir: where the W&B files go.
          group: used where the configuration names none.
          name: of the W&B run.
          run_id: W&B's id; a resumed run goes on under the same one, so that its parts are sent as one run.
          settings: the resolved configuration, plain.
        """
        self._run: Any = None
        self._name, self._sent = name, -math.inf
        if config.mode == "disabled":
            return
        config = dataclasses.replace(config, group=config.group or group)
        offline = dataclasses.replace(config, mode="offline")
        if config.mode == "online":
            try:
                self._run = _start(config, run_dir, name, run_id, settings)
                print(f"W&B: {self._run.url}", flush=True)
                return
            except Exception as error:
                _say(f"W&B cannot be reached ({_brief(error)}); the run is kept offline, to be sent with `wandb sync`")
                _release()
        self._run = self._try(lambda: _start(offline, run_dir, name, run_id, settings))

    def log(self, record: dict[str, Any]) -> None:
        """Sends one record of metrics.jsonl, unless it is of no evaluation and the last was sent just before."""
        evaluated = any(name.startswith("eval/") for name in record)
        if self._run is not None and (evaluated or time.monotonic() - self._sent >= _SECONDS_BETWEEN_RECORDS):
            self._try(lambda: self._run.log(record))
            self._sent = time.monotonic()

    def log_evaluation(self, iteration: int, opponent: str, report: dict[str, Any]) -> None:
        """Sends a match of an evaluation as a table."""
        if self._run is not None:
            self._try(lambda: _log_table(self._run, iteration, opponent, report))

    def summarise(self, reports: dict[str, dict[str, Any]]) -> None:
        """Sends the means of the final evaluation, by opponent, as the run's summary."""
        if self._run is not None:
            means = {f"final/{name}/{row[0]}": row[1] for name, report in reports.items() for row in _rows(report)}
            self._try(lambda: self._run.summary.update(means))

    def log_hands(self, iteration: int, game: Game, opponent: str, played: Sequence[dict[str, Any]]) -> None:
        """Sends a few hands of an evaluation as pictures."""
        if self._run is not None:
            self._try(lambda: tracked.log_hands(self._run, iteration, game, opponent, self._name, played))

    def log_pictures(self, paths: Iterable[Path]) -> None:
        """Sends pictures of the run."""
        if self._run is not None:
            self._try(lambda: tracked.log_pictures(self._run, paths))

    def log_policy(self, iteration: int, policy: Policy) -> None:
        """Sends a checkpoint's policy as an artifact."""
        if self._run is not None:
            self._try(lambda: tracked.log_policy(self._run, iteration, policy))

    def close(self, *, failed: bool = False) -> None:
        """Ends the W&B run, as a failed one where asked, or leaves it where that takes too long."""
        if self._run is not None and not within(_FINISH_SECONDS, lambda: self._try(lambda: _finish(self._run, failed))):
            _say(f"W&B did not finish within {_FINISH_SECONDS:.0f} s and is left; `wandb sync` sends the rest")
            _release()
        self._run = None

    def _try(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except Exception as error:
            _say(f"W&B is lost ({_brief(error)}); the run goes on without it")
            self._run = None
            _release()
            return None


def within(seconds: float, action: Callable[[], Any]) -> bool:
    """Runs an action in a thread of its own; returns whether it was over in time. It must not raise."""
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()


def _release() -> None:
    """Gives W&B's process up, and its work at the interpreter's end, which would wait for it or print a traceback."""
    teardown = getattr(sys.modules.get("wandb"), "teardown", None)
    if teardown is None:
        return

    def quietly() -> None:
        with contextlib.suppress(Exception, SystemExit):
            teardown()

    within(5.0, quietly)


def _brief(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:160]}" if lines else type(error).__name__


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _start(config: TrackingConfig, run_dir: Path, name: str, run_id: str, settings: Any) -> Any:
    os.environ.setdefault("WANDB_SILENT", "true")  # without a key it would ask for one, and wait

    import wandb

    run = wandb.init(
        mode=config.mode,
        project=config.project,
        entity=config.entity,
        group=config.group,
        job_type=config.job_type,
        tags=_tags(config.tags, settings),
        name=name,
        id=run_id,
        resume="allow",
        reinit="create_new",  # else a run still open in this process would be taken for this one
        dir=str(run_dir),
        config=settings,
        settings=wandb.Settings(silent=True, console="off", init_timeout=_CONNECT_SECONDS),
    )
    # Any of these can be the horizontal axis; none is W&B's own step, which a resumed run could not repeat.
    for axis in ("iteration", "decisions", "seconds"):
        run.define_metric(axis, summary="max")
    run.define_metric("*", step_metric="iteration")
    return run


def _tags(given: Sequence[str], settings: Any) -> list[str]:
    """Returns the tags of a run: those given, and the names of algorithm, game and network."""
    parts = settings if isinstance(settings, Mapping) else {}
    names = [parts[part]["name"] for part in ("algo", "env", "network") if "name" in (parts.get(part) or {})]
    return list(dict.fromkeys([*given, *map(str, names)]))


def _finish(run: Any, failed: bool) -> None:
    run.finish(exit_code=1) if failed else run.finish()


def _rows(report: dict[str, Any]) -> list[list[Any]]:
    return [[name, *value] for name, value in report.items() if hasattr(value, "mean")]


def _log_table(run: Any, iteration: int, opponent: str, report: dict[str, Any]) -> None:
    import wandb

    table = wandb.Table(columns=["quantity", "mean", "low", "high"], data=_rows(report))
    run.log({"iteration": iteration, f"evaluation/{opponent}": table})
