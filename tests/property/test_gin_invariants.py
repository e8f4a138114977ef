"""What holds at every step of every hand of `gin_rummy`, over more than a hundred thousand hands."""

from __future__ import annotations

import dataclasses

import gin_actors
import gin_sweep
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs import cards, gin_rummy
from envs.game import Game

IN_PLAY, DRAW, KNOCK, GIN, UNDERCUT = range(5)
DISCARD_PHASE = 4


def _sweep(game: Game, actor: gin_actors.Actor, seed: int, num_hands: int, turns: bool = False) -> gin_sweep.Sweep:
    return jax.device_get(gin_sweep.sweep(game, actor, jax.random.key(seed), num_hands, turns))


@pytest.fixture(scope="module")
def greedy(game: Game) -> gin_sweep.Sweep:
    """24,576 hands of two greedy players, turns recorded."""
    return _sweep(game, gin_actors.greedy, 41, 24_576, turns=True)


def test_the_check_of_card_places_can_fail(game: Game) -> None:
    """A card doubled, lost, swapped unseen in the pile's mask or drawn without leaving the stock is noticed."""
    state = game.from_deck(np.arange(52))
    board = state.table
    tampered = [
        {"hands": board.hands.at[0, 0].set(board.hands[0, 0] ^ 1)},
        {"hands": board.hands.at[1, 3].set(1)},
        {"deck": board.deck.at[51].set(0)},
        {"drawn": board.drawn + 1},
        {"pile": board.pile.at[0].set(51)},
        {"pile_cards": board.pile_cards ^ 1},
    ]
    check = jax.jit(lambda state: gin_sweep.each_card_has_one_place(game, state))
    assert check(state)
    for changes in tampered:
        assert not check(dataclasses.replace(state, table=dataclasses.replace(board, **changes)))


def test_random_hands_break_no_invariant(game: Game) -> None:
    """102,400 hands of random players; in half of them nobody takes from the pile, so that the stock runs out."""
    found = _sweep(game, gin_actors.at_random, 40, 102_400)
    assert {name: int(n) for name, n in found.breaches.items() if n} == {}
    assert found.endings.sum() == 102_400
    assert found.endings[IN_PLAY] == 0
    assert np.all(found.endings[[DRAW, KNOCK]] > 100)
    assert 40_000 < found.stock_out < 60_000
    assert found.decisions > 102_400 * 50


def test_greedy_hands_break_no_invariant(greedy: gin_sweep.Sweep) -> None:
    """Most hands of greedy players end in a knock, and every kind of knock occurs."""
    assert {name: int(n) for name, n in greedy.breaches.items() if n} == {}
    assert greedy.endings.sum() == 24_576
    assert greedy.endings[IN_PLAY] == 0
    assert np.all(greedy.endings[[KNOCK, GIN, UNDERCUT]] > 100)
    assert greedy.endings[DRAW] < 1_000


def test_knock_is_legal_exactly_where_ten_cards_keep_at_most_the_limit(game: Game, greedy: gin_sweep.Sweep) -> None:
    """At every second discard of the greedy hands: deadwood of the ten other cards, for each card but the one taken."""
    acts = greedy.turns.phase == DISCARD_PHASE
    suits, taken, packed = (x[acts][::2] for x in (greedy.turns.hand, greedy.turns.taken, greedy.turns.legal))
    legal = np.unpackbits(packed, axis=1)[:, 3:107].astype(bool)
    hands = np.asarray(jax.jit(jax.vmap(cards.to_cards))(suits))
    assert len(hands) > 100_000
    assert np.all(hands.sum(axis=1) == 11)
    held = np.argwhere(hands)[:, 1].reshape(-1, 11)
    after = np.asarray(_deadwoods(hands, held))
    allowed = held != taken[:, None]
    rows = np.arange(len(hands))[:, None]
    np.testing.assert_array_equal(legal[rows, held], allowed)
    np.testing.assert_array_equal(legal[rows, held + 52], allowed & (after <= game.rules.knock_limit))
    assert legal.sum() == allowed.sum() + (allowed & (after <= game.rules.knock_limit)).sum()
    assert np.any(~allowed & (after <= game.rules.knock_limit))
    assert np.any(after == 0)


@jax.jit
def _deadwoods(hands: jax.Array, held: jax.Array) -> jax.Array:
    """Returns the deadwood of the ten cards left by each of the eleven discards: int32[N, 11]."""

    def without(hand: jax.Array, card: jax.Array) -> jax.Array:
        return gin_rummy.deadwood(hand & (jnp.arange(52) != card))

    return jax.vmap(jax.vmap(without, (None, 0)))(hands, held)
