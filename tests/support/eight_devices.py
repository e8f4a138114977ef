"""Run in a process of its own, with eight simulated devices: what several devices give, next to what one gives.

Prints one JSON object; its argument is a folder to train in.
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

import dream
import envs
from dream.buffers import reservoir
from dream.commands import ladder_play
from dream.commands.ladder import play_ladder, prepare_ladder
from dream.compiled import devices
from dream.config.compose import compose_config
from dream.evaluation import matches
from dream.networks.fit import fit
from dream.storage.checkpoint import FOLDER, Checkpoint, find
from dream.storage.checkpoint_arrays import checksum
from dream.storage.checkpoint_meta import META_FILE
from dream.storage.checkpoint_writer import CheckpointWriter
from dream.training.start import build_run

TINY = ("preset=tiny", "tracking.mode=disabled", "env=kuhn_poker")
FIT = "{steps: 1, batch_size: 16, capacity: 64}"
ONE_STEP = ("algo.memory.kind=reservoir", "algo.fit.steps=1", "algo.fit.learning_rate=1e-12")
DUELING = ("algo=dueling_dream", "algo.num_envs=8", "algo.epochs=1")
LEARNERS = {
    "ppo": (
        "algo=ppo", "algo.opponents=[random,past_self]", "algo.rollout_length=4", "algo.num_envs=16",
        "algo.batch_size=64", "algo.pool_size=2", "algo.pool_every=1",
    ),
    "mmd": ("algo=mmd", "algo.magnet=moving_average", "algo.episodes_per_iteration=16", "algo.epochs=1"),
    "rnad": ("algo=rnad", "algo.episodes_per_iteration=16", "algo.batch_games=16"),
    "nfsp": ("algo=nfsp", "algo.episodes_per_iteration=16", f"algo.best_response={FIT}", f"algo.average={FIT}"),
    "dueling_dream": DUELING,
    "dueling_dream_accumulating": (
        *DUELING, "algo.accumulate=mirror_descent", "algo.initial_scale=1", "algo.mirror.eta={start: 20, end: 20}",
        f"algo.average={FIT}",
    ),
    "dueling_dream_critic": (
        *DUELING, "algo.advantage=expected_sarsa", f"algo.critic={FIT}", "algo.critic.learning_rate=1e-12",
        "algo.discount=1", "algo.shaping.scale={start: 0, end: 0}",
    ),
    "behaviour_cloning": ("algo=behaviour_cloning", "algo.episodes_per_iteration=16", "algo.batch_size=64"),
    "os_sd_cfr": ("algo=os_sd_cfr", *ONE_STEP),
    "dream": ("algo=dream", *ONE_STEP, "algo.values.steps=1"),
    "escher": ("algo=escher", *ONE_STEP, "algo.values.steps=1"),
    "vr_dcfr_plus": ("algo=vr_dcfr_plus", *ONE_STEP, "algo.values.steps=1"),
    "deep_cfr": ("algo=deep_cfr", *ONE_STEP),
    "sd_cfr": ("algo=sd_cfr", *ONE_STEP),
}  # fmt: skip
"""Overrides by name: every way of playing, and every buffer; fits of one step, so that losses can be compared.

