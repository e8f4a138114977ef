"""A run: iterations of any algorithm, with its record, checkpoints and evaluations, from any point on."""

from __future__ import annotations

import contextlib
import copy
import math
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
from omegaconf import OmegaConf

from dream.compiled import devices
from dream.evaluation import match
from dream.evaluation.report import report_table
from dream.game_tree.exact import is_exact
from dream.game_tree.forms import TreeForm, exact_form
from dream.storage import files
from dream.storage.checkpoint import Checkpoint, CheckpointWriter, find, has_checkpoint, newest
from dream.storage.finite import not_finite
from dream.storage.lock import RunLock
from dream.storage.policies import chosen_policy
from dream.storage.tree_cache import stored_tree
from dream.training import announce, faults, metrics
from dream.training.beginning import Start
from dream.training.objective import objective
from dream.training.pictures import draw_run
from dream.training.progress import Pace, RunProgress
from dream.training.signals import PATIENCE_SECONDS, StopRequest
from dream.training.tracked import HANDS
from dream.training.tracking import Tracker
from dream.training.versions import versions
from envs import HostPlayer, InputError, Policy

_FINAL, _WATCHED = 1, 2
"""Folded into the seed's key for the deals of the final evaluation, and for those watched during training: neither are
those that a match with the same seed plays later."""


class _LeftError(Exception):
    """An evaluation is left, as a signal asks."""


