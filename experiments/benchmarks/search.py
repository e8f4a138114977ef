"""Seconds to compile a search player of gin rummy, and per decision by worlds, for one decision and for many.

With --players also of players by name, lv7 or mc:512 for instance, at the same decisions.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import time
from typing import Any

import jax
import jax.numpy as jnp
from common import Parser, Work, at_least_one, interleaved, run, spread
from jax import Array, lax

import envs
from dream.equations.sampling import sample_action
from dream.search import SearchSettings, make_search
from dream.storage.policies import find_player
from envs import Game, Policy

_MOVES = 12
"""Actions after which the decisions are asked for: the middle of a round."""


def main() -> None:
    """Reads the arguments and measures."""
    parser = Parser(__doc__, repeats=3)
    parser.add_argument("--policy", default="gin_rummy/strong", help="any player by name, run or file")
    parser.add_argument("--worlds", nargs="+", type=at_least_one, default=[64, 128, 512, 2048])
    parser.add_argument("--batch", nargs="+", type=at_least_one, default=[1, 64], help="decisions at once")
    parser.add_argument("--players", nargs="+", default=[], metavar="NAME", help="other players, timed beside it")
    run(parser, measure)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Times decisions in the middle of rounds, the programs of each batch compiled once for all numbers of worlds."""
    game = envs.make("gin_rummy")
    policy = find_player(arguments.policy, game)
    report: dict[str, Any] = {"env": game.name, "policy": arguments.policy.rsplit("/", 1)[-1]}
    for batch in arguments.batch:
        views, legal = jax.device_get(_positions(game, policy, batch, jax.random.key(batch)))
        decide = jax.jit(lambda player, views, legal: jax.vmap(player)(views, legal))
        players = {worlds: make_search(policy, game, dataclasses.replace(SearchSettings(), worlds=worlds))
                   for worlds in arguments.worlds}  # fmt: skip
        began = time.perf_counter()
        compiled = decide.lower(players[arguments.worlds[0]], views, legal).compile()
        report[f"batch_{batch}"] = {"compile_seconds": time.perf_counter() - began}
        works = {f"worlds_{worlds}": Work(functools.partial(_decided, compiled, player, views, legal))
                 for worlds, player in players.items()}  # fmt: skip
        for name in arguments.players:
            player = find_player(name, game)
            began = time.perf_counter()
            program = decide.lower(player, views, legal).compile()
            report[f"batch_{batch}"][f"{name}_compile_seconds"] = time.perf_counter() - began
            works[name] = Work(functools.partial(_decided, program, player, views, legal))
        for name, timing in interleaved(works, arguments.repeats).items():
            per_decision = [seconds / batch for seconds in timing.seconds]
            report[f"batch_{batch}"][name] = spread("seconds_per_decision", per_decision)
    return report


def _decided(compiled: Any, player: Policy, views: Any, legal: Array, number: int) -> Any:
    return compiled(player, views, legal)


@functools.partial(jax.jit, static_argnums=(0, 2))
def _positions(game: Game, policy: Policy, count: int, key: Array) -> tuple[Any, Array]:
    """Plays rounds by the policy and returns the views of who is to act, and the legal actions; some may be over."""

    def one(key: Array) -> tuple[Any, Array]:
        deal_key, play_key = jax.random.split(key)

        def step(n: Array, state: Any) -> Any:
            view, legal = game.view(state, jnp.maximum(state.current_player, 0)), game.legal_actions(state)
            return game.step(state, sample_action(jax.random.fold_in(play_key, n), policy(view, legal)))[0]

        state = lax.fori_loop(0, _MOVES, step, game.init(deal_key))
        return game.view(state, jnp.maximum(state.current_player, 0)), game.legal_actions(state)

    views, legal = jax.vmap(one)(jax.random.split(key, 4 * count))
    playing = jnp.argsort(~jnp.any(legal, axis=1), stable=True)[:count]
    return jax.tree.map(lambda x: x[playing], (views, legal))


if __name__ == "__main__":
    main()
