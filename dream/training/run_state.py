"""A run under way: its state, its record and its checkpoints between two batches of iterations, from any point on."""

from __future__ import annotations

import copy
import math
import time
import uuid
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

import jax
from omegaconf import OmegaConf

from dream import algorithms
from dream.algorithms.types import Metrics, TrainState
from dream.compiled import devices
from dream.compiled.agreement import agreed
from dream.config.settings import flat
from dream.storage import files, reports
from dream.storage.checkpoint import Checkpoint, has_checkpoint
from dream.storage.checkpoint_arrays import check_arrays
from dream.storage.checkpoint_writer import CheckpointWriter
from dream.storage.finite import not_finite
from dream.storage.lock import RunLock
from dream.training import faults, hosts, metrics
from dream.training.batch_size import BatchSize
from dream.training.beginning import Start
from dream.training.measuring import Measurements
from dream.training.outside import check_iterated
from dream.training.signals import PATIENCE_SECONDS, StopRequest
from dream.training.versions import versions
from envs import InputError, Policy


class Run:
    """A run under way: everything the loop needs between two batches of iterations."""

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
        self.measurements = Measurements(start.parts)
        self.totals, self.seconds_before, self.compiled_before = dict.fromkeys(metrics.COUNTERS, 0), 0.0, 0.0
        self.iteration, self.wandb_id, self.saved, self.settled = 0, uuid.uuid4().hex[:12], None, False
        self.state = self.algorithm.init(jax.random.key(self.config.seed))
        name = self.config.algo["name"]
        check_arrays(self.state, f"algo={name}: the state that init returns")
        algorithms.check_policies(name, self.algorithm, self.state)
        if start.checkpoint is not None:
            self._restore(start.checkpoint, start.plain)
            self._share_budget()
        self.objective: float | None = None
        self.ended, self._batch = self._at_end(), BatchSize(self.algorithm.most)
        before_writing()
        self.writer: CheckpointWriter | None = None
        if not hosts.leads():
            return
        try:
            self._prepare_folder()
            self.writer = CheckpointWriter(self.run_dir, self.config.checkpoint.keep)
            if deleted := self.writer.drop_after(self.iteration):
                print(f"deleted from {self.run_dir}: the later checkpoints {', '.join(map(str, deleted))}", flush=True)
            self._drop_later()  # after the checkpoints: the run would go on from one of those
        except OSError as error:
            raise faults.cannot_begin(self.run_dir, error) from error

    def _restore(self, stored: Checkpoint, config: Mapping[str, Any]) -> None:
        """Takes over what a checkpoint holds, and says what there is beyond it in the run directory.

        Raises:
          InputError: it has no such arrays as the run's configuration asks for, or lacks what a run needs to go on.
        """
        meta = stored.meta
        missing = {"counters", "seconds", "compile_seconds", "wandb_id"} - meta.keys()
        if missing:
            raise InputError(f"{stored.path} cannot be resumed: its meta lacks {', '.join(sorted(missing))}")
        try:
            self.state = stored.restore(self.state)
        except InputError as error:
            now, then = (flat(one["algo"], "algo") for one in (config, meta["config"]))
            changed = [name for name in now if name in then and now[name] != then[name]]
            if not changed:
                raise
            raise InputError(
                f"{', '.join(changed)} cannot be changed by resume=, as it changes what a checkpoint holds; leave it "
                f"out, or begin a new run ({error})"
            ) from error
        self.totals |= {name: meta["counters"][name] for name in metrics.COUNTERS if name in meta["counters"]}
        self.seconds_before, self.compiled_before = meta["seconds"], meta["compile_seconds"]
        self.iteration = self.saved = meta["iteration"]
        self.wandb_id, self.settled = meta["wandb_id"], meta.get("settled", True)
        if dropped := metrics.droppable(self.run_dir, self.iteration):
            print(f"dropped from {self.run_dir / metrics.FILE}: {' and '.join(dropped)}", flush=True)

    @property
    def seconds(self) -> float:
        """Seconds of work so far, those before a resume included."""
        return self.seconds_before + time.monotonic() - self.began

    @property
    def compile_seconds(self) -> float:
        """Seconds of them that went into tracing, lowering and compiling."""
        return self.compiled_before + self.clock.seconds

    @property
    def spent(self) -> str:
        """The limit of the budget that is reached; "" where there is none."""
        return self.config.budget.spent({**self.totals, "seconds": self.seconds})

    def _share_budget(self) -> None:
        """Tells the learner how much of the run is over, in iterations or of its budget, whichever is more."""
        if self.algorithm.with_share is not None:
            share = max(self.config.budget.share(self.totals), self.iteration / self.config.iterations)
            self.state = self.algorithm.with_share(self.state, share)

    def _at_end(self) -> bool:
        """Returns whether the iterations are done or the budget is spent; a run has one iteration at least."""
        return agreed("end", self.iteration >= self.config.iterations or (bool(self.spent) and self.iteration > 0))

    def _prepare_folder(self) -> None:
        self.run_dir.mkdir(parents=True, exist_ok=True)
        if self._lock is not None:
            self._lock.acquire()
        if self.start.checkpoint is None and has_checkpoint(self.run_dir):
            raise InputError(f"run_dir={self.run_dir} has got checkpoints from another process; choose a new folder")
        files.write_text(self.run_dir / files.CONFIG_FILE, OmegaConf.to_yaml(OmegaConf.create(self.start.plain)))
        self._record_versions(self.run_dir / files.VERSIONS_FILE)

    def _drop_later(self) -> None:
        """Drops the records of later iterations and sets their reports aside."""
        metrics.drop_after(self.run_dir, self.iteration)
        if stale := reports.set_aside_after(self.run_dir, self.iteration):
            names = ", ".join(str(path.relative_to(self.run_dir)) for path in stale)
            print(f"set aside in {self.run_dir}, because they belong to later iterations: {names}", flush=True)

    def _record_versions(self, path: Path) -> None:
        """Writes by what command and code the run is made; where it goes on, next to those it was begun by."""
        made = {**versions(), "choices": self.start.choices, "started_at_iteration": self.iteration}
        try:
            begun = files.decoded(path.read_bytes()) if self.start.checkpoint is not None else None
        except (OSError, ValueError):
            begun = None
        if isinstance(begun, dict) and isinstance(begun.setdefault("resumed", []), list):
            begun["resumed"].append(made)
            made = begun
        files.write_json(path, made)

    def policy(self) -> Policy:
        """Returns the policy that plays matches."""
        return self.measurements.policy(self.state)

    def advance(self, stop: StopRequest) -> list[dict[str, Any]] | None:
        """Runs the next iterations; returns a record of each, the last evaluated where it is due.

        They are as many as the learner does in one go within a fraction of a second; nothing is due before the last of
        them. `ended` says if that was the run's last.

        Between calls they are left where a signal or budget.seconds ended the run some seconds ago: None, and the run
        is as it was before.

        Raises:
          FloatingPointError: the loss, or an array of the state, is no longer finite; nothing of it is kept.
        """
        batch = self._finished_batch(stop)
        if batch is None:
            return None
        state, infos, began = batch
        records = self._counted(infos)
        self.state, self.iteration, self.settled = state, records[-1]["iteration"], False
        self.totals = {name: records[-1][name] for name in metrics.COUNTERS}
        self._share_budget()
        took, compiled = self.seconds - began, round(self.compile_seconds, 3)
        for n, record in enumerate(records[:-1], start=1):
            record |= {"seconds": round(began + took * n / len(records), 3), "compile_seconds": compiled}
        self.ended = self._at_end()
        if self.ended:
            records[-1] |= self.settle(stop)
        if self.ended or self.iteration % self.config.eval.every == 0:
            records[-1] |= self.evaluate(stop)
        records[-1] |= {"seconds": round(self.seconds, 3), "compile_seconds": round(self.compile_seconds, 3)}
        return records

    def _finished_batch(self, stop: StopRequest) -> tuple[TrainState, list[Metrics], float] | None:
        """Returns the state after the next iterations, their metrics, and when they were begun, in seconds of the run.

        Iterations past the one that reaches a budget are not kept: those up to it are done again, to the same bits. So
        are half of those among which a number was no longer finite, until the first such iteration is found.
        """
        limit = self.config.budget.seconds
        left = math.inf if limit is None else limit - self.seconds
        count = agreed("iterations", self._batch.next(self._until_due(), left))
        while True:
            began = self.seconds
            batch = self._in_calls(count, stop)
            if batch is None:
                return None
            self._batch.took(count, self.seconds - began)
            wrong = _fault(*batch)
            if wrong is not None and count == 1:
                raise faults.diverged(self.run_dir, self.iteration + 1, wrong)
            if wrong is not None:
                kept = count // 2
                self._batch.limit(kept)
            else:
                kept = self._within_budget(batch[1])
            if kept == count:
                return *batch, began
            count = kept

    def _in_calls(self, count: int, stop: StopRequest) -> tuple[TrainState, list[Metrics]] | None:
        """Returns the state after so many iterations and their metrics; None where they were left."""
        calls = self.algorithm.in_calls(self.state, count)
        done = _driven(calls, lambda: stop.is_overdue or agreed("late", self._is_late()))
        if done is None:
            return None
        check_iterated(self.config.algo["name"], self.state, done[0], count)
        return done[0], [_plain(info) for info in done[1]]

    def _until_due(self) -> int:
        """Returns how many iterations there are up to the next that is evaluated, saved or the last."""
        every = (self.config.eval.every, self.config.checkpoint.every)
        return min(self.config.iterations - self.iteration, *(n - self.iteration % n for n in every))

    def _within_budget(self, infos: list[Metrics]) -> int:
        """Returns how many of a batch's iterations there are up to the one that reaches a budget."""
        limits = self.config.budget
        if limits.nodes is None and limits.episodes is None:
            return len(infos)
        spent = [bool(limits.spent({**record, "seconds": 0.0})) for record in self._counted(infos)]
        return spent.index(True) + 1 if any(spent) else len(infos)

    def _counted(self, infos: list[Metrics]) -> list[dict[str, Any]]:
        """Returns the records of a batch's iterations, with the run's totals as counters."""
        records, totals = [], self.totals
        for iteration, info in enumerate(infos, start=self.iteration + 1):
            totals = {name: total + round(info.get(name, 0)) for name, total in totals.items()}
            others = {name: value for name, value in info.items() if name not in totals}
            records.append({"iteration": iteration, **totals, **others})
        return records

    def _is_late(self) -> bool:
        """Returns whether budget.seconds was spent some seconds ago; in a run's first iteration without compiling."""
        limit = self.config.budget.seconds
        first = self.compile_seconds if self.iteration == 0 else 0.0
        return limit is not None and self.seconds - first > limit + PATIENCE_SECONDS

    def settle(self, stop: StopRequest) -> dict[str, int]:
        """Fits what the learner fits every so many iterations to the last one too, unless that was done before.

        Returns:
          The totals after it; {} where nothing was to be done, or a signal did not wait for it.
        Raises:
          FloatingPointError: an array of the state is no longer finite; nothing of it is kept.
        """
        if self.algorithm.settle is None or self.settled:
            return {}
        done = _driven(self.algorithm.settle(self.state), lambda: stop.is_overdue)
        if done is None:
            return {}
        self.settled = True
        if not done[1]:
            return {}
        if (wrong := _fault(done[0], [])) is not None:
            raise faults.diverged(self.run_dir, self.iteration, wrong)
        self.state, self.saved = done[0], None
        self.measurements.forget()
        settled = _plain(done[1])
        self.totals = {name: total + round(settled.get(name, 0)) for name, total in self.totals.items()}
        return self.totals

    def evaluate(self, stop: StopRequest) -> dict[str, float]:
        """Returns what is measured of the present policies, under eval/; nothing where a signal asks to leave."""
        return self.measurements.watched(self.state, self.iteration, stop)

    def save(self) -> None:
        """Writes a checkpoint of the present state, unless it is there; of several hosts the first one does."""
        if self.saved == self.iteration:
            return
        state = devices.on_host(self.state) if hosts.several() else self.state
        if self.writer is None:
            self.saved = self.iteration
            return
        meta = {
            "config": self.start.plain,
            "choices": self.start.choices,
            "game": self.game.identity,
            "counters": self.totals,
            "seconds": self.seconds,
            "compile_seconds": self.compile_seconds,
            "wandb_id": self.wandb_id,
            "settled": self.settled,
            "group": self.start.group,
            "name": self.start.name,
            "players": self.start.parts.trained,
            "fixed": dict(self.start.parts.algorithm.fixed),
        }
        self.writer.save(self.iteration, state, meta)
        self.saved = self.iteration

    def copy(self) -> Run:
        """Returns the run as it is now, whatever later iterations change."""
        return copy.copy(self)

    def rescue(self) -> str:
        """Saves what is finished, where a signal does not wait for more; returns a line about it."""
        here = devices.is_at_hand(self.state)
        if self.iteration > 0 and here:
            self.save()
        if self.iteration == 0:
            return f"none was finished before it; the same command with run_dir={self.run_dir} starts over"
        if not here and self.saved is None:
            return f"nothing is saved yet; the same command with run_dir={self.run_dir} starts over"
        return "; ".join([f"iteration {self.saved} is saved", *self.unsaved, f"go on with resume={self.run_dir}"])

    @property
    def unsaved(self) -> list[str]:
        """A line where the settings that the run goes on with are in no checkpoint yet, else nothing."""
        begun = self.start.checkpoint
        if begun is None or self.saved != begun.meta["iteration"] or self.start.plain == begun.meta["config"]:
            return []
        return ["the settings it went on with are in no checkpoint yet; give them again"]


