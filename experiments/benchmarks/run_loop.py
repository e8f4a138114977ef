"""The run loop's cost: CFR iterations/s of `python -m dream.run` and of its compiled loop alone, in the same rounds.

Nothing is evaluated or saved meanwhile. `empty` is a learner that does nothing, one iteration at a time, with twenty
arrays on the device as its state: all of its time is the run loop's.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from common import Parser, Work, interleaved, ratio, run, spread
from solvers import cfr_calls

import envs
from dream.algorithms.tabular.iterations import MOST
from dream.algorithms.types import Algorithm
from dream.config.compose import compose_config
from dream.game_tree.tree import build_tree
from dream.training import loop
from dream.training.beginning import Start
from dream.training.progress import Pace, RunProgress
from dream.training.run_state import Run
from dream.training.signals import StopRequest
from dream.training.start import prepare_run
from dream.training.tracking import Tracker

_SECONDS = 1.0
"""A measurement lasts at least this long."""
_NEVER = 10**9
_BATCHES_TO_GROW = 12
"""After which batches of iterations have their full size: they grow fourfold from one to the next."""


def main() -> None:
    """Reads the arguments and measures."""
    parser = Parser(__doc__)
    parser.add_argument("--games", nargs="+", default=["leduc_poker", "liars_dice"], metavar="GAME")
    run(parser, measure)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Times every game in turn, then the learner that does nothing; what the runs print is left out."""
    with contextlib.ExitStack() as held:
        folder = held.enter_context(tempfile.TemporaryDirectory())
        held.enter_context(contextlib.redirect_stdout(held.enter_context(Path(os.devnull).open("w"))))
        report = {name: _game(name, Path(folder) / name, arguments.repeats) for name in arguments.games}
        return report | {"empty": _empty(Path(folder) / "empty", arguments.repeats)}


def _game(name: str, run_dir: Path, repeats: int) -> dict[str, float]:
    alone = cfr_calls(build_tree(envs.make(name)), np.int64(MOST))
    timings = interleaved({"run": _loop(_start(run_dir, f"env={name}")), "alone": alone}, repeats, _SECONDS)
    ours, alone = (timings[part].rates("iterations") for part in ("run", "alone"))
    cost = [1e6 / one - 1e6 / other for one, other in zip(ours, alone, strict=True)]
    report = spread("iterations_per_s", ours) | spread("alone_iterations_per_s", alone) | ratio(ours, alone)
    return report | spread("loop_us_per_iteration", cost)


def _empty(run_dir: Path, repeats: int) -> dict[str, float]:
    """Returns what the learner that does nothing takes: time, and a processor's, to which others add little."""
    start = _start(run_dir, "env=kuhn_poker")
    inner = _loop(dataclasses.replace(start, parts=dataclasses.replace(start.parts, algorithm=_nothing())))

    def work(n: int) -> tuple[int, float]:
        began = time.process_time()
        return inner.run(n), time.process_time() - began

    counted = Work(work, lambda done: {"iterations": done[0], "processor_s": done[1]})
    timing = interleaved({"": counted}, repeats, _SECONDS)[""]
    used = [1e6 * count["processor_s"] / count["iterations"] for count in timing.counts]
    taken = spread("us_per_iteration", [1e6 / x for x in timing.rates("iterations")])
    return taken | spread("processor_us_per_iteration", used)


def _nothing() -> Algorithm:
    state = {str(n): jnp.ones((100, 10)) for n in range(20)}
    metrics = {"nodes": 10, "loss": 0.5, "entropy": 1.0, "value_loss": 2.0}
    return Algorithm(lambda key: state, lambda state: (state, dict(metrics)), lambda state: {})


def _start(run_dir: Path, *overrides: str) -> Start:
    never = [f"{name}={_NEVER}" for name in ("iterations", "eval.every", "checkpoint.every")]
    settings = ["algo=cfr", "tracking.mode=disabled", "eval.opponents=[]", "eval.exact=false", *never]
    return prepare_run(compose_config("config", [*settings, f"run_dir={run_dir}", *overrides]))


def _loop(start: Start) -> Work:
    """Returns a batch of iterations with all that the run loop does about them."""
    stop, under_way = StopRequest(listen=False), Run(start)
    before = {**under_way.totals, "iteration": 0, "seconds": 0.0, "compile_seconds": 0.0}
    progress = RunProgress(Pace(_NEVER, under_way.config.budget, before), 0)
    tracker = Tracker(under_way.config.tracking, start.run_dir, group="", name="", run_id="", settings={})
    done = [0]

    def work(n: int) -> int:
        loop.advance(under_way, stop, tracker, progress)
        done[0], before = under_way.iteration, done[0]
        return under_way.iteration - before

    for n in range(_BATCHES_TO_GROW):
        work(n)
    return Work(work, lambda iterations: {"iterations": iterations})


if __name__ == "__main__":
    main()
