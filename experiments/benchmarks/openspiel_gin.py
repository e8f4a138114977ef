"""Games per second of OpenSpiel's gin rummy, ours and pyspiel's own loop in C++, both on all cores: random, simple bot.

Games are played to their ends with the full legal actions and exact deadwood; a lane whose game has ended is dealt the
next one within a few steps, so that lanes stay busy. Compilation is apart, pyspiel is measured in the same rounds.

`random` and `simple_bot` read the legal actions as packed words, the bot by its inner function. `public_random` and
`public_simple_bot` do what a match does: `Game.legal_actions`, `Game.view`, a `Policy` and a draw from it. With
--devices lanes are split over as many devices of the CPU, of one thread each.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import os
import statistics
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from common import Parser, Work, at_least_one, interleaved, on_every_device, ratio, run, split_cores, spread
from jax import Array, lax

import envs
from dream.equations.sampling import sample_action
from envs import Game
from envs.batching import computed_once, lanes_last, where_needed
from envs.gin_rummy.players import simple_bot
from envs.random_play import uniform_action

_STEPS_A_DEAL = 8
"""Steps between two deals to the lanes whose games have ended."""
_SECONDS = 1.0
_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def main() -> None:
    """Reads the arguments and measures."""
    parser = Parser(__doc__)
    parser.add_argument("--batch", type=at_least_one, default=4096, metavar="GAMES", help="lanes (default %(default)s)")
    parser.add_argument("--steps", type=at_least_one, default=400, help="steps of a call (default %(default)s)")
    parser.add_argument("--no-pyspiel", action="store_true", help="leave pyspiel out")
    parser.add_argument("--devices", type=at_least_one, default=1, help="that share the lanes (default %(default)s)")
    run(parser, measure)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Times all kinds of play, ours and pyspiel's, in the same rounds."""
    split_cores(arguments.devices, [arguments.batch])
    game = envs.make("gin_rummy_openspiel")
    works = {kind: _ours(game, pick, arguments) for kind, pick in KINDS.items()}
    with multiprocessing.get_context("spawn").Pool(_CORES) as pool:
        peers = {} if arguments.no_pyspiel else {f"pyspiel_{kind}": _pyspiel(pool, kind) for kind in PEERS}
        timings = interleaved(works | peers, arguments.repeats, _SECONDS)
    figures: dict[str, Any] = {"batch": arguments.batch, "cores": _CORES}
    for kind in KINDS:
        mine = timings[kind].rates("games")
        figures[kind] = spread("games_per_s", mine) | spread("decisions_per_s", timings[kind].rates("decisions"))
        figures[kind] |= {"compile_seconds": timings[kind].compile_seconds}
        figures[kind] |= {
            "decisions_per_game": statistics.mean(c["decisions"] / c["games"] for c in timings[kind].counts)
        }
        if peers:
            theirs = timings[f"pyspiel_{kind.removeprefix(_PUBLIC)}"].rates("games")
            figures[kind] |= spread("pyspiel_games_per_s", theirs) | ratio(mine, theirs)
    return figures


@lanes_last
def _nth_action(bits: Array, words: Array) -> Array:
    """Returns a uniformly random one of the actions set in words uint32[8, ...]: int32, from bits uint32[...]."""
    counts = lax.population_count(words)
    total = functools.reduce(jnp.add, list(counts))
    high, low = bits >> 16, bits & np.uint32(0xFFFF)
    n = (high * total + (low * total >> 16)) >> 16
    word, index, before = words[0], jnp.zeros_like(n), jnp.zeros_like(n)
    base = jnp.zeros_like(n)
    for w in range(1, words.shape[0]):
        before = before + counts[w - 1]
        beyond = n >= before
        index = jnp.where(beyond, np.uint32(w), index)
        word, base = jnp.where(beyond, words[w], word), jnp.where(beyond, before, base)
    n = n - base
    position = jnp.zeros_like(n)
    for half in (16, 8, 4, 2, 1):
        below = lax.population_count(word & np.uint32((1 << half) - 1))
        upper = n >= below
        n, word = jnp.where(upper, n - below, n), jnp.where(upper, word >> half, word)
        position = position + jnp.where(upper, np.uint32(half), np.uint32(0))
    return (index * 32 + position).astype(jnp.int32)


