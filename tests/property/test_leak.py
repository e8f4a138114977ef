"""A player's view and legal actions do not change when every card the player cannot see is dealt anew."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import Any

import gin_actors
import gin_redeal
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import side_by_side
import slow_gin
from jax import Array, lax

from envs.game import Game

NUM_HANDS = 4_096
View = Callable[[Game, Any, Array], Any]


def _honest(game: Game, state: Any, player: Array) -> Any:
    return game.view(state, player)


LEAKS: dict[str, View] = {
    "the opponent's hand": lambda game, state, player: game.view(state, 1 - player).hand,
    "the opponent's deadwood": lambda game, state, player: game.view(state, 1 - player).deadwood,
    "the opponent's log": lambda game, state, player: game.view(state, 1 - player).log,
    "the log as it is": lambda game, state, player: state.table.log,
    "whether the opponent can knock": lambda game, state, player: game.view(state, 1 - player).can_knock,
    "the next card of the stock": lambda game, state, player: state.table.deck[21 + state.table.drawn],
    "what the opponent's discards leave": lambda game, state, player: state.table.after,
}
"""Views that show too much: the test must notice each."""


def _differ(one: Any, two: Any) -> Array:
    return jnp.any(
        jnp.stack([jnp.any(a != b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True)])
    )


def _changes(game: Game, state: Any, seat: Array, key: Array) -> dict[str, Array]:
    """Returns which views of one player change when what it cannot know is dealt anew."""
    other = gin_redeal.redealt(game, state, seat, key)
    acts = (state.current_player == seat) & _differ(game.legal_actions(state), game.legal_actions(other))
    views = {"honest": _honest, **LEAKS}
    return {
        "legal": acts,
        **{name: _differ(see(game, state, seat), see(game, other, seat)) for name, see in views.items()},
    }


@functools.partial(jax.jit, static_argnums=0)
def _count_changes(game: Game, key: Array) -> tuple[dict[str, Array], Array, Array]:
    """Plays many hands and deals anew at every decision, once for each player.

    Returns:
      Changes by what changed and whether the player was to act, int32[2] (not to act, to act); decisions; hands over.
    """
    deal_key, play_key, redeal_key = jax.random.split(key, 3)
    states = jax.vmap(game.init)(jax.random.split(deal_key, NUM_HANDS))
    seats = np.arange(2, dtype=np.int32)

    def one(state: Any, bits: Array, key: Array, style: Array) -> tuple[Any, dict[str, Array]]:
        changed = jax.vmap(functools.partial(_changes, game), (None, 0, 0))(state, seats, jax.random.split(key))
        acts = (state.current_player == seats) & (state.current_player >= 0)
        waits = (state.current_player != seats) & (state.current_player >= 0)
        when = jnp.stack([waits, acts])
        counts = {name: jnp.sum(when & flags[None], axis=1) for name, flags in changed.items()}
        return game.step(state, gin_actors.mixed(game, state, bits, style))[0], counts

    def body(carry: tuple, t: Array) -> tuple:
        states, totals, decisions = carry
        decisions = decisions + jnp.sum(states.current_player >= 0)
        bits = jax.random.bits(jax.random.fold_in(play_key, t), (NUM_HANDS,))
        keys = jax.random.split(jax.random.fold_in(redeal_key, t), NUM_HANDS)
        states, counts = jax.vmap(one)(states, bits, keys, np.arange(NUM_HANDS, dtype=np.int32))
        return (states, {name: totals[name] + jnp.sum(n, axis=0) for name, n in counts.items()}, decisions), None

    names = ["legal", "honest", *LEAKS]
    start = (states, {name: jnp.zeros(2, jnp.int32) for name in names}, jnp.int32(0))
    (states, totals, decisions), _ = lax.scan(body, start, jnp.arange(game.max_length))
    return totals, decisions, jnp.sum(states.current_player < 0)


@pytest.fixture(scope="module")
def changes(game: Game) -> dict[str, np.ndarray]:
    """Counts over every decision of 4,096 hands of players half greedy, half random."""
    totals, decisions, over = jax.device_get(_count_changes(game, jax.random.key(50)))
    assert over == NUM_HANDS
    assert decisions > 20 * NUM_HANDS
    return {**totals, "decisions": decisions}


def test_view_stays_the_same_to_the_bit(changes: dict[str, np.ndarray]) -> None:
    """Neither the player to act nor the one who waits can tell the deals apart."""
    assert changes["honest"].tolist() == [0, 0]


def test_legal_actions_stay_the_same(changes: dict[str, np.ndarray]) -> None:
    """What the player to act may do depends on what it knows alone."""
    assert changes["legal"].tolist() == [0, 0]


@pytest.mark.parametrize("leak", LEAKS)
def test_a_view_that_shows_too_much_is_caught(changes: dict[str, np.ndarray], leak: str) -> None:
    """The same count over a leaking view is far from zero."""
    assert changes[leak].sum() > 1_000


def test_opponent_hands_are_dealt_anew_nearly_always(changes: dict[str, np.ndarray]) -> None:
    """The test deals other cards, to the opponent to act as well as to the one who waits."""
    assert np.all(changes["the opponent's hand"] > 0.98 * changes["decisions"])


@functools.partial(jax.jit, static_argnums=0)
def _views(game: Game, decks: Array, actions: Array) -> tuple[Any, Array]:
    """Replays actions int32[T, N] and returns both players' views and the legal actions before each: [T, N, ...]."""

    def body(states: Any, now: Array) -> tuple:
        seen = jax.vmap(lambda state: jax.vmap(lambda seat: game.view(state, seat))(side_by_side.SEATS))(states)
        legal = jax.vmap(game.legal_actions)(states)
        return jax.vmap(game.step)(states, now)[0], (seen, legal)

    return lax.scan(body, jax.vmap(game.from_deck)(decks), actions)[1]


def test_a_whole_hand_on_another_deck_looks_the_same(game: Game) -> None:
    """The same public actions played on two decks: up to a random decision one player sees the same.

    The opponent holds, was dealt and has drawn other cards; views and legal actions agree to the bit.
    """
    rng = random.Random(51)
    decks, actions = side_by_side.sample(slow_gin.Rules(), 1_024, seed=52)
    observers = np.arange(1_024) % 2
    until = np.array([rng.randrange(len(hand)) for hand in actions])
    others = [
        gin_redeal.other_deck(deck.tolist(), hand, stop, seat, rng)
        for deck, hand, stop, seat in zip(decks, actions, until, observers.tolist(), strict=True)
    ]
    padded = np.array([(hand + [0] * game.max_length)[: game.max_length] for hand in actions], np.int32).T
    seen, legal = jax.device_get(_views(game, np.concatenate([decks, others]), np.tile(padded, 2)))
    first, second = np.split(np.arange(2_048), 2)
    within = np.arange(game.max_length)[:, None] <= until
    for name, field in seen._asdict().items():
        own = field[:, np.arange(2_048), np.tile(observers, 2)]
        differs = (own[:, first] != own[:, second]).reshape(*within.shape, -1).any(axis=2)
        assert not np.any(differs & within), name
    acts = seen.to_act[:, first, observers]
    assert not np.any((legal[:, first] != legal[:, second]).any(axis=2) & acts & within)
    theirs = seen.hand[:, np.arange(2_048), np.tile(1 - observers, 2)]
    differs = (theirs[:, first] != theirs[:, second]).any(axis=2)
    assert np.mean(differs[within]) > 0.95
