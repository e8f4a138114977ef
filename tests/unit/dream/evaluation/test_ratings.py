"""Bradley-Terry ratings: known solutions, coverage of the intervals, and players that win everything."""

from __future__ import annotations

import numpy as np
import pytest

from dream.evaluation.ratings import SCALE, bradley_terry


def _tables(strength: np.ndarray, hands: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns exactly expected scores, and hands, of a round robin."""
    chance = 1 / (1 + np.exp(strength[None] - strength[:, None]))
    games = hands * (1 - np.eye(len(strength)))
    return chance * games, games


def test_expected_scores_give_the_strengths_back() -> None:
    """Four players: the ratings are the strengths they were made from, less their mean."""
    strength = np.array([1.2, 0.3, -0.4, -2.0])
    score, games = _tables(strength, 1000.0)
    fit = bradley_terry(score, games, games, draws=0.0)
    np.testing.assert_allclose(fit.rating, SCALE * (strength - strength.mean()), atol=1e-6)
    assert np.all((fit.low < fit.rating) & (fit.rating < fit.high))
    assert set(fit.level) == {0}


def test_two_players_by_hand() -> None:
    """75 of 100 hands: log odds of 3, half of it for each; standard error sqrt(1 / (n p q)) / 2, too."""
    score = np.array([[0.0, 75.0], [25.0, 0.0]])
    games = np.array([[0.0, 100.0], [100.0, 0.0]])
    fit = bradley_terry(score, games, games, draws=0.0)
    np.testing.assert_allclose(fit.rating, SCALE * np.log(3) / 2 * np.array([1, -1]), rtol=1e-9)
    half = 1.959964 * SCALE * np.sqrt(1 / (100 * 0.75 * 0.25)) / 2
    np.testing.assert_allclose(fit.high - fit.rating, half, rtol=1e-6)
    twice = bradley_terry(score, games, games / 4, draws=0.0)
    np.testing.assert_allclose(twice.high - twice.rating, 2 * half, rtol=1e-6)


def test_intervals_cover_the_truth() -> None:
    """Of 400 tournaments drawn from known strengths, about 95 % of the intervals hold the true rating."""
    rng = np.random.default_rng(3)
    strength = np.array([0.8, 0.1, -0.2, -0.7])
    expected, games = _tables(strength, 200.0)
    held = []
    for _ in range(400):
        wins = np.triu(rng.binomial(200, expected / 200), 1).astype(float)
        score = wins + np.tril(200 - wins.T, -1)
        fit = bradley_terry(score, games, games, draws=0.0)
        true = SCALE * (strength - strength.mean())
        held.append((fit.low <= true) & (true <= fit.high))
    assert 0.93 < np.mean(held) < 0.97


def test_a_player_that_wins_everything_stays_finite_and_is_told() -> None:
    """One above all, two that share, one below all: finite, in that order, on three levels."""
    games = 100.0 * (1 - np.eye(4))
    score = np.array([[0, 100, 100, 100], [0, 0, 60, 100], [0, 40, 0, 100], [0, 0, 0, 0]], float)
    fit = bradley_terry(score, games, games)
    assert np.all(np.isfinite(np.concatenate([fit.rating, fit.low, fit.high])))
    assert np.all(np.diff(fit.rating) < 0)
    assert fit.level.tolist() == [0, 1, 1, 2]
    assert fit.rating[0] - fit.rating[1] > 400


def test_the_order_of_the_players_does_not_matter() -> None:
    """Ratings belong to players, not to their place in the list."""
    strength = np.array([0.5, -1.0, 0.2])
    score, games = _tables(strength, 50.0)
    order = [2, 0, 1]
    fit, other = bradley_terry(score, games, games), bradley_terry(score[order][:, order], games, games)
    np.testing.assert_allclose(fit.rating[order], other.rating, atol=1e-7)


def test_players_that_never_met_are_refused() -> None:
    """Two pairs without a hand between them."""
    games = np.kron(np.eye(2), 10 * (1 - np.eye(2)))
    with pytest.raises(ValueError, match="never met"):
        bradley_terry(games / 2, games, games)
