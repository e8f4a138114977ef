"""PPO's iteration by part, fused on the device, and the same play with the environment stepped from Python.

Three loops gather the same decisions of self-play with the same network: `fused`, whole games in one program, as
the learner does; `batched`, one call for all lanes' actions and one for all lanes' steps, from a Python loop; `single`,
a Python environment a lane, each stepped by a call of its own, actions still for all lanes at once. The update is the
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from common import Parser, at_least_one, ratio, run, spread

import envs
from dream import algorithms
from dream.config.compose import compose_config
from dream.equations.sampling import sample_action
from dream.training.start import build_run
from envs import Game, Policy

_BASE = ("algo=ppo", "env=gin_rummy_mdp", "preset=laptop")
_FIXED = ("algo.opponents=[self]", "algo.shares=null", "algo.rollout_length=null")
Stepper = Callable[[Policy, int], int]
"""(who plays, number of the call) -> transitions it made."""


def main() -> None:
    """Reads the arguments and measures."""
    parser = Parser(__doc__)
    parser.add_argument("--lanes", type=at_least_one, default=256, help="games in play at once (default %(default)s)")
    parser.add_argument("--games", type=at_least_one, default=1024, help="of an iteration (default %(default)s)")
    parser.add_argument(
        "--python-steps", type=at_least_one, default=4, help="the same from Python (default %(default)s)"
    )
    parser.add_argument("overrides", nargs="*", help=f"of the configuration, after {' '.join(_BASE)}")
    run(parser, measure)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Times iterations after the first, and after each the two Python loops."""
    sizes = (f"algo.episodes_per_iteration={arguments.games}", f"algo.num_envs={arguments.lanes}")
    config = build_run(compose_config("config", [*_BASE, *arguments.overrides, *_FIXED, *sizes]).node).config
    game = envs.make(config.env.name, **config.env.rules)
    algorithm = algorithms.make(config.algo, config.network, game)
    state, began = algorithm.init(jax.random.key(config.seed)), time.perf_counter()
    loops = {"batched": _batched, "single": _single}
    state, _ = algorithm.iterate(state)
    compile_seconds, parts = time.perf_counter() - began, []
    steppers = {name: make(game, arguments.lanes, arguments.python_steps) for name, make in loops.items()}
    for step in steppers.values():
        step(algorithm.policies(state)["current"], 0)
    for n in range(arguments.repeats):
        state, info = algorithm.iterate(state)
        gather = {"fused": info["transitions"] / info["seconds_generate"]}
        policy = algorithm.policies(state)["current"]
        for name, step in steppers.items():
            began = time.perf_counter()
            gather[name] = step(policy, n + 1) / (time.perf_counter() - began)
        parts.append((gather, info))
    return {
        "env": game.name,
        "overrides": " ".join(arguments.overrides),
        **_figures(parts),
        "compile_seconds": compile_seconds,
    }


def _figures(parts: list[tuple[dict[str, float], dict[str, float]]]) -> dict[str, Any]:
    """Returns steps per second of gathering, of the update, and of both, and the ratios fused to Python."""
    figures: dict[str, Any] = {}
    update = [info["transitions"] / info["seconds_fit"] for _, info in parts]
    figures |= spread("update_transitions_per_s", update)
    figures |= spread("gradient_steps_per_s", [info["gradient_steps"] / info["seconds_fit"] for _, info in parts])
    whole = {}
    for name in parts[0][0]:
        rates = [gather[name] for gather, _ in parts]
        whole[name] = [1 / (1 / rate + 1 / fit) for rate, fit in zip(rates, update, strict=True)]
        figures |= spread(f"gather_{name}_transitions_per_s", rates)
        figures |= spread(f"whole_{name}_transitions_per_s", whole[name])
    for name in ("batched", "single"):
        gather = ratio([g["fused"] for g, _ in parts], [g[name] for g, _ in parts])
        figures[f"fused_to_{name}"] = {"gather": gather, "whole": ratio(whole["fused"], whole[name])}
    return figures


def _act(policy: Policy, views: Any, legal: jax.Array, key: jax.Array) -> jax.Array:
    """Returns an action a lane."""
    return jax.vmap(sample_action)(jax.random.split(key, legal.shape[0]), jax.vmap(policy)(views, legal))


def _batched(game: Game, lanes: int, steps: int) -> Stepper:
    """Steps all lanes by one call; what is seen and played comes to the host after every step."""

    def advance(states: Any, actions: jax.Array, key: jax.Array) -> tuple[Any, jax.Array, jax.Array]:
        states, rewards, done = jax.vmap(game.step)(states, actions)
        fresh = jax.vmap(game.init)(jax.random.split(key, lanes))
        over = jax.tree.map(lambda x, y: jnp.where(done.reshape((-1,) + (1,) * (x.ndim - 1)), y, x), states, fresh)
        return over, rewards, done

    look = jax.jit(
        lambda states: (jax.vmap(game.view)(states, states.current_player), jax.vmap(game.legal_actions)(states))
    )
    act, advance = jax.jit(_act), jax.jit(advance)
    states = jax.jit(jax.vmap(game.init))(jax.random.split(jax.random.key(1), lanes))

    def step(policy: Policy, number: int) -> int:
        nonlocal states
        kept = []
        for n in range(steps):
            keys = jax.random.split(jax.random.fold_in(jax.random.key(number), n))
            seen = look(states)
            actions = act(policy, *seen, keys[0])
            states, rewards, done = advance(states, actions, keys[1])
            kept.append(jax.device_get((seen, actions, rewards, done)))
        return lanes * len(kept)

    return step


def _single(game: Game, lanes: int, steps: int) -> Stepper:
    """Steps every lane by a call of its own; what the lanes see is put together for one call of the policy."""
    init, advance, act = jax.jit(game.init), jax.jit(game.step), jax.jit(_act)
    look = jax.jit(lambda state: (game.view(state, state.current_player), game.legal_actions(state)))
    states = [init(jax.random.key(n)) for n in range(lanes)]

    def step(policy: Policy, number: int) -> int:
        for n in range(steps):
            key = jax.random.fold_in(jax.random.key(number), n)
            seen = [jax.device_get(look(state)) for state in states]
            actions = np.asarray(act(policy, *jax.tree.map(lambda *rows: np.stack(rows), *seen), key))
            for lane in range(lanes):
                state, _, done = advance(states[lane], actions[lane])
                states[lane] = init(jax.random.fold_in(key, lane)) if bool(done) else state
        return lanes * steps

    return step


if __name__ == "__main__":
    main()
