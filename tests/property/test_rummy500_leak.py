"""A rummy 500 player's view and legal actions do not change when every card it cannot know is dealt anew."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array, lax

import envs
from envs.game import Game
from envs.random_play import uniform_action
from envs.rummy500 import actions
from envs.rummy500.state import HAND, STOCK

ROUNDS, STEPS = 128, 140


def _redealt(state: Any, seat: Array, key: Array) -> Any:
    """Swaps at random the cards of the stock and of other hands that nobody saw taken."""
    hidden = (state.zone == STOCK) | ((state.zone >= HAND) & (state.zone != HAND + seat) & ~state.seen)
    order = jnp.argsort(jnp.where(hidden, jax.random.uniform(key, (52,)), 2.0))
    ranks = jnp.cumsum(hidden) - 1
    becomes = jnp.where(hidden, order[ranks], np.arange(52))
    return dataclasses.replace(
        state,
        zone=jnp.zeros_like(state.zone).at[becomes].set(state.zone),
        deck=becomes[state.deck].astype(jnp.uint8),
    )


def _differ(one: Any, two: Any) -> Array:
    return jnp.any(
        jnp.stack([jnp.any(a != b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True)])
    )


def _changes(game: Game, state: Any, seat: Array, key: Array) -> dict[str, Array]:
    other = _redealt(state, seat, key)
    acts, in_play = state.current_player == seat, state.current_player >= 0
    following = (seat + 1) % game.num_players
    return {
        "view": in_play & _differ(game.view(state, seat), game.view(other, seat)),
        "legal": acts & _differ(game.legal_actions(state), game.legal_actions(other)),
        "another's hand": in_play & jnp.any(game.view(state, following).hand != game.view(other, following).hand),
        "the next card": in_play & (state.deck[state.drawn] != other.deck[state.drawn]),
        "another's chances": in_play & ~acts & _differ(game.legal_actions(state), game.legal_actions(other)),
        "decisions": in_play,
    }


@functools.partial(jax.jit, static_argnums=0)
def _count(game: Game, key: Array) -> dict[str, Array]:
    deal_key, play_key, redeal_key = jax.random.split(key, 3)
    states = jax.vmap(game.init)(jax.random.split(deal_key, ROUNDS))
    seats = np.arange(game.num_players, dtype=np.int32)

    def one(state: Any, bits: Array, key: Array) -> tuple[Any, dict[str, Array]]:
        changed = jax.vmap(functools.partial(_changes, game), (None, 0, 0))(
            state, seats, jax.random.split(key, game.num_players)
        )
        legal = game.legal_actions(state)
        eager = legal & (np.arange(game.num_actions) >= actions.TAKE) & (np.arange(game.num_actions) < actions.DISCARD)
        choice = jnp.where(jnp.any(eager) & (bits % 4 > 0), eager, legal)
        action = jnp.where(jnp.any(legal), uniform_action(bits, choice), 0)
        return game.step(state, action)[0], {name: jnp.sum(flags) for name, flags in changed.items()}

    def body(states: Any, t: Array) -> tuple:
        bits = jax.random.bits(jax.random.fold_in(play_key, t), (ROUNDS,))
        states, counts = jax.vmap(one)(states, bits, jax.random.split(jax.random.fold_in(redeal_key, t), ROUNDS))
        return states, {name: jnp.sum(n) for name, n in counts.items()}

    totals = lax.scan(body, states, jnp.arange(STEPS))[1]
    return {name: jnp.sum(n) for name, n in totals.items()}


@pytest.fixture(scope="module", params=[2, 4])
def changes(request: pytest.FixtureRequest) -> dict[str, int]:
    """Counts over the decisions of 128 rounds, for every seat."""
    game = envs.make("rummy500", num_players=request.param)
    return {name: int(n) for name, n in jax.device_get(_count(game, jax.random.key(9))).items()}


def test_what_a_player_sees_and_may_do_stays_the_same(changes: dict[str, int]) -> None:
    """To the bit."""
    assert (changes["view"], changes["legal"]) == (0, 0)


def test_leaks_would_be_seen(changes: dict[str, int]) -> None:
    """The deals differ in what is hidden nearly always, and another's legal actions often."""
    assert changes["decisions"] > 10_000
    assert changes["another's hand"] > 0.8 * changes["decisions"]
    assert changes["the next card"] > 0.7 * changes["decisions"]
    assert changes["another's chances"] > 0.1 * changes["decisions"]
