"""A pairing's result says the same from both sides."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dream.evaluation.standings import Result
from dream.evaluation.statistics import Z95
from envs import MatchRules
from envs.match_rules import DEALERS


@pytest.mark.parametrize("dealer", DEALERS)
def test_the_two_sides_of_a_pairing_agree(dealer: str) -> None:
    """One of the two wins each game, whoever deals; who acts first wins most rounds here, and small ones."""
    points = np.random.default_rng(0).choice([-30.0, 10.0, 0.0, 20.0], (40, 2), p=[0.2, 0.5, 0.1, 0.2])
    points[:, 1] *= -1  # of the player who acts second
    points[:, 1] += np.where(points[:, 1] > 0, 10, 0)
    one = Result(points, MatchRules(dealer=dealer))
    two = one.other_side()
    assert one.games.win + two.games.win == pytest.approx(1)
    assert one.games.rounds == pytest.approx(two.games.rounds)
    assert one.games.variance == pytest.approx(two.games.variance)
    np.testing.assert_array_equal(two.other_side().points, points)
    sides = one.report(), two.report()
    assert sides[0]["win_rate"] == sides[1]["loss_rate"]
    assert sides[0]["points_per_hand"].mean == pytest.approx(-sides[1]["points_per_hand"].mean)


@pytest.mark.parametrize("lost", [0.0, 0.002])
def test_nearly_all_games_won_count_as_many_from_both_sides(lost: float) -> None:
    """What sums of chances round to is neither a spread nor a variance, and no chance beyond 0 and 1."""
    rng = np.random.default_rng(0)
    points = np.where(rng.random((500, 2)) < lost, -rng.integers(1, 9, (500, 2)), rng.integers(1, 40, (500, 2)))
    for target in (25, 100, 500):
        one = Result(points.astype(float), MatchRules(target=target, dealer="winner"))
        two = one.other_side()
        for score in (one.by_games, two.by_games):
            assert 0 <= score.share <= 1
            assert score.games == len(points)
            assert score.trials == pytest.approx(score.games, rel=0.01)
        assert one.by_games.share + two.by_games.share == pytest.approx(1)
        assert one.report()["game_win_rate"].low > 0.992
        if not lost:
            assert (one.by_games.share, two.by_games.share) == (1, 0)


def test_a_lost_round_raises_nothing() -> None:
    """400 rounds won against 399: share, weight and the bounds of the interval are no higher with the lost one."""
    points = np.full((200, 2), 30.0)
    results = [Result(points.copy(), MatchRules(target=100)), Result(points, MatchRules(target=100))]
    results[1].points[0, 0] = -30.0
    won, lost = (result.by_games for result in results)
    assert lost.share < won.share
    assert lost.games <= won.games
    intervals = [result.report()["game_win_rate"] for result in results]
    assert intervals[1].low < intervals[0].low
    assert intervals[1].high <= intervals[0].high


@pytest.mark.parametrize(("deals", "most"), [(3, 1.0), (20, 0.98)])
def test_intervals_of_games_cover_the_truth(deals: int, most: float) -> None:
    """Two equal players: the interval of games won holds one half about 95 % of the time, with few deals more often."""
    rng, found = np.random.default_rng(0), []
    for _ in range(100):
        points = np.round(8 * rng.normal(size=(deals, 2)))
        found.append(Result(points, MatchRules(target=25)).report()["game_win_rate"])
    means, lows, highs = np.array(found).T
    assert 0.9 < np.mean((lows <= 0.5) & (highs >= 0.5)) <= most
    if deals == 20:  # fewer than that leave no more room between 0 and 1
        assert 0.7 < np.mean(highs - lows) / (2 * Z95 * means.std(ddof=1)) < 1.2


def _mostly_tied(rng: np.random.Generator, deals: int, scored: float) -> np.ndarray:
    """Returns points of equal players, float[deals, 2]: most tied, the others won by one of them in both seats."""
    paid = np.where(rng.random(deals) < scored, rng.choice([-30.0, 30.0], deals), 0.0)
    return np.stack([paid, paid], axis=1)


@pytest.mark.parametrize("quantity", ["win_rate_excluding_ties", "game_win_rate"])
def test_deals_that_are_tied_are_no_sample(quantity: str) -> None:
    """Of 200 deals some four are scored: as many as these are the trials, whose variance is an estimate from four."""
    rng, held, widths = np.random.default_rng(0), [], []
    for _ in range(400):
        points = _mostly_tied(rng, 200, 0.02)
        found = Result(points, MatchRules(target=20)).report()[quantity]
        if found is not None:
            held.append(found.low <= 0.5 <= found.high)
            widths.append(found.high - found.low)
    assert np.mean(held) > 0.94
    assert np.mean(widths) < 0.9


def test_ties_change_no_trials() -> None:
    """Three deals won, or two and one lost, count the same with 497 tied ones and without."""
    for last in (20.0, -20.0):
        points = np.array([[20.0, 20.0], [20.0, 20.0], [last, last]])
        few, many = (Result(x, MatchRules(target=25)) for x in (points, np.pad(points, ((0, 497), (0, 0)))))
        for one, two in ((many.by_games, few.by_games), (many.by_rounds, few.by_rounds)):
            assert dataclasses.astuple(one) == pytest.approx(dataclasses.astuple(two))