def _pick_uniform(game: Any, state: Any, bits: Array) -> Array:
    return _nth_action(bits, game.legal_words(state))


def _pick_simple_bot(game: Any, state: Any, bits: Array) -> Array:
    return simple_bot.choice(game)(game.view(state, state.turn), game.legal_words(state))


def _pick_uniform_of_mask(game: Any, state: Any, bits: Array) -> Array:
    return uniform_action(bits, game.legal_actions(state))


def _pick_by_policy(game: Any, state: Any, bits: Array) -> Array:
    policy = envs.make_bot("simple_bot", game)
    chances = policy(game.view(state, jnp.maximum(state.current_player, 0)), game.legal_actions(state))
    return sample_action(jax.random.key(bits), chances)


_PUBLIC = "public_"
PEERS = {"random": _pick_uniform, "simple_bot": _pick_simple_bot}
KINDS = PEERS | {f"{_PUBLIC}random": _pick_uniform_of_mask, f"{_PUBLIC}simple_bot": _pick_by_policy}


def _go_on(game: Game, pick: Any, blocks: int, states: Any, keys: Array) -> tuple[Any, Array, Array]:
    """Plays blocks of steps; returns the states, the games finished and the decisions made, [1] each."""
    key = keys[0]
    size = states.turn.shape[0]

    def body(carry: tuple, t: Array) -> tuple:
        states, decisions = carry
        bits = jax.random.bits(jax.random.fold_in(key, t), (size,))
        actions = computed_once(jax.vmap(lambda state, word: pick(game, state, word))(states, bits))
        decisions = decisions + jnp.sum(states.current_player >= 0)
        return (jax.vmap(game.step)(states, actions)[0], decisions), None

    def block(carry: tuple, b: Array) -> tuple:
        states, decisions, games = carry
        steps = b * _STEPS_A_DEAL + jnp.arange(_STEPS_A_DEAL)
        (states, decisions), _ = lax.scan(body, (states, decisions), steps)
        over = states.current_player < 0
        keys = jax.random.split(jax.random.fold_in(key, -1 - b), size)
        states = jax.vmap(lambda done, state, deal: where_needed(done, game.init, state, deal))(over, states, keys)
        return (states, decisions, games + jnp.sum(over)), None

    start = (states, jnp.int32(0), jnp.int32(0))
    (states, decisions, games), _ = lax.scan(block, start, jnp.arange(blocks))
    return states, games[None], decisions[None]


def _ours(game: Game, pick: Any, arguments: argparse.Namespace) -> Work:
    """Plays on with all lanes for a number of steps, each device its share; counts games finished and decisions."""
    states = on_every_device(jax.vmap(game.init))(jax.random.split(jax.random.key(1), arguments.batch))
    blocks = -(-arguments.steps // _STEPS_A_DEAL)
    go_on = on_every_device(functools.partial(_go_on, game, pick, blocks))

    def play(n: int) -> tuple[Array, Array]:
        nonlocal states
        states, games, decisions = go_on(states, jax.random.split(jax.random.key(n), jax.device_count()))
        return games, decisions

    return Work(play, lambda played: {"games": jnp.sum(played[0]), "decisions": jnp.sum(played[1])})


def _pyspiel(pool: Any, kind: str) -> Work:
    """Plays on pyspiel in as many processes as there are cores."""

    def play(n: int) -> float:
        return sum(pool.starmap(_evaluate_bots, [(kind, n * _CORES + core) for core in range(_CORES)]))

    return Work(play, lambda games: {"games": games})


@functools.cache
def _players(kind: str) -> tuple[Any, list[Any]]:
    import pyspiel

    game = pyspiel.load_game("gin_rummy")
    if kind == "random":
        return game.new_initial_state(), [pyspiel.make_uniform_random_bot(seat, seat) for seat in range(2)]
    parameters = game.get_parameters()
    return game.new_initial_state(), [pyspiel.make_simple_gin_rummy_bot(parameters, seat) for seat in range(2)]


def _evaluate_bots(kind: str, seed: int) -> int:
    """Returns how many games a core plays in half a second."""
    import pyspiel

    root, bots = _players(kind)
    began, games = time.perf_counter(), 0
    while time.perf_counter() - began < _SECONDS / 2:
        pyspiel.evaluate_bots(root.clone(), bots, 1_000_003 * seed + games)
        games += 1
    return games


if __name__ == "__main__":
    main()
