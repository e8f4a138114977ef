"""Bradley-Terry ratings: known solutions, coverage of the intervals, and players that win everything."""

from __future__ import annotations

import numpy as np
import pytest

from dream.evaluation.ratings import SCALE, bradley_terry, point_ratings


def _tables(strength: np.ndarray, hands: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns exactly expected scores, and hands, of a round robin."""
    chance = 1 / (1 + np.exp(strength[None] - strength[:, None]))
    games = hands * (1 - np.eye(len(strength)))
    return chance * games, games


def test_expected_scores_give_the_strengths_back() -> None:
    """Four players: the ratings are the strengths they were made from, less their mean."""
    strength = np.array([1.2, 0.3, -0.4, -2.0])
    score, games = _tables(strength, 1000.0)
    fit = bradley_terry(score, games, games, ties=0.0)
    np.testing.assert_allclose(fit.rating, SCALE * (strength - strength.mean()), atol=1e-6)
    assert np.all((fit.low < fit.rating) & (fit.rating < fit.high))
    assert set(fit.level) == {0}


def test_two_players_by_hand() -> None:
    """75 of 100 hands: log odds of 3, half of it for each; standard error sqrt(1 / (n p q)) / 2, too."""
    score = np.array([[0.0, 75.0], [25.0, 0.0]])
    games = np.array([[0.0, 100.0], [100.0, 0.0]])
    fit = bradley_terry(score, games, games, ties=0.0)
    np.testing.assert_allclose(fit.rating, SCALE * np.log(3) / 2 * np.array([1, -1]), rtol=1e-9)
    half = 1.959964 * SCALE * np.sqrt(1 / (100 * 0.75 * 0.25)) / 2
    np.testing.assert_allclose(fit.high - fit.rating, half, rtol=1e-6)
    twice = bradley_terry(score, games, games / 4, ties=0.0)
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
        fit = bradley_terry(score, games, games, ties=0.0)
        true = SCALE * (strength - strength.mean())
        held.append((fit.low <= true) & (true <= fit.high))
    assert 0.93 < np.mean(held) < 0.97


def test_intervals_of_players_that_win_in_a_circle() -> None:
    """Each wins 90 % against one other: equal by the model, whose p (1 - p) is 0.25 where a share varies by 0.09.

    Of three players a rating is a third of the sum of two pairings' log odds, whose slope is 4 at p = 1/2.
    """
    games = 200.0 * (1 - np.eye(3))
    wins = np.array([[0.0, 0.9, 0.1], [0.1, 0.0, 0.9], [0.9, 0.1, 0.0]])
    fit = bradley_terry(games * wins, games, games, ties=0.0)
    half = 1.959964 * SCALE * np.sqrt(2 * 0.09 / 200) * 4 / 3
    np.testing.assert_allclose(fit.high - fit.rating, half, rtol=1e-6)
    rng, drawn = np.random.default_rng(5), []
    for _ in range(400):
        upper = np.triu(rng.binomial(200, wins), 1).astype(float)
        drawn.append(bradley_terry(upper + np.tril(200 - upper.T, -1), games, games, ties=0.0).rating)
    assert 1.959964 * np.std(drawn) == pytest.approx(half, rel=0.1)


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


def _deals(rng: np.random.Generator, means: np.ndarray, deals: int, spread: float) -> dict[tuple[int, int], np.ndarray]:
    """Returns points per hand of each pairing, of expectation r_i - r_j."""
    players = len(means)
    pairs = [(i, j) for i in range(players) for j in range(i + 1, players)]
    return {(i, j): means[i] - means[j] + spread * rng.normal(size=deals) for i, j in pairs}


def test_points_without_noise_give_the_ratings_back() -> None:
    """Least squares is exact there, and the interval has no width; the mean is 0."""
    truth = np.array([3.0, 1.0, 0.5, -4.5])
    fit = point_ratings(_deals(np.random.default_rng(0), truth, 10, 0.0), 4)
    for found in fit:
        np.testing.assert_allclose(found, truth, atol=1e-12)


def test_points_by_hand() -> None:
    """Three players in a circle of equal points are alike; with unlike ones the rating is the mean against all."""
    circle = {(0, 1): np.full(4, 2.0), (1, 2): np.full(4, 2.0), (0, 2): np.full(4, -2.0)}
    np.testing.assert_allclose(point_ratings(circle, 3).rating, 0, atol=1e-12)
    unlike = {(0, 1): np.array([1.0, 5.0]), (1, 2): np.array([2.0, 2.0]), (0, 2): np.array([-1.0, 1.0])}
    np.testing.assert_allclose(point_ratings(unlike, 3).rating, np.array([3 + 0, 2 - 3, 0 - 2]) / 3, atol=1e-12)


def test_few_hands_won_and_many_points() -> None:
    """Wins one hand of four and ten points in it, loses one point in the others: last by hands, first by points."""
    points = {(0, 1): np.tile([10.0, -1.0, -1.0, -1.0], 50), (0, 2): np.tile([10.0, -1.0, -1.0, -1.0], 50)}
    points[1, 2] = np.tile([1.0, -1.0], 100)
    score = np.array([[0, 50, 50], [150, 0, 100], [150, 100, 0]], float)
    games = 200 * (1 - np.eye(3))
    assert np.argmin(bradley_terry(score, games, games).rating) == 0
    assert np.argmax(point_ratings(points, 3).rating) == 0


@pytest.mark.parametrize("deals", [2, 4, 10, 60])
@pytest.mark.parametrize("players", [2, 3, 6])
def test_intervals_of_points_cover_the_truth(players: int, deals: int) -> None:
    """Of 400 tournaments of known ratings, about 95 % of the intervals hold the true one, with few deals as with many.

    With two deals a little more: degrees of freedom are estimated too.
    """
    rng = np.random.default_rng(5)
    truth = np.linspace(1.0, -1.0, players)
    held = []
    for _ in range(400):
        fit = point_ratings(_deals(rng, truth, deals, 4.0), players)
        held.append((fit.low <= truth) & (truth <= fit.high))
    assert 0.92 < np.mean(held) < (0.995 if deals == 2 else 0.98)


def test_points_of_players_that_never_met_are_refused() -> None:
    """As for the other rating."""
    with pytest.raises(ValueError, match="never met"):
        point_ratings({(0, 1): np.ones(3), (2, 3): np.ones(3)}, 4)
