"""Seconds to compile a search player of gin rummy, and per decision by worlds, for one decision and for many.

All decisions count, `searched` is the share of those with candidates to compare. A search may end before its number of
worlds: `mean_worlds` is how many the searched ones come to. Small batches go through sixteen decisions in turn.

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
import numpy as np
from common import Parser, Work, at_least_one, interleaved, run, spread
from jax import Array, lax

import envs
from dream.equations.sampling import sample_action
from dream.search import SearchSettings, halving, make_search
from dream.storage.policies import find_player
from envs import Game, Policy

_MOVES = 12
"""Actions after which the decisions are asked for: the middle of a round."""
_DECISIONS = 16
"""At least, that a figure is the mean of: they take from no time at all to many times the mean."""


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
        turns = -(-_DECISIONS // batch)
        positions = jax.device_get(_positions(game, policy, batch * turns, jax.random.key(batch)))
        parts = [_part(positions, slice(n * batch, (n + 1) * batch)) for n in range(turns)]
        decide = jax.jit(lambda player, views, legal: jax.vmap(player)(views, legal))
        players = {worlds: make_search(policy, game, dataclasses.replace(SearchSettings(), worlds=worlds))
                   for worlds in arguments.worlds}  # fmt: skip
        began = time.perf_counter()
        compiled = decide.lower(players[arguments.worlds[0]], *parts[0]).compile()
        found: dict[str, Any] = {"compile_seconds": time.perf_counter() - began}
        works = {f"worlds_{worlds}": Work(functools.partial(_decided, compiled, player, parts))
                 for worlds, player in players.items()}  # fmt: skip
        for name in arguments.players:
            player = find_player(name, game)
            began = time.perf_counter()
            program = decide.lower(player, *parts[0]).compile()
            found[f"{name}_compile_seconds"] = time.perf_counter() - began
            works[name] = Work(functools.partial(_decided, program, player, parts))
        for name, timing in interleaved(works, arguments.repeats).items():
            found[name] = spread("seconds_per_decision", [seconds / (batch * turns) for seconds in timing.seconds])
        for worlds, player in players.items():
            looked = np.asarray(_looked_at(player, *positions))
            found["searched"] = float(np.mean(looked > 0))
            found[f"worlds_{worlds}"]["mean_worlds"] = float(looked.sum() / max(1, np.sum(looked > 0)))
        report[f"batch_{batch}"] = found
    return report


def _part(positions: tuple[Any, Array], rows: slice) -> tuple[Any, Array]:
    return jax.tree.map(lambda x: x[rows], positions)


def _decided(compiled: Any, player: Policy, parts: list[tuple[Any, Array]], number: int) -> Any:
    return [jax.block_until_ready(compiled(player, *part)) for part in parts]


@jax.jit
def _looked_at(player: Policy, views: Any, legal: Array) -> Array:
    """Returns the worlds that a search player looks at before it decides, 0 where it does not search: int32[n]."""
    search, params = player.apply, player.params

    def one(position: tuple[Any, Array]) -> Array:
        view, legal = position
        actions, valid, _ = search.candidates_of(params, view, legal)
        question = search.begin(params, view, actions, valid)

        def think(carry: tuple[Array, Any]) -> tuple[Array, Any]:
            return carry[0] + 1, search.bracket(params, question, *carry)

        def goes_on(carry: tuple[Array, Any]) -> Array:
            return (carry[0] < params.brackets) & halving.is_open(carry[1], valid, params.evidence)

        return search.pulls * lax.while_loop(goes_on, think, (jnp.int32(0), halving.empty(len(actions))))[0]

    return lax.map(one, (views, legal))


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
