"""The parts of accelerator.py: each measures one thing within its time and says what came of it by name."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import gzip
import json
import shutil
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from common import Work, spread, timed

import envs
from envs.random_play import play_random

_GIB = 2**30
_FOR_EVALUATION = 0.3
"""Of a learner's time."""


@dataclasses.dataclass
class Sitting:
    """What a part is given.

    Attributes:
      seconds: it should take.
      toy: whether sizes are small.
      repeats: measurements of each thing, where there is time.
      folder: for files next to the result.
      found: what it found so far, kept should its time run out.
    """

    seconds: float
    toy: bool
    repeats: int
    folder: Path
    found: dict[str, Any] = dataclasses.field(default_factory=dict)
    began: float = dataclasses.field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Seconds until the part should be done."""
        return self.seconds - (time.monotonic() - self.began)


def memory() -> dict[str, float]:
    """Returns the most memory of the device that was in use in this process so far, where the device says so."""
    peaks = [(device.memory_stats() or {}).get("peak_bytes_in_use") for device in jax.local_devices()]
    return {"peak_gib_so_far": max(peaks) / _GIB} if None not in peaks else {}


def roofline(sitting: Sitting) -> dict[str, Any]:
    """Measures what everything else is compared with: products, copies, and the time of a call and of a loop's turn."""
    side, product, add = 256 if sitting.toy else 8192, jax.jit(jnp.matmul), jax.jit(lambda x: x + 1)
    for name, kind in (("bfloat16", jnp.bfloat16), ("float32", jnp.float32)):
        x = jax.random.normal(jax.random.key(0), (side, side)).astype(kind)
        products = timed(Work(lambda n, x=x: product(x, x)), sitting.repeats)
        sitting.found |= spread(f"{name}_tflop_per_s", [2e-12 * side**3 / s for s in products.seconds])
    words = jnp.zeros(1 << (16 if sitting.toy else 29), jnp.float32)
    copy = timed(Work(lambda n: add(words)), sitting.repeats)
    sitting.found |= spread("copy_gb_per_s", [2e-9 * words.nbytes / s for s in copy.seconds])
    one = jnp.float32(0)
    call = timed(Work(lambda n: add(one)), sitting.repeats, 0.05)
    sitting.found |= spread("call_microseconds", [1e6 * s for s in call.seconds])
    turns = 1000

    @jax.jit
    def loop(x: Any) -> Any:
        return jax.lax.while_loop(lambda at: at[0] < turns, lambda at: (at[0] + 1, jnp.sin(at[1])), (0, x))

    looped = timed(Work(lambda n: loop(one)), sitting.repeats)
    return sitting.found | spread("loop_turn_microseconds", [1e6 * s / turns for s in looped.seconds])


def games(sitting: Sitting) -> dict[str, Any]:
    """Measures uniform random play with the full legal mask of every game, smaller batches first."""
    names = ["kuhn_poker", "leduc_poker"] if sitting.toy else envs.names()
    for n, name in enumerate(names):
        until = sitting.left * (len(names) - n - 1) / (len(names) - n)
        sitting.found[name] = {}
        for batch in (64, 128) if sitting.toy else (4096, 65536):
            if sitting.left <= until:
                sitting.found[name][str(batch)] = {"skipped": "time is out"}
                continue
            sitting.found[name][str(batch)] = _random_play(envs.make(name), batch, sitting.repeats)
    return sitting.found


def _random_play(game: envs.Game, batch: int, repeats: int) -> dict[str, Any]:
    work = Work(
        lambda n: play_random(game, jax.random.key(n), batch),
        lambda played: {"games": batch, "decisions": played.decisions},
    )
    timing = timed(work, repeats)
    rates = {f"{what}_per_s": timing.rates(what) for what in ("decisions", "games")}
    figures = {key: value for name, values in rates.items() for key, value in spread(name, values).items()}
    return figures | {"compile_seconds": timing.compile_seconds}