class Run:
    """A run under way: everything the loop needs between two iterations."""

    def __init__(
        self, start: Start, before_writing: Callable[[], None] = lambda: None, lock: RunLock | None = None
    ) -> None:
        """Builds game, learner and state, restored where the run goes on, and only then writes to the run directory.

        Args:
          start: what to start from.
          before_writing: called when all is built and nothing written.
          lock: of the run directory, held already where the run goes on; of a new run acquired before it is first
            written to.
        Raises:
          InputError: a damaged checkpoint or one of another network, or a folder in use or not to be written to.
        """
        self.clock = metrics.CompileClock()
        self.began = self.clock.began
        self.start, self.run_dir, self._lock = start, start.run_dir, lock
        self.config, self.game, self.algorithm = start.parts.config, start.parts.game, start.parts.algorithm
        self.opponents = start.parts.opponents
        key, stored = jax.random.key(self.config.seed), start.checkpoint
        self.form = exact_form(self.game, stored_tree) if self.config.eval.exact and is_exact(self.game) else None
        self.totals, self.seconds_before, self.compiled_before = dict.fromkeys(metrics.COUNTERS, 0), 0.0, 0.0
        self.iteration, self.wandb_id, self.saved = 0, uuid.uuid4().hex[:12], None
        self.state = self.algorithm.init(key)
        if stored is not None:
            self._restore(stored)
        self.objective: float | None = None
        self.hands: dict[str, list[dict[str, Any]]] = {}
        self.ended, self._measured = self._at_end(), (-1, {})
        before_writing()
        try:
            self._prepare_folder()
            self.writer = CheckpointWriter(self.run_dir, self.config.checkpoint.keep)
            self.writer.drop_after(self.iteration)
        except OSError as error:
            raise faults.cannot_begin(self.run_dir, error) from error

    def _restore(self, stored: Checkpoint) -> None:
        """Takes over what a checkpoint holds, and says what there is beyond it in the run directory."""
        meta = stored.meta
        missing = {"counters", "seconds", "compile_seconds", "wandb_id"} - meta.keys()
        if missing:
            raise InputError(f"{stored.path} cannot be gone on from: its meta lacks {', '.join(sorted(missing))}")
        self.state = stored.restore(self.state)
        self.totals |= {name: meta["counters"][name] for name in metrics.COUNTERS if name in meta["counters"]}
        self.seconds_before, self.compiled_before = meta["seconds"], meta["compile_seconds"]
        self.iteration = self.saved = meta["iteration"]
        self.wandb_id = meta["wandb_id"]
        records, damaged = metrics.scan(self.run_dir)
        later = sum(record["iteration"] > self.iteration for record in records)
        dropped = [f"{later} later records"] * bool(later) + [f"{damaged} damaged lines"] * bool(damaged)
        if dropped:
            print(f"dropped from {self.run_dir / metrics.FILE}: {' and '.join(dropped)}", flush=True)

    @property
    def seconds(self) -> float:
        """Seconds of work so far, those before a resume included."""
        return self.seconds_before + time.monotonic() - self.began

    @property
    def compile_seconds(self) -> float:
        """Seconds of them that went into tracing, lowering and compiling."""
        return self.compiled_before + self.clock.seconds

    def _at_end(self) -> bool:
        """Returns whether the iterations are done or the budget is spent; a run has one iteration at least."""
        spent = self.config.budget.spent({**self.totals, "seconds": self.seconds})
        return self.iteration >= self.config.iterations or (spent and self.iteration > 0)

    def _prepare_folder(self) -> None:
        self.run_dir.mkdir(parents=True, exist_ok=True)
        if self._lock is not None:
            self._lock.acquire()
        if self.start.checkpoint is None and has_checkpoint(self.run_dir):
            raise InputError(f"run_dir={self.run_dir} has got checkpoints from another process; choose a new folder")
        files.write_text(self.run_dir / files.CONFIG_FILE, OmegaConf.to_yaml(OmegaConf.create(self.start.plain)))
        path = self.run_dir / files.VERSIONS_FILE
        files.write_json(path, {**versions(), "choices": self.start.choices, "started_at_iteration": self.iteration})
        metrics.drop_after(self.run_dir, self.iteration)

    def policy(self) -> Policy:
        """Returns the policy that plays matches."""
        return chosen_policy(self.algorithm.policies(self.state))

    def iterate(self, stop: StopRequest) -> dict[str, Any] | None:
        """Runs one iteration; returns its record, evaluated where it is due, and says in `ended` if it was the last.

        Between calls it is left where a signal or budget.seconds ended the run some seconds ago: None, and the run is
        as it was before.

        Raises:
          FloatingPointError: the loss, or an array of the state, is no longer finite; nothing of it is kept.
        """
        calls = self.algorithm.in_calls(self.state)
        while True:
            try:
                next(calls)
            except StopIteration as end:
                state, info = end.value
                break
            if stop.is_overdue or self._is_late():
                calls.close()
                return None
        wrong = not_finite(state)
        if not math.isfinite(info.get("loss", 0.0)):
            wrong = f"the loss is {info['loss']}" + (f" and {wrong}" if wrong else "")
        if wrong is not None:
            raise faults.diverged(self.run_dir, self.iteration + 1, wrong)
        self.state, self.iteration = state, self.iteration + 1
        for name in metrics.COUNTERS:
            self.totals[name] += round(info.pop(name, 0))
        record = {"iteration": self.iteration, **self.totals, **info}
        self.ended = self._at_end()
        if self.ended or self.iteration % self.config.eval.every == 0:
            record |= self.evaluate(stop)
        record |= {"seconds": round(self.seconds, 3), "compile_seconds": round(self.compile_seconds, 3)}
        return record

    def _is_late(self) -> bool:
        """Returns whether budget.seconds was spent some seconds ago; in a run's first iteration without compiling."""
        limit = self.config.budget.seconds
        first = self.compile_seconds if self.iteration == 0 else 0.0
        return limit is not None and self.seconds - first > limit + PATIENCE_SECONDS

    def evaluate(self, stop: StopRequest) -> dict[str, float]:
        """Returns what is measured of the present policies, under eval/; nothing where a signal asks to leave."""
        began = time.perf_counter()
        try:
            measured = self._evaluate(stop)
        except _LeftError:
            measured = {}
        return measured | {"seconds_evaluate": time.perf_counter() - began}

    def _evaluate(self, stop: StopRequest) -> dict[str, float]:
        def look(played: int) -> None:
            if stop.is_overdue:
                raise _LeftError

        games, flat = self._whole(self.config.eval.games), {}
        deals = jax.random.fold_in(jax.random.key(self.config.seed), _WATCHED)
        for name, opponent in self.opponents.items():
            report = self._match(name, opponent, games, deals, progress=look)
            flat |= {f"eval/{name}/{k}": v.mean for k, v in report.items() if hasattr(v, "mean")}
        for name, values in self._exact().items():
            flat |= {f"eval/{quantity}/{name}": value for quantity, value in values.items()}
        return flat

    def _match(
        self,
        name: str,
        opponent: Policy | HostPlayer,
        games: int,
        deals: Any,
        *,
        hands: int = 0,
        progress: Callable[[int], None] = lambda played: None,
    ) -> dict[str, Any]:
        """Returns the report of a match; its first hands are kept for W&B, where a run is tracked.

        Matches of one size are one compiled program, whether hands are kept or not.
        """
        heard = self.hands.setdefault(name, []).append if self.config.tracking.mode != "disabled" else None
        policy = self.policy()
        return match(
            self.game, policy, opponent, games=games, seed=deals, progress=progress, on_hand=heard, hands=hands
        )

    def _whole(self, games: int) -> int:
        """Returns the rounds of whole deals, each played from every seat, nearest to a number of rounds from below."""
        players = self.game.num_players
        return max(games // players, 2) * players

    def _exact(self) -> dict[str, dict[str, float]]:
        """Returns NashConv and exploitability of every policy, in the game's unit; {} where they are out of reach."""
        if self.form is None or self._measured[0] == self.iteration:
            return self._measured[1]
        exact = {}
        if self.algorithm.tables is not None:
            tables = self.algorithm.tables(self.state)
        else:
            tables = {n: self.form.tabulate(policy) for n, policy in self.algorithm.policies(self.state).items()}
        for name, table in tables.items():
            value = self.form.values(table).nash_conv * self.game.reward_scale
            exact[name] = {"nash_conv": value, "exploitability": value / 2}
        self._measured = self.iteration, exact
        return exact

    def save(self) -> None:
        """Writes a checkpoint of the present state, unless it is there."""
        if self.saved == self.iteration:
            return
        meta = {
            "config": self.start.plain,
            "choices": self.start.choices,
            "game": self.game.identity,
            "counters": self.totals,
            "seconds": self.seconds,
            "compile_seconds": self.compile_seconds,
            "wandb_id": self.wandb_id,
            "group": self.start.group,
            "name": self.start.name,
        }
        self.writer.save(self.iteration, self.state, meta)
        self.saved = self.iteration

    def copy(self) -> Run:
        """Returns the run as it is now, whatever later iterations change."""
        kept = copy.copy(self)
        kept.totals = dict(self.totals)
        return kept

    def rescue(self) -> str:
        """Saves what is finished, where a signal does not wait for more; returns a line about it."""
        if self.iteration > 0:
            self.save()
        if self._lock is not None:
            self._lock.release()
        if self.iteration == 0:
            return f"none was finished before it; the same command with run_dir={self.run_dir} starts over"
        return f"iteration {self.iteration} is saved; go on with resume={self.run_dir}"

    def final_evaluation(self) -> dict[str, Any]:
        """Plays the final matches, on deals of their own, and writes them in the run directory.

        Returns:
          The reports by opponent.
        """
        games = self._whole(self.config.eval.final_games)
        deals = jax.random.fold_in(jax.random.key(self.config.seed), _FINAL)
        reports = {}
        for name, player in self.opponents.items():
            reports[name] = self._match(name, player, games, deals, hands=HANDS)
        report = {"iteration": self.iteration, "unit": self.game.unit, "num_players": self.game.num_players}
        report["deals"] = "of the final evaluation alone"
        if reports:
            first = next(iter(reports))
            report |= {"opponent": first, **reports[first], "by_opponent": reports}
        if self.form is not None:
            report["exact"] = self._exact()
        files.write_json(self.run_dir / files.EVALUATION_FILE, report)
        return reports

    def draw(self) -> list[Path]:
        """Writes pictures of the run in its directory and prints where; a drawing that fails loses nothing."""
        tree = self.form.tree if isinstance(self.form, TreeForm) else None
        policies = {} if tree is None else self.algorithm.policies(self.state)
        paths = draw_run(self.run_dir, self.start.name, tree, policies)
        for path in paths:
            print(path, flush=True)
        return paths


def train(start: Start, stop: StopRequest) -> Run:
    """Runs to the last iteration, the end of the budget or a signal that asks to leave; the state is saved.

    Returns:
      The run, with its objective where it came to its end.
    Raises:
      InputError: the checkpoint to go on from cannot be used, or the run directory is in use or cannot be written to.
      FloatingPointError: training diverged.
      StorageError: the disk refused while the run was under way.
    """
    with RunLock(start.run_dir) as lock, devices.over(start.parts.config.devices):
        if start.checkpoint is None:
            _announce(start, 0)
        else:
            _take_over(start, lock)
        try:
            run = Run(start, before_writing=stop.protect, lock=lock)
            if start.checkpoint is not None:
                _announce(start, run.iteration)
            with _explained(run):
                _train(run, stop)
        finally:
            stop.protect(False)  # of a sweep's next job nothing is to be saved yet
    print(f"{run.run_dir} · iteration {run.iteration} · {run.seconds:.0f} s", flush=True)
    if stop.received is not None and (run.run_dir / files.EVALUATION_FILE).exists():
        print(f"{files.EVALUATION_FILE} there is of an earlier iteration", flush=True)
    if start.checkpoint is not None or start.name == run.run_dir.name:  # a sweep ends with a table instead
        _suggest(run, finished=stop.received is None)
    return run


def _take_over(start: Start, lock: RunLock) -> None:
    """Takes the lock of a run that goes on; raises InputError where another process has changed the run meanwhile."""
    try:
        lock.acquire()
    except OSError as error:
        raise faults.cannot_begin(start.run_dir, error) from error
    read, now = start.checkpoint, find(start.checkpoint.path)
    if now.meta != read.meta or newest(start.run_dir) != start.newest:
        raise InputError(f"{start.run_dir} has been changed by another process just now; give the same command again")


@contextlib.contextmanager
def _explained(run: Run) -> Iterator[None]:
    """Turns what the system says of a failed write into a line on the run."""
    try:
        yield
    except OSError as error:
        raise faults.write_failed(run.run_dir, run.iteration, run.saved or 0, error) from error


def _train(run: Run, stop: StopRequest) -> None:
    """Iterates, and measures what has been learned."""
    start = run.start
    tracker = Tracker(
        run.config.tracking, run.run_dir, group=start.group, name=start.name, run_id=run.wandb_id, settings=start.plain
    )  # fmt: skip
    try:
        _iterate(run, stop, tracker)
        if stop.received is None:
            reports = run.final_evaluation()
            for opponent, report in reports.items():
                report_table(f"iteration {run.iteration} against {opponent}", report)
                tracker.log_evaluation(opponent, report)
                tracker.log_hands(run.game, opponent, run.hands.get(opponent, []))
            run.objective = objective(run._exact(), reports)
            tracker.log_pictures(run.draw())
    except Exception:
        tracker.close(failed=True)
        raise
    stop.protect(False)
    tracker.close()
    run.writer.close()


def _iterate(run: Run, stop: StopRequest, tracker: Tracker) -> None:
    """Runs the iterations that are left, or those before a signal, and saves the state."""
    before = {**run.totals, "iteration": run.iteration, "seconds": run.seconds, "compile_seconds": run.compile_seconds}
    progress = RunProgress(Pace(run.config.iterations, run.config.budget, before), run.iteration)
    try:
        while not run.ended and stop.received is None:
            with stop.call(run.copy().rescue):
                record = run.iterate(stop)
            if record is None:
                _left(run, stop)
                break
            metrics.append(run.run_dir, record)
            progress.show(record)
            tracker.log(record)
            if run.iteration % run.config.checkpoint.every == 0:
                run.save()
                tracker.log_policy(run.iteration, run.policy())
        run.save()
    finally:
        progress.close()
        stop.protect(False, f"left before the final evaluation; the run is in {run.run_dir}")


def _left(run: Run, stop: StopRequest) -> None:
    """Says that an iteration was left; at the end of the budget what came before it is evaluated as the last one is.

    Raises:
      InputError: the budget was spent within the first iteration, so that there is nothing to keep.
    """
    if stop.received is not None:
        print("the iteration under way is left", flush=True)
        return
    limit = f"budget.seconds={run.config.budget.seconds:g}"
    if run.iteration == 0:
        raise InputError(
            f"{limit} is spent within the first iteration, of which nothing is kept; give it more, or make iterations "
            "smaller, by algo.episodes_per_iteration for instance"
        )
    print(f"{limit} is spent: the iteration under way is left", flush=True)
    run.ended = True
    records = metrics.read(run.run_dir)
    if records and records[-1]["iteration"] == run.iteration and "seconds_evaluate" not in records[-1]:
        metrics.drop_after(run.run_dir, run.iteration - 1)
        metrics.append(run.run_dir, records[-1] | run.evaluate(stop))


def _suggest(run: Run, *, finished: bool) -> None:
    """Prints what can be done with a run next."""
    sent = run.config.tracking.mode != "disabled" and any(run.run_dir.glob("wandb/offline-run-*"))
    env = run.start.choices.get("env", run.game.name)
    for line in announce.next_steps(run.run_dir, env=env, opponent="random", finished=finished, wandb=sent):
        print(line, flush=True)


def _announce(start: Start, done: int) -> None:
    """Prints what the run is about to do."""
    parts = start.parts
    solver = type(getattr(parts.algorithm.iterate, "__self__", None))
    tabular = solver.__module__.startswith("dream.algorithms.tabular")
    for line in announce.plan(start.plain, parts.game, tabular=tabular, run_dir=start.run_dir, done=done):
        print(line, flush=True)
