"""Rummy 500: random decisions per second by number of players, legal mask included, compared with plain Python's."""

from __future__ import annotations

import argparse
import functools
import random
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from common import Parser, Work, at_least_one, interleaved, ratio, run, spread
from jax import Array, lax

import envs
from envs.game import Game
from envs.random_play import uniform_action

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "support"))
from slow_rummy500 import SlowRummy500

_SECONDS, _STEPS = 0.3, 256


def main() -> None:
    """Reads the arguments and measures."""
    parser = Parser(__doc__)
    parser.add_argument("--batch", type=at_least_one, default=1024, help="rounds at once (default %(default)s)")
    parser.add_argument("--players", type=int, nargs="+", default=[2, 3, 4, 5, 6], help="numbers of players")
    run(parser, measure)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Times decisions, a lane whose round ends starting its deal again, and whole rounds in plain Python."""
    figures: dict[str, Any] = {"batch": arguments.batch}
    for players in arguments.players:
        game = envs.make("rummy500", num_players=players)
        works = {
            "vectorised": Work(
                lambda n, game=game: _vectorised(game, jax.random.key(n), arguments.batch),
                lambda out: {"decisions": arguments.batch * _STEPS},
            ),
            "plain_python": Work(lambda n, p=players: _plain(p, n), lambda out: {"decisions": out}),
        }
        timings = interleaved(works, arguments.repeats, _SECONDS)
        rates = {name: timing.rates("decisions") for name, timing in timings.items()}
        figures[f"{players}_players"] = {
            **{name: spread("decisions_per_s", values) for name, values in rates.items()},
            **ratio(rates["vectorised"], rates["plain_python"]),
            "compile_seconds": timings["vectorised"].compile_seconds,
        }
    return figures


@functools.partial(jax.jit, static_argnums=(0, 2))
def _vectorised(game: Game, key: Array, lanes: int) -> Array:
    """Plays _STEPS decisions in each lane and returns the sum of all rewards."""
    deal_key, play_key = jax.random.split(key)
    deals = jax.vmap(game.init)(jax.random.split(deal_key, lanes))

    def one(state: Any, deal: Any, bits: Array) -> tuple[Any, Array]:
        state, rewards, done = game.step(state, uniform_action(bits, game.legal_actions(state)))
        return jax.tree.map(lambda old, new: jnp.where(done, old, new), deal, state), rewards

    def body(states: Any, t: Array) -> tuple[Any, Array]:
        states, rewards = jax.vmap(one)(states, deals, jax.random.bits(jax.random.fold_in(play_key, t), (lanes,)))
        return states, jnp.sum(rewards, axis=0)

    return jnp.sum(lax.scan(body, deals, jnp.arange(_STEPS))[1], axis=0)


def _plain(players: int, seed: int) -> int:
    """Plays a round at random in plain Python and returns its decisions."""
    rng = random.Random(seed)
    game, decisions = SlowRummy500(rng.sample(range(52), 52), players), 0
    while legal := game.legal():
        game.step(rng.choice(sorted(legal)))
        decisions += 1
    return decisions


if __name__ == "__main__":
    main()
