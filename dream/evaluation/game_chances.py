"""The chance to win a game to a target from the rounds two players have played, every order of them counted.

Given how the points of a round are distributed, with q_f(x) the chance that a round that is not tied pays the policy x
where it acts first (f = 0) or second (f = 1), the chance V to win from scores a and b is

    V(a, b, f) = sum over x > 0 of q_f(x) V(a + x, b, f') + sum over x < 0 of q_f(x) V(a, b - x, f'),

f' by the dealer rule, 1 where a has reached the target and 0 where b has; boxes that count are added to x. The chance
reported is the mean of V(0, 0, 0) and V(0, 0, 1) with the rounds' empirical distribution. A tied round is dealt again
and changes nothing but the number of rounds.

Its variance is that of the influence of a deal: with N(a, b, f) the expected number of scored rounds that begin at
(a, b, f), a deal that pays x_f in the two seats moves the chance, to first order, by the sum over f of

    1 / (n (1 - p_f(0))) sum over (a, b) of N(a, b, f) (V after x_f - V(a, b, f)).

A deal that is tied in both seats has influence 0 and is not counted as a sample.

It uses every round, where games composed of them one after the other leave the last ones unfinished; games.py plays
such games one by one.

A player that knows the score may choose before each round which of several policies plays it. With each policy's own
q, V of the best choice is the maximum over policies of the sum above (`best_by_score`).
Source: the influence function as in Hampel 1974; V and N by dynamic programming over scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dream.evaluation.games import whole_points
from envs import InputError, MatchRules


class GameChance(NamedTuple):
    """What games would come to.

    Attributes:
      win: the chance to win one, seats even.
      variance: of `win`, from the deals it was estimated from.
      rounds: expected in a game, tied ones included.
    """

    win: float
    variance: float
    rounds: float


class _Gains(NamedTuple):
    """How rounds that are not tied move the scores.

    Attributes:
      won, lost: float64[2, T], the chance that the policy, in each seat, gains or loses 1..T points; what is more than
        the target counts as the target.
      after_won, after_lost: who acts first then (0 the policy), for who acts first now: two pairs of ints.
      scored: float64[2], the share of rounds that are not tied.
    """

    won: np.ndarray
    lost: np.ndarray
    after_won: tuple[int, int]
    after_lost: tuple[int, int]
    scored: np.ndarray


def game_chance(points: np.ndarray, rules: MatchRules) -> GameChance | None:
    """Estimates what games to the target come to.

    Args:
      points: whole numbers [n, 2], the policy's points in each deal in seat 0 and in seat 1; n >= 2.
      rules: how rounds make a game.
    Returns:
      The GameChance; None where the rounds of a seat are all tied, and games would not end.
    Raises:
      InputError: points that are no whole numbers.
    """
    points = whole_points(np.asarray(points))
    gains = _gains(points, rules)
    if gains is None:
        return None
    value, _ = _values([gains], rules.target)
    visits = _visits(gains, rules.target)
    influence = np.zeros(len(points))
    for first in (0, 1):
        won, lost = _influence(gains, value, visits, first)
        size = np.minimum(np.abs(points[:, first]) + rules.running_box, rules.target) - 1
        by_deal = np.where(points[:, first] > 0, won[size], lost[size])
        influence += np.where(points[:, first] == 0, 0.0, by_deal) / gains.scored[first]
    rounds = sum(float(visits[first].sum()) / gains.scored[first] for first in (0, 1))
    scored = max(int(np.count_nonzero(np.any(points != 0, axis=1))), 2)
    variance = scored / (scored - 1) * float(np.sum(influence**2)) / len(points) ** 2
    # Sums of chances round: 1 or 0 exactly where no round was lost, or won, and within [0, 1].
    least, most = float(gains.lost.sum() == 0), float(gains.won.sum() > 0)
    return GameChance(min(max(float(value[:, 0, 0].mean()), least), most), variance, rounds)


def best_by_score(points: Sequence[np.ndarray], rules: MatchRules) -> np.ndarray:
    """Returns which policy plays best at each score: int64[2, T, T] by who acts first and both scores.

    Args:
      points: of each policy, one at least, as of `game_chance`.
      rules: how rounds make a game.
    Raises:
      InputError: no policy, one all of whose rounds in a seat are tied, or points that are no whole numbers.
    """
    return _values(_all_gains(points, rules), rules.target)[1]


def chance_by_score(points: Sequence[np.ndarray], rules: MatchRules, choice: np.ndarray) -> float:
    """Returns the chance to win a game where the score says which policy plays: float in [0, 1], seats even.

    Args:
      points, rules: as of `best_by_score`.
      choice: int64[2, T, T], as it returns.
    Raises:
      InputError: as it does.
    """
    value, _ = _values(_all_gains(points, rules), rules.target, choice)
    return float(value[:, 0, 0].mean())


def _all_gains(points: Sequence[np.ndarray], rules: MatchRules) -> list[_Gains]:
    found = [_gains(whole_points(np.asarray(one)), rules) for one in points]
    if not found:
        raise InputError("points=[] are of no policy; they must be of one at least")
    if any(one is None for one in found):
        raise InputError("all rounds of a seat are tied; games would not end")
    return found


def _gains(points: np.ndarray, rules: MatchRules) -> _Gains | None:
    won, lost = np.zeros((2, rules.target)), np.zeros((2, rules.target))
    scored = np.mean(points != 0, axis=0)
    if np.any(scored == 0):
        return None
    for first in (0, 1):
        for table, sign in ((won, 1), (lost, -1)):
            paid = sign * points[:, first]
            size = np.minimum(paid[paid > 0] + rules.running_box, rules.target)
            table[first] = np.bincount(size, minlength=rules.target + 1)[1:] / (scored[first] * len(points))
    after = [tuple(rules.next_first(first, winner) for first in (0, 1)) for winner in (0, 1)]
    return _Gains(won, lost, after[0], after[1], scored)


def _diagonals(target: int, *, down: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns the pairs of scores below the target by their sum, rising, or falling with `down`: int[k] twice each."""
    found = []
    for total in range(2 * target - 1):
        a = np.arange(max(0, total - target + 1), min(total, target - 1) + 1)
        found.append((a, total - a))
    return found[::-1] if down else found


