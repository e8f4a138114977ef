"""A run that is killed over and over: every checkpoint is that of a run left alone, bit for bit."""

from __future__ import annotations

import pathlib
import signal
import time
from collections.abc import Iterator

import jax
import numpy as np
from command_support import TINY, environment, finish, start, wait_for

import envs
from dream import algorithms
from dream.storage.checkpoint import FOLDER, Checkpoint, find
from dream.storage.checkpoint_arrays import checksum
from trials.hold import Outcome

_ENDLESS = (
    *TINY, "env=kuhn_poker", "iterations=1000000", "checkpoint.every=5", "eval.every=1000000", "eval.opponents=[]",
    "eval.exact=false",
)  # fmt: skip
_SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGINT)
_PAUSE = 1.5
"""Seconds within which a run is killed, after it has gone on."""


def _saved(run: pathlib.Path) -> int:
    kept = [int(path.name) for path in (run / FOLDER).glob("*") if path.name.isdigit()]
    return max(kept, default=0)


def run(count: int, seed: int, folder: pathlib.Path) -> Iterator[Outcome]:
    """Yields the outcome of `count` kills: what was saved before is there, it goes on, and equals a run left alone."""
    rng, run_dir = np.random.default_rng(seed), folder / "killed"
    reached: list[tuple[str, Checkpoint | None, str]] = []
    before = 0
    for n in range(count):
        number = _SIGNALS[n % len(_SIGNALS)]
        how = (f"resume={run_dir}",) if n else (*_ENDLESS, f"run_dir={run_dir}")
        process = start("dream.run", *how, cwd=folder)
        name, why, kept = f"kill {n + 1}, {number.name}", "", None
        try:
            wait_for(lambda before=before: _saved(run_dir) > before, process)
            time.sleep(float(rng.uniform(0, _PAUSE)))
            process.send_signal(number)
            said = finish(process).stderr
            kept = find(run_dir)
            if "Traceback" in said or (number != signal.SIGKILL and process.returncode not in (0, 128 + number)):
                why = f"ends with {process.returncode}: {said[-200:]}"
            elif kept.meta["iteration"] <= before:
                why = f"is at iteration {kept.meta['iteration']}, after {before}"
            before = max(before, kept.meta["iteration"])
        except (AssertionError, ValueError) as error:
            why = f"{type(error).__name__}: {str(error)[-200:]}"
        finally:
            process.kill()
        reached.append((name, kept, why))
    alone = _alone([kept.meta["iteration"] for _, kept, _ in reached if kept], reached[0][1])
    for name, kept, why in reached:
        differs = kept is not None and alone[kept.meta["iteration"]] != kept.meta["checksum"]
        yield Outcome(name, False, why or ("its state is not that of a run left alone" if differs else ""))


def _alone(iterations: list[int], kept: Checkpoint | None) -> dict[int, int]:
    """Returns the checksum of a run left alone at some iterations, compiled as the commands' programs are."""
    if kept is None:
        return {}
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", environment()["JAX_DISABLE_MOST_OPTIMIZATIONS"] == "1")
    try:
        return _followed(iterations, kept)
    finally:
        jax.config.update("jax_disable_most_optimizations", before)


def _followed(iterations: list[int], kept: Checkpoint) -> dict[int, int]:
    config = kept.meta["config"]
    game = envs.make(config["env"]["name"], **config["env"].get("rules", {}))
    learner = algorithms.make(config["algo"], config["network"], game)
    state, found = learner.init(jax.random.key(config["seed"])), {}
    for iteration in range(1, max(iterations) + 1):
        state, _ = learner.iterate(state)
        if iteration in iterations:
            found[iteration] = checksum(jax.tree.map(_plain, state))
    return found


def _plain(x: object) -> object:
    return jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x
