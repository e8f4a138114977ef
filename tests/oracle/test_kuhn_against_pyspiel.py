"""Kuhn poker in lockstep with OpenSpiel's on every history, one state at a time."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np
import pyspiel
import pytest
import tree_walk

import envs

GAME = envs.make("kuhn_poker")


@dataclasses.dataclass(frozen=True)
class History:
    """One history: our state and OpenSpiel's, what reached it and what the player to act may do.

    Attributes:
      chance: probability of the deal in our game.
      reach: probability under uniform play.
    """

    state: Any
    spiel: Any
    chance: float
    reach: float
    rewards: np.ndarray
    done: bool
    legal: list[int]


@pytest.fixture(scope="module")
def histories() -> list[History]:
    """All histories but those where chance acts."""
    legal_actions, outcomes = jax.jit(GAME.legal_actions), jax.jit(GAME.outcomes)
    found = []

    def walk(state: Any, spiel: Any, chance: float, reach: float, rewards: np.ndarray, done: bool) -> None:
        legal = np.flatnonzero(legal_actions(state)).tolist()
        found.append(History(state, spiel, chance, reach, rewards, done, legal))
        for action in legal:
            states, probs, rewards, done = jax.device_get(outcomes(state, action))
            assert probs.tolist() == [1]
            after = jax.tree.map(lambda x: x[0], states)
            walk(after, spiel.child(action), chance, reach / len(legal), rewards[0], bool(done[0]))

    deals, probs = jax.device_get(GAME.initial_outcomes())
    for n, prob in enumerate(probs.tolist()):
        deal = jax.tree.map(lambda x, n=n: x[n], deals)
        spiel = pyspiel.load_game("kuhn_poker").new_initial_state()
        for card in deal.hands.tolist():
            spiel.apply_action(card)
        walk(deal, spiel, prob, prob, np.zeros(2), False)
    return found


def test_counts(histories: list[History]) -> None:
    """54 histories where a player acts or the hand is over (58 with the 4 of the deal), 30 of them over; 12 sets."""
    assert len(histories) == 54
    assert sum(history.done for history in histories) == 30
    before_deals = {tuple(history.spiel.history()[:n]) for history in histories for n in (0, 1)}
    assert len(histories) + len(before_deals) == 58
    assert len({_key(history, int(history.state.current_player)) for history in histories if not history.done}) == 12


def test_player_legal_actions_and_returns(histories: list[History]) -> None:
    """Equal on every history; rewards come with the last action alone."""
    for history in histories:
        spiel = history.spiel
        assert history.done == spiel.is_terminal()
        assert int(history.state.current_player) == (-1 if spiel.is_terminal() else spiel.current_player())
        assert history.legal == spiel.legal_actions()
        assert history.rewards.tolist() == spiel.returns()


def test_the_deal(histories: list[History]) -> None:
    """Every deal has OpenSpiel's probability."""
    for history in histories:
        spiel, chance = pyspiel.load_game("kuhn_poker").new_initial_state(), 1.0
        for card in history.spiel.history()[:2]:
            chance *= dict(spiel.chance_outcomes())[card]
            spiel.apply_action(card)
        assert history.chance == pytest.approx(chance, abs=1e-7)
    assert sum(history.reach for history in histories if history.done) == pytest.approx(1, abs=1e-6)


def test_observation_is_the_information_state_tensor(histories: list[History]) -> None:
    """Of both players, on every history."""
    observe = jax.jit(GAME.observe)
    for history in histories:
        for seat in range(2):
            np.testing.assert_array_equal(observe(history.state, seat), history.spiel.information_state_tensor(seat))


def _key(history: History, seat: int) -> bytes:
    return b"".join(np.asarray(x).tobytes() for x in GAME.view(history.state, seat))


def test_a_view_is_an_information_set(histories: list[History]) -> None:
    """A player's views are equal exactly where OpenSpiel's information-state strings are, whoever is to act."""
    in_play = [history for history in histories if not history.done]
    for seat in range(2):
        pairs = {(_key(history, seat), history.spiel.information_state_string(seat)) for history in in_play}
        assert len(pairs) == len({key for key, _ in pairs}) == len({text for _, text in pairs})


def test_a_deck_deals_its_first_two_cards(histories: list[History]) -> None:
    """from_deck makes the states initial_outcomes lists."""
    for history in histories:
        cards = history.spiel.history()
        if len(cards) == 2:
            dealt = GAME.from_deck(np.array([*cards, 3 - sum(cards)]))
            jax.tree.map(np.testing.assert_array_equal, dealt, history.state)


def test_random_play_returns_what_the_tree_says(histories: list[History]) -> None:
    """From random deals: the mean and the rate of every result within four standard errors of the exact ones."""
    over = [history for history in histories if history.done]
    rewards, reach = np.array([(history.rewards[0], history.reach) for history in over]).T
    tree_walk.assert_random_play_has(GAME, tree_walk.result_rates(rewards, reach), seed=70)