def _driven(calls: Generator[None, None, Any], left: Callable[[], bool]) -> Any:
    """Returns what a generator of calls comes to; None where it was left between two of them."""
    while True:
        try:
            next(calls)
        except StopIteration as end:
            return end.value
        if left():
            calls.close()
            return None


_OF_THE_LOOP = {"iteration", "seconds", "compile_seconds", "seconds_evaluate"}
"""What a record has besides the learner's metrics and eval/."""


def _plain(info: Metrics) -> Metrics:
    """Returns metrics as Python's numbers, which learners from outside give as NumPy's or JAX's too.

    Raises:
      InputError: one is no number, or has a name of what the loop itself records.
    """
    plain = {}
    for name, value in info.items():
        if name in _OF_THE_LOOP or name.startswith("eval/"):
            raise InputError(f"a metric of the learner is named {name!r}, which the run records itself; rename it")
        plain[name] = value.item() if getattr(value, "size", 0) == 1 else value
        if not isinstance(plain[name], int | float):
            shape = getattr(value, "shape", None)
            got = repr(value) if shape is None else f"an array of shape {list(shape)}"
            raise InputError(f"a metric of the learner, {name!r}, is {got}; it must be one number")
    return plain


def _fault(state: TrainState, infos: list[Metrics]) -> str | None:
    """Returns what of a batch's result is no longer finite, in words; None where all is."""
    wrong = not_finite(state)
    for info in infos:
        if not math.isfinite(info.get("loss", 0.0)):
            return f"the loss is {info['loss']}" + (f" and {wrong}" if wrong else "")
    return wrong