def simple_bot(sitting: Sitting) -> dict[str, Any]:
    """Measures OpenSpiel's gin rummy by its simple bot against itself, by lanes."""
    import openspiel_gin

    game, sizes = envs.make("gin_rummy_openspiel"), (8,) if sitting.toy else (16384, 65536)
    for lanes in sizes:
        if sitting.found and sitting.left < sitting.seconds / 2:
            sitting.found[str(lanes)] = {"skipped": "time is out"}
            continue
        options = argparse.Namespace(batch=lanes, steps=8 if sitting.toy else 400)
        timing = timed(openspiel_gin._ours(game, openspiel_gin._pick_simple_bot, options), sitting.repeats)
        figures = spread("games_per_s", timing.rates("games")) | spread("decisions_per_s", timing.rates("decisions"))
        sitting.found[str(lanes)] = figures | {"compile_seconds": timing.compile_seconds}
        most = max(figures["games_per_s"], sitting.found.get("most_games_per_s", 0.0))
        sitting.found["most_games_per_s"] = most
    return sitting.found


def solvers(sitting: Sitting) -> dict[str, Any]:
    """Measures CFR and NashConv on whole trees."""
    import solvers as exact

    from dream.game_tree.tree import build_tree

    for name in ("kuhn_poker",) if sitting.toy else ("leduc_poker", "liars_dice"):
        tree = build_tree(envs.make(name))
        cfr, nash_conv = timed(exact.cfr_calls(tree), sitting.repeats), timed(exact._nash_conv(tree), sitting.repeats)
        sitting.found[name] = {
            **spread("iterations_per_s", cfr.rates("iterations")),
            **spread("nash_conv_ms", [1e3 * seconds for seconds in nash_conv.seconds]),
            "compile_seconds": cfr.compile_seconds + nash_conv.compile_seconds,
        }
    return sitting.found


def document(sitting: Sitting) -> dict[str, Any]:
    """Measures iterations of the DREAM document's run; 800 of them, or the target of minutes, follow from these."""
    toy = ["preset=tiny", "env=kuhn_poker"]
    _learner(sitting, toy if sitting.toy else ["preset=h200", "algo.uniform_iterations=0"])
    return sitting.found | {"minutes_of_800_iterations": 800 * sitting.found["seconds_iteration"] / 60}


def openspiel_ppo(sitting: Sitting) -> dict[str, Any]:
    """Measures iterations of PPO against OpenSpiel's simple bot."""
    toy = ["preset=tiny", "env=kuhn_poker", "algo=ppo"]
    _learner(sitting, toy if sitting.toy else ["experiment=openspiel_ppo"])
    return sitting.found


def sixteen_actions_ppo(sitting: Sitting) -> dict[str, Any]:
    """Measures iterations of the 16-action document's PPO, whole curriculum of opponents."""
    toy = ["preset=tiny", "env=kuhn_poker", "algo=ppo", "algo.opponents=[random]", "algo.rollout_length=2"]
    _learner(sitting, toy if sitting.toy else ["experiment=r42"])
    return sitting.found


def _learner(sitting: Sitting, overrides: list[str]) -> None:
    """Times iterations by part, two at least, then evaluations and the parts' products; counts waits of the host."""
    from common import parameters
    from products import over_products

    from dream.config.compose import compose_config
    from dream.training.metrics import CompileClock
    from dream.training.start import build_run

    found = sitting.found
    built, clock = build_run(compose_config("config", overrides).node), CompileClock()
    state, rows = built.algorithm.init(jax.random.key(0)), []
    found |= {"overrides": " ".join(overrides), "parameters": parameters(built.config.network, built.game)}
    for n in range(1 + sitting.repeats):
        if n > 1 and sitting.left < found["seconds_iteration"] + _FOR_EVALUATION * sitting.seconds:
            break
        began = time.monotonic()
        with _counted_waits() as waits:
            state, info = built.algorithm.iterate(state)
        info["seconds_iteration"] = time.monotonic() - began
        found |= {} if n else {"seconds_first_iteration": info["seconds_iteration"], "compile_seconds": clock.seconds}
        rows = [*rows, info] if n else []
        later = rows or [info]
        for name in ("seconds_generate", "seconds_fit", "seconds_iteration"):
            found |= spread(name, [row[name] for row in later])
        found |= {name: later[-1][name] for name in ("episodes", "decisions", "gradient_steps", "network_rows")}
        found |= {"iterations_timed": len(rows), "host": dict(waits)}
        found["decisions_per_s"] = found["decisions"] / found["seconds_generate"]
        found["gradient_steps_per_s"] = found["gradient_steps"] / found["seconds_fit"]
    _evaluate(built, state, found)
    found["jax_compile_seconds"] = clock.seconds
    found |= over_products(built.algorithm, state, rows) if rows else {}