Where a fit's targets come from another one of the iteration, a critic's or the other player's, that one's step is too
small to change them: Adam's first is the learning rate with the sign of the gradient, which the last bit may decide.
"""

WAYS = ((8, 8), (8, 1), (8, 2), (1, 8), (2, 8))
"""Of a checkpoint, from so many devices to so many; what two write they have read from eight."""


def learner(folder: Path, overrides: tuple[str, ...]) -> dict[str, Any]:
    """Returns what a learner does on one device and on eight, alone and taking over a checkpoint of the other.

    Args:
      folder: for the checkpoints.
      overrides: of the configuration.
    """
    algorithm = build_run(compose_config("config", [*TINY, *overrides]).node).algorithm
    found: dict[str, Any] = {}
    initial: dict[int, Any] = {}
    for number in (1, 2, 8):
        with devices.over(number):
            initial[number] = algorithm.init(jax.random.key(1))
            if number != 2:
                state, metrics = algorithm.iterate(initial[number])
                found[str(number)] = {name: x for name, x in metrics.items() if not name.startswith("seconds")}
                _write(folder / str(number), state)
    arrays = [x for x in jax.tree.leaves(state) if isinstance(x, jax.Array)]
    found["split"] = sum(not x.sharding.is_fully_replicated for x in arrays)
    with devices.over(8):
        found["going on"] = [_sum(algorithm.iterate(state)[0])]
    for written, read in WAYS:
        with devices.over(read):
            stored = _stored(folder / str(written))
            taken = stored.restore(initial[read])
            held = {len(x.sharding.device_set) for x in jax.tree.leaves(taken) if isinstance(x, jax.Array)}
            found[f"{written} to {read}"] = {"devices": sorted(held), "same": _sum(taken) == stored.meta["checksum"]}
            if (written, read) == (8, 2):
                _write(folder / "2", taken)
            if (written, read) in ((8, 8), (2, 8)):
                found["going on"].append(_sum(algorithm.iterate(taken)[0]))
            if (written, read) == (8, 1):
                found["on one"] = algorithm.iterate(taken)[1]["episodes"]
            if (written, read) == (1, 8):
                found["on eight"] = algorithm.iterate(taken)[1]["episodes"]
    return found


def _write(folder: Path, state: Any) -> None:
    writer = CheckpointWriter(folder, 1)
    writer.save(1, state, {"config": {}})
    writer.close()


def _sum(state: Any) -> int:
    """Returns the checksum of a state, its keys as words."""
    is_key = lambda x: jax.dtypes.issubdtype(getattr(x, "dtype", np.float32), jax.dtypes.prng_key)  # noqa: E731
    return checksum(jax.tree.map(lambda x: jax.random.key_data(x) if is_key(x) else x, state))


def _stored(folder: Path) -> Checkpoint:
    """Returns the checkpoint of a learner that has no run around it."""
    path = folder / FOLDER / "1"
    return Checkpoint(path, json.loads((path / META_FILE).read_text()))


def solvers() -> dict[str, list[int]]:
    """Returns the checksums of what solvers of a tree know after one iteration on eight devices, on two and on one."""
    found: dict[str, list[int]] = {}
    for name in ("cfr", "external_mccfr"):
        algorithm = build_run(compose_config("config", [*TINY, f"algo={name}"]).node).algorithm
        for number in (8, 2, 1):
            with devices.over(number):
                state, _ = algorithm.iterate(algorithm.init(jax.random.key(1)))
                found.setdefault(name, []).append(_sum(state))
    return found


def gradients() -> dict[str, list]:
    """Returns one gradient step of a linear fit on one device and on eight, and what bounds its rounding."""
    rows, inputs = 512, 24
    x = jax.random.normal(jax.random.key(0), (rows, inputs))
    y = jax.random.normal(jax.random.key(1), (rows,))
    w = jax.random.normal(jax.random.key(2), (inputs,))

    def loss(params: Array, batch: tuple[Array, Array]) -> tuple[Array, dict[str, Array]]:
        return jnp.mean((batch[0] @ params - batch[1]) ** 2), {}

    @jax.jit
    def step(params: Array) -> Array:
        optimizer = optax.identity()
        batch = devices.split((x, y))
        return fit(loss, optimizer, params, optimizer.init(params), lambda n: batch, learning_rate=1.0, steps=1)[0]

    found = {}
    for number in (1, 8):
        with devices.over(number):
            found[str(number)] = np.asarray(step(w), np.float64).tolist()
    ax, aw, ay = (np.abs(np.asarray(z, np.float64)) for z in (x, w, y))
    return found | {
        "magnitude": (2 * ((ax @ aw + ay)[:, None] * ax).mean(axis=0) + aw).tolist(),
        "terms": rows + inputs,
    }


def buffers() -> dict[str, Any]:
    """Returns what a reservoir of eight devices holds and samples, next to one device's, and its part on each."""
    found: dict[str, Any] = {}
    rows = {"a": jnp.arange(40, dtype=jnp.int16), "b": jnp.arange(120.0).reshape(40, 3)}

    @jax.jit
    def filled(buffer: Any, key: Array) -> tuple[Any, Any]:
        for n in range(3):
            buffer = reservoir.add(buffer, rows, rows["a"] % 3 > 0, jax.random.fold_in(key, n), kind="reservoir")
        return buffer, reservoir.sample(buffer, key, 16)

    for number in (1, 8):
        with devices.over(number):
            shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), rows)
            buffer, sampled = filled(reservoir.empty(shapes, 32), jax.random.key(5))
            found[str(number)] = jax.tree.map(lambda x: np.asarray(x).tolist(), (buffer._asdict(), sampled))
    found["part"] = list(buffer.rows["b"].addressable_shards[0].data.shape)
    return found