def _values(gains: Sequence[_Gains], target: int, choice: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Returns V and the policy that plays.

    Args:
      gains: of each policy.
      target: the score that ends a game.
      choice: as returned; None: the best one.
    Returns:
      (float64[2, T + T, T + T] by who acts first and both scores, what is over included; int64[2, T, T], the policy).
    """
    value, best = np.zeros((2, 2 * target, 2 * target)), np.zeros((2, target, target), np.int64)
    value[:, target:, :] = 1.0
    sizes, after = np.arange(1, target + 1), gains[0]
    for a, b in _diagonals(target, down=True):
        for first in (0, 1):
            ahead = value[after.after_won[first]][a[:, None] + sizes, b[:, None]]
            behind = value[after.after_lost[first]][a[:, None], b[:, None] + sizes]
            each = np.stack([ahead @ one.won[first] + behind @ one.lost[first] for one in gains])
            best[first, a, b] = each.argmax(axis=0) if choice is None else choice[first, a, b]
            value[first, a, b] = np.take_along_axis(each, best[first, a, b][None], axis=0)[0]
    return value, best


def _visits(gains: _Gains, target: int) -> np.ndarray:
    """Returns N: float64[2, T, T]."""
    # Scores are shifted by the target, so that what would come from below 0 is read as 0.
    padded = np.zeros((2, 2 * target, 2 * target))
    padded[:, target, target] = 0.5
    sizes = np.arange(1, target + 1)
    for a, b in _diagonals(target, down=False):
        for first in (0, 1):
            if a[0] + b[0] == 0:
                continue
            arrived = np.zeros(len(a))
            for before in (0, 1):
                if gains.after_won[before] == first:
                    arrived += padded[before][target + a[:, None] - sizes, target + b[:, None]] @ gains.won[before]
                if gains.after_lost[before] == first:
                    arrived += padded[before][target + a[:, None], target + b[:, None] - sizes] @ gains.lost[before]
            padded[first, target + a, target + b] = arrived
    return padded[:, target:, target:]


def _influence(gains: _Gains, value: np.ndarray, visits: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns what gaining, and losing, 1..T points moves the chance by, summed over visits: float64[T] each."""
    target = visits.shape[1]
    here, now = visits[first], float(np.sum(visits[first] * value[first, :target, :target]))
    ahead, behind = value[gains.after_won[first]], value[gains.after_lost[first]]
    won = [float(np.sum(here * ahead[n : n + target, :target])) - now for n in range(1, target + 1)]
    lost = [float(np.sum(here * behind[:target, n : n + target])) - now for n in range(1, target + 1)]
    return np.array(won), np.array(lost)
