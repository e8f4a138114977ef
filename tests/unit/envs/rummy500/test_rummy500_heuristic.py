"""The player of rummy 500 that weighs unfinished melds: its numbers by hand, and what follows from them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs import InputError, cards
from envs.rummy500 import actions
from envs.rummy500.heuristic import _keeping

GAME = envs.make("rummy500", num_players=2, random_first=False)


def _ids(names: str) -> list[int]:
    return [cards.card_id(name) for name in names.split()]


def _dealt(own: str, other: str, upcard: str, stock: str) -> object:
    first = [*_ids(own), *_ids(other), *_ids(upcard), *_ids(stock)]
    return GAME.from_deck(np.array([*first, *sorted(set(range(52)) - set(first))]))


def test_worth_of_cards_by_hand() -> None:
    """Of 7S, 7H and KD where every other card comes with probability 1/2.

    7S: with 7H a set through 7D or 7C, 1/2 * 21 points each; what misses two cards, 1/4 each: 7S 7D 7C of 21 points,
    and the runs 5-6-7, 6-7-8 and 7-8-9 of 18, 21 and 24.
    """
    held = np.zeros(52, bool)
    held[_ids("7S 7H KD")] = True
    worth = np.asarray(_keeping(jnp.asarray(held)[None], jnp.where(held, 1.0, 0.5))[0])
    assert worth[_ids("7S")[0]] == pytest.approx(21 + (21 + 18 + 21 + 24) / 4, rel=1e-4)
    assert worth[_ids("KD")[0]] == pytest.approx((3 * 30 + 35 + 30) / 4, rel=1e-4)
    assert np.all(worth[~held] == 0)


def test_it_sheds_what_fits_least_and_takes_what_completes_a_meld() -> None:
    """A lone two goes before pairs; the upcard is taken where it makes a set, and left where it cannot be played."""
    play = jax.jit(lambda state: envs.make_bot("heuristic", GAME)(GAME.view(state, 0), GAME.legal_actions(state)))
    sets = _dealt("5S 5H KD KC 2H 2C 9D", "3S 4H 6D 7C 8S TH QD", "5D", "JS")
    assert play(sets)[actions.TAKE + cards.card_id("5D")] == 1
    lone = _dealt("9S 9H KD KC 8H 8C 2D", "3S 4H 6D 7C AS TH QD", "TC", "4S")
    chances = play(lone)
    assert chances[actions.STOCK] == 1
    drawn = GAME.step(lone, jnp.int32(actions.STOCK))[0]
    assert play(drawn)[actions.DISCARD + cards.card_id("2D")] == 1


def test_unknown_weights_are_refused() -> None:
    """By name; others are its parameters."""
    with pytest.raises(InputError, match="boldness"):
        envs.make_bot("heuristic", GAME, boldness=1.0)
    assert envs.make_bot("heuristic", GAME, keep=2.0).params.keep == 2.0


@pytest.mark.parametrize("weights", [{"unseen": 0.0}, {"piled": 0.0}, {"unseen": 0, "piled": 0}])
def test_cards_that_never_come_leave_a_policy(weights: dict[str, float]) -> None:
    """A chance of 0 leaves probabilities that sum to 1 on legal actions."""
    state = GAME.init(jax.random.key(3))
    for _ in range(6):
        legal = np.asarray(GAME.legal_actions(state))
        chances = np.asarray(envs.make_bot("heuristic", GAME, **weights)(GAME.view(state, state.current_player), legal))
        assert chances[legal].sum() == pytest.approx(1)
        state = GAME.step(state, jnp.int32(chances.argmax()))[0]


@pytest.mark.parametrize("weights", [{"unseen": -0.1}, {"piled": 1.5}, {"keep": float("nan")}, {"risk": "high"}])
def test_weights_out_of_range_are_refused(weights: dict[str, float]) -> None:
    """By name: chances are 0 to 1, all are finite numbers."""
    with pytest.raises(InputError, match=f"{next(iter(weights))}=.* is not valid; it must be a finite number"):
        envs.make_bot("heuristic", GAME, **weights)