def a_match() -> dict[str, Any]:
    """Returns a match's report on one device and on eight."""
    game, found = envs.make("leduc_poker"), {}
    player = envs.make_bot("random", game)
    for number in (1, 8):
        with devices.over(number):
            report = matches.match(game, player, player, games=64, seed=3)
            found[str(number)] = {name: x.mean for name, x in report.items() if hasattr(x, "mean")}
    return found


def gymnasium_games() -> dict[str, Any]:
    """Returns checksums of steps of Gymnasium's vector environment on one device and on eight, and the programs."""
    from envs.adapters.gymnasium_vector import vector_env

    found: dict[str, Any] = {}
    for number in (1, 8):
        env = vector_env(envs.make("kuhn_poker"), num_envs=16, devices=number)
        told = [env.reset(seed=3)]
        for n in range(6):
            actions = np.argmax(told[-1][-1]["action_mask"] * [1, 1 + n % 2], axis=1)
            told.append(env.step(np.where(np.arange(16) == n, 9, actions)))
        found[str(number)] = [_sum(one) for one in told]
        found[f"programs on {number}"] = env._advance._cache_size()
    return found


def ladder(run_dir: Path, folder: Path) -> list[int]:
    """Plays a ladder of a run and a random player into a folder, on all devices; returns how many each block had."""
    numbers = []

    def play_hands(*arguments: Any, **named: Any) -> dict[str, np.ndarray]:
        numbers.append(devices.count())
        return matches.play_hands(*arguments, **named)

    overrides = ("env=kuhn_poker", f"players=[random,{run_dir}]", "games=64", "block=32", "plot=none")
    composed = compose_config("ladder", [*overrides, f"run_dir={folder}"])
    with mock.patch.object(ladder_play, "play_hands", play_hands), contextlib.redirect_stdout(sys.stderr):
        play_ladder(prepare_ladder(composed))
    return numbers


def run(folder: Path) -> dict[str, Any]:
    """Returns counts of a run that begins on eight devices, is evaluated there, and goes on on one, two and eight."""
    meta = []
    for overrides in (
        [*TINY, *LEARNERS["dueling_dream"], "devices=8", "iterations=1", f"run_dir={folder}"],
        [f"resume={folder}", "devices=1", "iterations=2"],
        [f"resume={folder}", "devices=2", "iterations=3"],
        [f"resume={folder}", "devices=8", "iterations=4"],
    ):
        with contextlib.redirect_stdout(sys.stderr):
            dream.train(overrides, quiet=True)
        meta.append(find(folder).meta)
    return {"iterations": [one["iteration"] for one in meta], "episodes": [one["counters"]["episodes"] for one in meta]}


def main() -> None:
    """Measures everything and prints one JSON object."""
    folder = Path(sys.argv[1])
    figures = {
        "run": run(folder / "run"),  # on eight devices first, where it keeps the game's tree
        "solvers": solvers(),
        "gradients": gradients(),
        "buffers": buffers(),
        "match": a_match(),
        "gymnasium": gymnasium_games(),
        "learners": {name: learner(folder / name, overrides) for name, overrides in LEARNERS.items()},
        "ladder": ladder(folder / "run", folder / "ladder"),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", 8)
    main()
