"""Seconds to trace, lower and compile the game's, the learner's and the match's programs, no cache kept."""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from common import Parser, at_least_one, run, spread

import envs
from dream import algorithms
from dream.algorithms.play_then_fit import PlayThenFit
from dream.compiled.options import compiler_options
from dream.config.compose import compose_config
from dream.config.schema import RunConfig
from dream.evaluation import matches
from dream.storage.policies import chosen_policy
from dream.training.start import build_run
from envs import Game
from envs.random_play import play_random

_STAGES = ("trace", "lower", "compile")
Program = tuple[Any, tuple[Any, ...], dict[str, Any]]
"""A jitted function, its arguments (arrays or their shapes) and compiler options that it has not itself."""


def main() -> None:
    """Reads the arguments and measures."""
    parser = Parser(__doc__)
    parser.add_argument("overrides", nargs="*", help="of the configuration, e.g. algo=dueling_dream preset=laptop")
    parser.add_argument("--batch", type=at_least_one, default=1024, help="of the game's functions (default 1024)")
    parser.add_argument("--only", nargs="+", metavar="PROGRAM", help="measure these alone; put overrides before it")
    run(parser, measure)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Times the three stages of each program, all of JAX's caches emptied before."""
    config = build_run(compose_config("config", arguments.overrides).node).config
    game = envs.make(config.env.name, **config.env.rules)
    programs = _of_game(game, arguments.batch) | _of_run(config, game)
    chosen = arguments.only or list(programs)
    for name in chosen:
        if name not in programs:
            raise envs.InputError(f"--only {name} is unknown; known: {', '.join(programs)}")
    report: dict[str, Any] = {"overrides": " ".join(arguments.overrides), "env": game.name, "batch": arguments.batch}
    for name in chosen:
        rounds = [_stages(*programs[name]) for _ in range(arguments.repeats)]
        columns = dict(zip(_STAGES, zip(*rounds, strict=True), strict=True))
        columns["total"] = tuple(sum(seconds) for seconds in rounds)
        report[name] = {k: v for stage, seconds in columns.items() for k, v in spread(stage, list(seconds)).items()}
    return report


def _stages(function: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> list[float]:
    """Returns the seconds of tracing, lowering and compiling."""
    jax.clear_caches()
    times = [time.perf_counter()]
    traced = function.trace(*arguments)
    times.append(time.perf_counter())
    lowered = traced.lower()
    times.append(time.perf_counter())
    lowered.compile(options)
    times.append(time.perf_counter())
    return [end - start for start, end in itertools.pairwise(times)]


def _of_game(game: Game, batch: int) -> dict[str, Program]:
    """Returns the game's functions on a batch, and random play."""
    keys = jax.random.split(jax.random.key(0), batch)
    states = jax.eval_shape(jax.vmap(game.init), keys)
    views = jax.eval_shape(jax.vmap(lambda state: game.view(state, 0)), states)
    actions = jax.ShapeDtypeStruct((batch,), jnp.int32)
    return {
        "init": (_mapped(game.init), (keys,), {}),
        "step": (_mapped(game.step), (states, actions), {}),
        "legal_actions": (_mapped(game.legal_actions), (states,), {}),
        "encode": (_mapped(game.encode), (views,), {}),
        "play_random": (play_random, (game, jax.random.key(0), batch), {}),
    }


def _mapped(function: Callable[..., Any]) -> Any:
    return jax.jit(jax.vmap(function))


def _of_run(config: RunConfig, game: Game) -> dict[str, Program]:
    """Returns the programs of an iteration and of its evaluation."""
    algorithm = algorithms.make(config.algo, config.network, game)
    # An Algorithm shows only `iterate`; its two programs belong to the object it was built from.
    learner = getattr(algorithm.iterate, "__self__", None)
    if not isinstance(learner, PlayThenFit):
        raise envs.InputError(
            f"algo.name={config.algo['name']} has no generation and fit to compile; use dueling_dream or ppo"
        )
    state = jax.eval_shape(algorithm.init, jax.random.key(0))
    play = learner.play_arguments(state)
    played, _, _ = jax.eval_shape(learner.generate, *play)
    policy = jax.eval_shape(lambda state: chosen_policy(algorithm.policies(state)), state)
    pairs = min(matches.CHUNK, config.eval.games // 2)
    seats = (game, policy, envs.make_bot("random", game), jax.random.key(0), pairs)
    options = compiler_options(game)
    return {
        "generate": (learner.generate, (learner, *play), options),
        "learn": (learner.learn, (learner, *learner.fit_arguments(state, played)), options),
        "match": (matches._play_pairs, seats, {}),
    }


if __name__ == "__main__":
    main()
