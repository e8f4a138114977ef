"""Observation vectors per second: from views (`encode`) and from states (`observe`), and their bytes."""

from __future__ import annotations

import argparse
from typing import Any

import jax
import jax.numpy as jnp
from common import Parser, Work, at_least_one, interleaved, run, spread
from jax import Array, lax

import envs
from envs import Game
from envs.random_play import uniform_action

_SECONDS = 0.3
_DECISIONS = 20
"""Random decisions taken from the deal before the states are observed."""


def main() -> None:
    """Reads the arguments and measures."""
    parser = Parser(__doc__)
    parser.add_argument("--env", default="gin_rummy", help="the game (default %(default)s)")
    parser.add_argument("--batches", type=at_least_one, nargs="+", default=[256, 1024, 4096], metavar="STATES")
    run(parser, measure)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Times writing float32 observations of a batch of states, some 20 decisions into a random game."""
    game = envs.make(arguments.env)
    works = {}
    for batch in dict.fromkeys(arguments.batches):
        states = _states(game, jax.random.key(0), batch)
        views = jax.jit(jax.vmap(lambda state: game.view(state, 0)))(states)
        works[f"encode {batch}"] = _batched(jax.vmap(game.encode), views, batch)
        works[f"observe {batch}"] = _batched(jax.vmap(lambda state: game.observe(state, 0)), states, batch)
    timings = interleaved(works, arguments.repeats, _SECONDS)
    observation_bytes = 4 * game.observation_size
    state = jax.eval_shape(game.init, jax.random.key(0))
    view_bytes = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(jax.eval_shape(game.view, state, 0)))
    figures: dict[str, Any] = {"env": game.name, "observation_bytes": observation_bytes, "view_bytes": view_bytes}
    figures["bytes_ratio"] = observation_bytes / view_bytes
    for name, timing in timings.items():
        function, batch = name.split()
        rates = timing.rates("observations")
        figures.setdefault(function, {})[batch] = {
            **spread("observations_per_s", rates),
            **spread("megabytes_per_s", [rate * observation_bytes / 1e6 for rate in rates]),
            "compile_seconds": timing.compile_seconds,
        }
    return figures


def _batched(function: Any, inputs: Any, batch: int) -> Work:
    jitted = jax.jit(function)
    return Work(lambda n: jitted(inputs), lambda out: {"observations": batch})


def _states(game: Game, key: Array, batch: int) -> Any:
    """Returns `batch` states after a few random decisions; short games may be over by then."""

    def play(key: Array) -> Any:
        deal_key, play_key = jax.random.split(key)

        def body(state: Any, bits: Array) -> tuple[Any, None]:
            legal = game.legal_actions(state)
            action = uniform_action(bits, legal)
            return game.step(state, jnp.where(jnp.any(legal), action, 0))[0], None

        return lax.scan(body, game.init(deal_key), jax.random.bits(play_key, (_DECISIONS,)))[0]

    return jax.jit(jax.vmap(play))(jax.random.split(key, batch))


if __name__ == "__main__":
    main()
