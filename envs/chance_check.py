"""Checks by random games that `init` and `step` of an enumerable game agree with the outcomes that it lists.

Exact values are computed from `initial_outcomes` and `outcomes`; games are played with `init` and `step`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs.game import EnumerableGame
from envs.sampling import first_above

GAMES = 4096
"""Played in each of the two ways."""
_BUCKETS = 128
"""That what all players see is sorted into, at the deal and later."""
_MOST_ERRORS = 6.0
"""Standard errors between two means; chance alone passes that once in 10^9 means."""


def lists_what_it_plays(game: EnumerableGame, key: Array) -> bool:
    """Returns whether random games come out alike: what is seen, on average and as a whole, and what is paid.

    Args:
      game: sound in all else that `check_game` looks at.
      key: consumed.
    """
    played, listed = (np.asarray(x, np.float64) for x in _both_ways(game, key))
    apart = np.abs(played.mean(axis=0) - listed.mean(axis=0))
    error = np.sqrt((played.var(axis=0) + listed.var(axis=0)) / GAMES)
    size = np.maximum(np.abs(played).max(axis=0), 1)
    return not np.any(apart > _MOST_ERRORS * error + 1e-4 * size)


@functools.partial(jax.jit, static_argnums=0)
def _both_ways(game: EnumerableGame, key: Array) -> tuple[Array, Array]:
    """Returns what random games come to, played and listed: float32[GAMES, F] each."""
    deal_key, draw_key, play_key, list_key = jax.random.split(key, 4)
    dealt = jax.vmap(game.init)(jax.random.split(deal_key, GAMES))
    states, probs = game.initial_outcomes()
    drawn = jax.vmap(functools.partial(_drawn, jnp.asarray(probs)))(jax.random.uniform(draw_key, (GAMES,)))
    listed = jax.tree.map(lambda x: jnp.asarray(x)[drawn], states)
    return _random_games(game, dealt, _step, play_key), _random_games(game, listed, _outcome, list_key)


def _drawn(weights: Array, draw: Array) -> Array:
    """Returns an index, drawn by its weight: int32, from a number in [0, 1)."""
    summed = jnp.cumsum(weights)
    return first_above(summed, weights, draw * summed[-1])


def _step(game: EnumerableGame, state: Any, action: Array, draw: Array) -> tuple[Any, Array]:
    return game.step(state, action)[:2]


def _outcome(game: EnumerableGame, state: Any, action: Array, draw: Array) -> tuple[Any, Array]:
    states, probs, rewards, _ = game.outcomes(state, action)
    drawn = _drawn(jnp.asarray(probs), draw)
    return jax.tree.map(lambda x: jnp.asarray(x)[drawn], states), jnp.asarray(rewards)[drawn]


def _random_games(game: EnumerableGame, states: Any, move: Callable[..., tuple[Any, Array]], key: Array) -> Array:
    """Plays games to the end; returns of each what was seen, in buckets and summed, and what it paid: float32[F]."""

    def one(state: Any, seen: Array, paid: Array, draws: Array) -> tuple[Any, Array, Array]:
        over = state.current_player < 0
        action = _drawn(game.legal_actions(state).astype(jnp.float32), draws[0])
        after, rewards = move(game, state, action, draws[1])
        after = jax.tree.map(lambda old, new: jnp.where(over, old, new), state, after)
        return after, seen + jnp.where(over, 0.0, _seen(game, after, later=True)), paid + jnp.where(over, 0.0, rewards)

    def body(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        t, states, seen, paid = carry
        draws = jax.random.uniform(jax.random.fold_in(key, t), (GAMES, 2))
        return t + 1, *jax.vmap(one)(states, seen, paid, draws)

    def goes_on(carry: tuple[Any, ...]) -> Array:
        return (carry[0] < game.max_length) & jnp.any(carry[1].current_player >= 0)

    seen = jax.vmap(functools.partial(_seen, game, later=False))(states)
    start = jnp.int32(0), states, seen, jnp.zeros((GAMES, game.num_players))
    _, _, seen, paid = lax.while_loop(goes_on, body, start)
    return jnp.concatenate([seen, paid, jnp.abs(paid)], axis=1)


def _seen(game: EnumerableGame, state: Any, *, later: bool) -> Array:
    """Returns which bucket all players' views are in, apart for the deal, and their observations: float32[F]."""
    views = jax.vmap(lambda seat: game.view(state, seat))(jnp.arange(game.num_players, dtype=jnp.int32))
    code = jnp.uint32(0)
    for leaf in jax.tree.leaves(views):
        for word in jnp.ravel(leaf).astype(jnp.uint32):
            code = (code ^ word) * np.uint32(0x9E3779B1)
            code = code ^ (code >> 15)
    bucket = code % np.uint32(_BUCKETS) + np.uint32(_BUCKETS * later)
    return jnp.concatenate([bucket == np.arange(2 * _BUCKETS), jax.vmap(game.encode)(views).reshape(-1)]).astype(
        jnp.float32
    )
