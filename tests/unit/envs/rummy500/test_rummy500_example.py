"""The scope document's worked example (section 2.7), card by card."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import envs
from envs.cards import card_id
from envs.rummy500 import Rummy500, actions

HANDS = ["2D 3D 4D AS 4C QH 5C", "4S 7S 8S 2H KH JC AD", "5S 5H 5D 3C 9H 6H AC"]
UPCARD, STOCK = "2C", "AH KC 2S"
RUN_D2 = actions.RUN + 12 * 2 + 1
RUN_C_ACE = actions.RUN + 12 * 3
FIVES = actions.SET + 5 * 4 + 4


def _ids(names: str) -> list[int]:
    return [card_id(name) for name in names.split()]


def _discard(name: str) -> int:
    return actions.DISCARD + card_id(name)


_step = jax.jit(Rummy500.step, static_argnums=0)
_legal = jax.jit(Rummy500.legal_actions, static_argnums=0)


class _Table:
    """A round that refuses illegal actions."""

    def __init__(self, game: Rummy500, state: Any) -> None:
        self.game, self.state = game, state

    def legal(self) -> np.ndarray:
        return np.asarray(_legal(self.game, self.state))

    def play(self, *played: int) -> dict[str, Any]:
        for action in played:
            assert self.legal()[action], actions.action_name(action)
            self.state, _, _ = _step(self.game, self.state, action)
        return self.game.to_dict(self.state)


@pytest.fixture
def table() -> _Table:
    """The deal of the example."""
    game = envs.make("rummy500", num_players=3)
    known = [card for hand in HANDS for card in _ids(hand)] + _ids(UPCARD) + _ids(STOCK)
    deck = known + [card for card in range(52) if card not in known]
    return _Table(game, game.from_deck(np.array(deck)))


def _first_turns(table: _Table) -> None:
    table.play(actions.STOCK, RUN_D2, _discard("5C"))
    table.play(actions.STOCK, _discard("8S"))


def test_every_move_is_legal_and_every_total_right(table: _Table) -> None:
    """Four turns, with the board the document describes after the third."""
    words = table.play(actions.STOCK, RUN_D2, _discard("5C"))
    assert words["points"] == [9, 0, 0]
    assert words["pile"] == ["2C", "5C"]
    assert words["hands"][0] == ["AS", "AH", "QH", "4C"]
    words = table.play(actions.STOCK, _discard("8S"))
    assert words["pile"] == ["2C", "5C", "8S"]
    assert len(words["hands"][1]) == 7
    words = table.play(actions.TAKE + card_id("2C"))
    assert words["must_play"] == "2C"
    words = table.play(RUN_C_ACE, FIVES, _discard("6H"))
    assert words["points"] == [9, 0, 26]
    assert words["pile"] == ["6H"]
    assert [len(hand) for hand in words["hands"]] == [4, 7, 2]
    assert words["melds"] == [["5S", "5H", "5D", "5C"], ["2D", "3D", "4D"], ["AC", "2C", "3C"]]
    words = table.play(actions.STOCK, actions.HIGH_END + card_id("4C"), _discard("2S"))
    assert words["points"] == [13, 0, 26]
    assert words["pile"] == ["6H", "2S"]
    assert words["hands"][0] == ["AS", "AH", "QH"]
    assert words["scores"] == [13 - 40, 0 - 58, 26 - 17]
    assert (len(words["stock"]), words["current_player"]) == (27, 1)
    on_table = sum(map(len, words["melds"]))
    assert len(words["stock"]) + len(words["pile"]) + on_table + sum(map(len, words["hands"])) == 52


def test_two_of_clubs_is_of_no_use_to_the_first_player(table: _Table) -> None:
    """With 2D it is only a pair: neither it nor, later, the 6H can be taken."""
    assert not table.legal()[actions.TAKE + card_id("2C")]
    _first_turns(table)
    table.play(actions.TAKE + card_id("2C"), RUN_C_ACE, FIVES, _discard("6H"))
    assert np.flatnonzero(table.legal()).tolist() == [actions.STOCK]


def test_the_card_taken_must_be_played_before_the_discard(table: _Table) -> None:
    """Nothing but the run with the 2C is legal until it lies."""
    _first_turns(table)
    assert np.flatnonzero(table.legal()).tolist() == [
        actions.STOCK,
        actions.TAKE + card_id("2C"),
        actions.TAKE + card_id("5C"),
    ]
    table.play(actions.TAKE + card_id("2C"))
    assert np.flatnonzero(table.legal()).tolist() == [RUN_C_ACE]
    table.play(RUN_C_ACE)
    assert table.legal()[_discard("6H")]


def test_no_run_without_the_card_left_in_the_pile(table: _Table) -> None:
    """A-2-3 of clubs cannot be laid with the 2C out of the hand."""
    _first_turns(table)
    table.play(actions.STOCK)
    assert not table.legal()[RUN_C_ACE]


def test_no_laying_off_on_a_run_not_there_yet(table: _Table) -> None:
    """The first player's 4C fits nothing in the first turn."""
    table.play(actions.STOCK, RUN_D2)
    lay_offs = [first + card_id("4C") for first in (actions.ON_SET, actions.LOW_END, actions.HIGH_END)]
    assert not table.legal()[lay_offs].any()


def test_ace_of_diamonds_may_go_low(table: _Table) -> None:
    """The second player may lay it on 2-3-4, for one point."""
    table.play(actions.STOCK, RUN_D2, _discard("5C"), actions.STOCK)
    words = table.play(actions.LOW_END + card_id("AD"))
    assert words["points"] == [9, 1, 0]


def test_the_last_three_cards_are_no_meld() -> None:
    """Two sets of three in a hand of six: either may be laid, but not both, and no meld of all cards held."""
    game = envs.make("rummy500", num_players=2, hand_size=5)
    known = _ids("5S 5H 5D 9S 9H 2C 4C 6C 8C TC KD 9D")
    table = _Table(game, game.from_deck(np.array(known + [card for card in range(52) if card not in known])))
    table.play(actions.STOCK)
    fives, nines = actions.SET + 5 * 4 + 3, actions.SET + 5 * 8 + 3
    assert np.flatnonzero(table.legal()[: actions.DISCARD]).tolist() == [fives, nines]
    table.play(fives)
    assert not table.legal()[: actions.DISCARD].any()