def _evaluate(built: Any, state: Any, found: dict[str, Any]) -> None:
    """Times a run's evaluation, the first with its compilation."""
    from dream.evaluation import match
    from dream.storage.policies import chosen_policy

    player, opponent = chosen_policy(built.algorithm.policies(state)), next(iter(built.opponents.values()))
    for name in ("seconds_first_evaluation", "seconds_evaluation"):
        began = time.monotonic()
        match(built.game, player, opponent, games=built.config.eval.games, seed=1)
        found[name] = time.monotonic() - began


@contextlib.contextmanager
def _counted_waits() -> Iterator[Counter]:
    """Counts how often the host waits for arrays or reads them, and the calls that bounded loops are cut into."""
    from dream.compiled.bounded import BoundedCalls

    counts: Counter = Counter()
    kept = jax.block_until_ready, jax.device_get, BoundedCalls._loop

    def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            counts[name] += 1
            return function(*arguments)

        return call

    def loop(self: BoundedCalls, *arguments: Any) -> Any:
        calls = kept[2](self, *arguments)
        while True:
            try:
                next(calls)
            except StopIteration as end:
                return end.value
            counts["calls_of_loops"] += 1
            yield

    jax.block_until_ready, jax.device_get = counting("waits", kept[0]), counting("reads", kept[1])
    BoundedCalls._loop = loop
    try:
        yield counts
    finally:
        jax.block_until_ready, jax.device_get, BoundedCalls._loop = kept


def profile(sitting: Sitting) -> dict[str, Any]:
    """Traces one iteration of the document's run after a first one, and adds up the time of each operation."""
    from dream.config.compose import compose_config
    from dream.training.start import build_run

    overrides = ["preset=tiny", "env=kuhn_poker"] if sitting.toy else ["preset=h200", "algo.uniform_iterations=0"]
    algorithm = build_run(compose_config("config", overrides).node).algorithm
    state, _ = algorithm.iterate(algorithm.init(jax.random.key(0)))
    folder = sitting.folder / "accelerator_trace"
    shutil.rmtree(folder, ignore_errors=True)
    with jax.profiler.trace(str(folder)):
        algorithm.iterate(state)
    traces = sorted(folder.rglob("*.trace.json.gz"))
    if not traces:
        raise FileNotFoundError("the profiler has left no trace")
    return {"overrides": " ".join(overrides), **_by_operation(json.loads(gzip.decompress(traces[-1].read_bytes())))}


def _is_chosen(event: dict[str, Any], devices: set[int], streams: set[tuple[int, int]]) -> bool:
    """Returns whether an event counts: of a stream, else of a device, else of any thread, as far as there are such."""
    if streams:
        return (event["pid"], event["tid"]) in streams
    return not devices or event["pid"] in devices


def _by_operation(trace: dict[str, Any], most: int = 25) -> dict[str, Any]:
    """Returns milliseconds of the operations that took most, and how long devices were busy, from a Chrome trace."""
    events = trace["traceEvents"]
    processes = {e["pid"]: e["args"]["name"] for e in events if e.get("name") == "process_name"}
    devices = {pid for pid, name in processes.items() if "GPU" in name or "TPU" in name}
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e.get("name") == "thread_name"}
    # A GPU's kernels are shown by stream, and once more by operation and module.
    streams = {place for place, name in threads.items() if place[0] in devices and name.startswith("Stream")}
    chosen = [e for e in events if e.get("ph") == "X" and _is_chosen(e, devices, streams)]
    total, times = Counter(), Counter()
    for event in chosen:
        total[event["name"]] += event["dur"] / 1e3
        times[event["name"]] += 1
    return {
        "of": "devices" if devices else "the host's threads, as there is no accelerator",
        "span_ms": (max(e["ts"] + e["dur"] for e in chosen) - min(e["ts"] for e in chosen)) / 1e3 if chosen else 0.0,
        "sum_ms": sum(total.values()),
        "events": len(chosen),
        "median_event_us": statistics.median(e["dur"] for e in chosen) if chosen else 0.0,
        "operations": {name: {"ms": ms, "times": times[name]} for name, ms in total.most_common(most)},
    }
