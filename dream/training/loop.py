"""The run loop: batches of iterations of any algorithm, with record, checkpoints and evaluations, up to its end."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

from dream.compiled import devices
from dream.compiled.agreement import agreed
from dream.evaluation.report import report_table
from dream.storage import files
from dream.storage.checkpoint import find, newest
from dream.storage.lock import RunLock
from dream.storage.reports import iteration_of
from dream.training import announce, cautions, faults, hosts, metrics
from dream.training.beginning import Start
from dream.training.objective import objective
from dream.training.pictures import draw_run
from dream.training.progress import Pace, RunProgress
from dream.training.run_state import Run
from dream.training.signals import StopRequest
from dream.training.tracking import Tracker
from envs import InputError


def train(start: Start, stop: StopRequest) -> Run:
    """Runs to the last iteration, the end of the budget or a signal that asks to leave; the state is saved.

    In single precision, also where JAX has double precision switched on.

    Returns:
      The run, with its objective where it came to its end.
    Raises:
      InputError: the checkpoint to go on from cannot be used, or the run directory is in use or cannot be written to.
      FloatingPointError: training diverged.
      StorageError: the disk refused while the run was under way.
    """
    stop = hosts.shared(stop)
    lock = RunLock(start.run_dir)
    precision, over = jax.enable_x64(False), devices.over(start.parts.config.devices)
    with hosts.together(), lock, stop.holding(lock.release), precision, over:
        hosts.where_lost(lambda: faults.host_lost(start.run_dir, lock))
        if start.checkpoint is None:
            _announce(start, 0)
        elif hosts.leads():
            _take_over(start, lock)
        try:
            run = Run(start, before_writing=stop.protect, lock=lock)
            if start.checkpoint is not None:
                _announce(start, run.iteration)
            with _explained(run):
                _train(run, stop)
        finally:
            stop.protect(False)  # of a sweep's next job nothing is to be saved yet
        finished = stop.received is None
        hosts.end()
    if not hosts.leads():
        return run
    print(f"{run.run_dir} · iteration {run.iteration} · {run.seconds:.0f} s", flush=True)
    evaluated = iteration_of(run.run_dir / files.EVALUATION_FILE)
    if not finished and evaluated not in (None, run.iteration):
        print(f"{files.EVALUATION_FILE} there is of an earlier iteration", flush=True)
    for line in run.unsaved if not finished else ():
        print(line, flush=True)
    if start.checkpoint is not None or start.name == run.run_dir.name:  # a sweep ends with a table instead
        _suggest(run, finished=finished)
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
    except BrokenPipeError:
        raise  # nobody reads the output any more
    except OSError as error:
        raise faults.write_failed(run.run_dir, run.iteration, run.saved or 0, error) from error


def _train(run: Run, stop: StopRequest) -> None:
    """Iterates, and measures what has been learned."""
    start = run.start
    tracking = run.config.tracking if hosts.leads() else dataclasses.replace(run.config.tracking, mode="disabled")
    tracker = Tracker(
        tracking, run.run_dir, group=start.group, name=start.name, run_id=run.wandb_id, settings=start.plain
    )  # fmt: skip
    try:
        _iterate(run, stop, tracker)
        if stop.received is None:
            _report(run, run.measurements.final(run.state, run.iteration, run.run_dir), tracker)
    except Exception:
        tracker.close(failed=True)
        raise
    stop.protect(False)
    tracker.close()
    if run.writer is not None:
        run.writer.close()


def _report(run: Run, reports: dict[str, Any], tracker: Tracker) -> None:
    """Prints the final matches, sends them to W&B, and draws the run."""
    policy = run.measurements.policy_name(run.state)
    for opponent, report in reports.items():
        report_table(f"iteration {run.iteration} ({policy}) against {opponent}", report)
    _send_matches(run, tracker)
    tracker.summarise(reports)
    points = [report["points_per_hand"].mean for report in reports.values()]
    run.objective = objective(run.measurements.exact(run.state, run.iteration), points)
    tracker.log_pictures(_draw(run))


def _send_matches(run: Run, tracker: Tracker) -> None:
    """Sends the tables of the newest evaluation and some of its hands to W&B."""
    for opponent, report in run.measurements.reports.items():
        tracker.log_evaluation(run.iteration, opponent, report)
        tracker.log_hands(run.iteration, run.game, opponent, run.measurements.hands.get(opponent, []))


def _save(run: Run, tracker: Tracker) -> None:
    """Saves the state and sends its policy to W&B, unless it is saved already."""
    if run.saved != run.iteration:
        run.save()
        tracker.log_policy(run.iteration, run.policy())


def _iterate(run: Run, stop: StopRequest, tracker: Tracker) -> None:
    """Runs the iterations that are left, or those before a signal, and saves the state."""
    before = {**run.totals, "iteration": run.iteration, "seconds": run.seconds, "compile_seconds": run.compile_seconds}
    progress = RunProgress(Pace(run.config.iterations, run.config.budget, before), run.iteration)
    try:
        if run.ended and stop.received is None:
            _say_limit(run)
            _finish(run, stop)
        while not run.ended and stop.received is None:
            if not advance(run, stop, tracker, progress):
                _left(run, stop)
                break
            if run.ended:
                _say_limit(run)
            if run.iteration % run.config.checkpoint.every == 0:
                _save(run, tracker)
        _save(run, tracker)
    except BrokenPipeError:
        _save(run, tracker)  # nobody reads the output any more: what was learned is kept, and the command ends
        raise
    finally:
        progress.close()
        stop.protect(False, f"left before the final evaluation; the run is in {run.run_dir}")


def advance(run: Run, stop: StopRequest, tracker: Tracker, progress: RunProgress) -> bool:
    """Runs the next batch of iterations and records them; returns whether they came to their end."""
    with stop.call(run.copy().rescue):
        records = run.advance(stop)
    for line in announce.uneven(run.start.plain, devices.uneven()):
        print(line, flush=True)
    if records is not None and hosts.leads():
        metrics.append(run.run_dir, *records)
        progress.show(records[-1])
        tracker.log(records[-1])
        if "seconds_evaluate" in records[-1]:
            _send_matches(run, tracker)
    return records is not None


def _say_limit(run: Run) -> None:
    """Says what ended a run before its iterations were done."""
    if run.iteration < run.config.iterations and hosts.leads():
        print(f"{run.spent} ends the run after {run.iteration:,} of {run.config.iterations:,} iterations", flush=True)
        _say_young(run)


def _say_young(run: Run) -> None:
    """Says how much of the initial parameters is left in averaged ones where a budget ends the run early."""
    if line := cautions.young_averages(run.start.plain["algo"], run.iteration):
        print(line, flush=True)


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
    _say_young(run)
    run.ended = True
    _finish(run, stop)


def _finish(run: Run, stop: StopRequest) -> None:
    """Settles and evaluates the last iteration where its record was made before the run was known to end with it."""
    records = metrics.read(run.run_dir) if hosts.leads() else []
    newest, settled = records[-1] if records else {}, run.settle(stop)
    due = bool(settled) or "seconds_evaluate" not in newest
    if agreed("evaluation", newest.get("iteration") == run.iteration and due):
        evaluated = run.evaluate(stop)
        if hosts.leads():
            metrics.drop_after(run.run_dir, run.iteration - 1)
            metrics.append(run.run_dir, newest | settled | evaluated)


def _draw(run: Run) -> list[Path]:
    """Writes pictures of the run in its directory and prints where; a drawing that fails loses nothing."""
    tree = run.measurements.tree
    policies = {} if tree is None else run.algorithm.policies(run.state)
    paths = draw_run(run.run_dir, run.start.name, run.game.unit, tree, policies, keeps=hosts.leads())
    for path in paths:
        print(path, flush=True)
    return paths


def _suggest(run: Run, *, finished: bool) -> None:
    """Prints what can be done with a run next."""
    sent = run.config.tracking.mode != "disabled" and any(run.run_dir.glob("wandb/offline-run-*"))
    rules = run.start.plain["env"].get("rules", {})
    for line in announce.next_steps(run.run_dir, run.game, rules, finished=finished, wandb=sent):
        print(line, flush=True)


def _announce(start: Start, done: int) -> None:
    """Prints what the run is about to do."""
    parts = start.parts
    solver = type(getattr(parts.algorithm.iterate, "__self__", None)).__module__
    own = solver.startswith("dream.")
    tabular = solver.startswith("dream.algorithms.tabular") if own else None
    for line in announce.plan(start.plain, parts.game, tabular=tabular, run_dir=start.run_dir, done=done):
        print(line, flush=True)
