"""Recorded games as decisions: against the same games played by hand."""

from __future__ import annotations

import numpy as np
import pytest

import envs
from dream.rollout.recorded import decisions, own_returns
from envs import InputError, records


def test_own_returns_end_with_the_game() -> None:
    """Two games in one stream, players 0 1 0 | 1 0: what each earns from its decision on, later games aside."""
    rewards = np.array([[1, -1], [2, -2], [4, -4], [8, -8], [16, -16]], np.float32)
    dones, players = np.array([0, 0, 1, 0, 1], bool), np.array([0, 1, 0, 1, 0])
    np.testing.assert_array_equal(own_returns(rewards, dones, players), [7, -6, 4, -24, 16])


def _kuhn() -> tuple[envs.Game, list[records.Record]]:
    game = envs.make("kuhn_poker")
    first = records.record(game, [2, 0, 1], [1, 1], ("anna", "otto"))
    return game, [first, records.record(game, [0, 1, 2], [0, 1, 0], ("otto", "anna"))]


def test_decisions_are_those_of_the_game() -> None:
    """Views, legal actions, actions and returns are what stepping through the game gives, in order."""
    game, both = _kuhn()
    rows, numbers = decisions(game, both)
    np.testing.assert_array_equal(numbers, [0, 0, 1, 1, 1])
    np.testing.assert_array_equal(rows.action, [1, 1, 0, 1, 0])
    n = 0
    for one in both:
        state, points = game.from_deal(one.deal), one.result["points"]
        for action in one.actions:
            player = int(state.current_player)
            seen = game.encode(game.view(state, player))
            np.testing.assert_array_equal(game.encode(type(rows.view)(*(x[n] for x in rows.view))), seen)
            np.testing.assert_array_equal(np.unpackbits(rows.legal[n], count=2), game.legal_actions(state))
            assert rows.returns[n] * game.reward_scale == pytest.approx(points[player])
            state, n = game.step(state, action)[0], n + 1


def test_some_players_decisions_alone() -> None:
    """Anna sits first in one game and second in the other."""
    game, both = _kuhn()
    rows, numbers = decisions(game, both, ("anna",))
    np.testing.assert_array_equal(numbers, [0, 1])
    np.testing.assert_array_equal(rows.action, [1, 1])


def test_a_wrong_record_is_named() -> None:
    """One whose result is not what its game gives."""
    game, (one, _) = _kuhn()
    with pytest.raises(InputError, match="record: result points"):
        decisions(game, [records.Record(**{**vars(one), "result": {"points": [1.0, -1.0]}})])
