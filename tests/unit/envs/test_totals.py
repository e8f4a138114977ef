"""Sums of rewards: what differs by rounding alone is the same, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest
from dream_support import CoinGame

import envs
from envs.totals import settled


def test_what_differs_by_rounding_is_the_same() -> None:
    """0.1 + 0.6 and 0.7, and 0.1 + 0.6 - 0.7 and 0, also of large rewards."""
    one, two = np.float32(0.1) + np.float32(0.6), np.float32(0.7)
    assert one != two
    for size in (1.0, 1e4):
        equal = np.array(settled(CoinGame(), np.float32(size) * np.array([one, two, -1.4], np.float32)))
        assert equal[0] == equal[1] < size * 0.71
        sums = np.float32(size) * np.array([[1.0, one - two, -1.0]], np.float32)
        assert np.array(settled(CoinGame(), sums))[0, 1] == 0


def test_other_sums_stay_as_they_are() -> None:
    """To the bit; and those of a game that pays at its end alone whatever they are."""
    sums = np.array([[0.3, 0.2999, -0.5999], [1e-3, -1e-3, 0.0], [5.0, -5.0, 0.0]], np.float32)
    np.testing.assert_array_equal(settled(CoinGame(), sums), sums)
    tiny = np.array([1e-9, -1e-9], np.float32)
    np.testing.assert_array_equal(settled(envs.make("kuhn_poker"), tiny), tiny)


def test_what_is_no_number_is_not_hidden() -> None:
    """A match refuses such rewards by their sums."""
    for wrong in (np.nan, np.inf, -np.inf):
        assert not np.isfinite(settled(CoinGame(), np.array([wrong, 0.0], np.float32))).all()


class _Named(CoinGame):
    """The coin game with payments as its class says."""


def test_the_size_of_payments_is_a_games_own_or_its_worst_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    """A game that does not know its worst reward has payments of about 1."""
    sums = np.array([3e-5, 0.0], np.float32)
    for worst, payment, is_tie in ((None, None, False), (-10.0, None, True), (-10.0, 0.5, False)):
        monkeypatch.setattr(_Named, "worst_reward", worst, raising=False)
        if payment is not None:
            monkeypatch.setattr(_Named, "largest_payment", payment)
        first, second = np.asarray(settled(_Named(), sums))
        assert (first == second) == is_tie


def test_long_matches_keep_their_smallest_results() -> None:
    """A fifth of a point among six players, however many rounds a match may have."""
    game = envs.make("rummy500", num_players=6, target=500, max_rounds=200)
    points = np.array([128.2, -0.2, 115, 115, 115, -473], np.float32)
    np.testing.assert_array_equal(settled(game, points / game.reward_scale), points / np.float32(game.reward_scale))
