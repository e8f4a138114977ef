"""Ratings from cross-play: by rounds won, the Bradley-Terry model, and by points per hand, least squares.

Player i beats player j with chance p_ij = 1 / (1 + exp(b_j - b_i)); a tied round is half a win for each. Ratings are
given as 400 b / ln 10, so that 400 points are odds of ten to one, with their mean 0.

Who wins few rounds and many points is rated low by the one and high by the other: m_ij, the points per hand of i
against j, is taken to be r_i - r_j, and least squares gives the r, with mean 0.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dream.evaluation.statistics import Z95, t95

SCALE = 400 / math.log(10)
"""Rating points of one unit of log odds."""
_STEPS = 200
_ENOUGH = 1e-10


class Ratings(NamedTuple):
    """Ratings of N players.

    Attributes:
      rating: float64[N], points, mean 0.
      low, high: float64[N], the 95 % interval of each, against the mean of all.
      level: int[N], 0 for the players that won from, or tied with, all others at least in a circle; those of a lower
        level never got a point from a higher one, so that only the added ties keep their distance finite.
    """

    rating: np.ndarray
    low: np.ndarray
    high: np.ndarray
    level: np.ndarray


def bradley_terry(score: np.ndarray, games: np.ndarray, trials: np.ndarray, ties: float = 1.0) -> Ratings:
    """Fits the model by maximum likelihood.

    Where some players never got a point from some others the likelihood has no maximum. One tied round more for every
    pairing that was played (`ties`) gives it one, and moves other ratings hardly at all. The interval is the sandwich
    H^+ V H^+ at the maximum: H the model's information, of n p (1 - p) of each pairing, V the variance of what was won,
    n^2 s (1 - s) / m of a share s won in m independent trials. Where players win in a circle, s is not the model's p.

    Args:
      score: float[N, N], wins of i against j and half the ties; score + score.T = games.
      games: float[N, N], rounds, symmetric, zero on the diagonal.
      trials: float[N, N], independent rounds of the same precision, symmetric, positive where games are.
      ties: rounds added to each pairing.
    Raises:
      ValueError: the pairings played do not connect all players.
    Source: Bradley and Terry 1952; Newton's method on a concave log likelihood; variance as in White 1982.
    """
    score, games, trials = (np.asarray(x, np.float64) for x in (score, games, trials))
    if len(set(_levels(games))) > 1:
        raise ValueError("some players never met, directly or through others; their ratings cannot be compared")
    played = games > 0
    fixed = np.where(played, score + ties / 2, 0.0)
    total = np.where(played, games + ties, 0.0)
    strength = _maximum(fixed, total)
    chance = _chances(strength)
    inverse = np.linalg.pinv(_laplacian(total * chance * (1 - chance)))
    share = fixed / np.where(played, total, 1.0)
    noise = _laplacian(total**2 * share * (1 - share) / np.maximum(trials + ties, 1e-9))
    half = Z95 * SCALE * np.sqrt(np.maximum(np.diag(inverse @ noise @ inverse), 0.0))
    rating = SCALE * strength
    return Ratings(rating, rating - half, rating + half, _levels(score))


class PointRatings(NamedTuple):
    """Ratings of N players by points per hand.

    Attributes:
      rating: float64[N], mean 0; where everyone has met everyone, the mean of a player's points against all, itself
        (with 0) included.
      low, high: float64[N], the 95 % interval of each.
    """

    rating: np.ndarray
    low: np.ndarray
    high: np.ndarray


def point_ratings(points: dict[tuple[int, int], np.ndarray], players: int) -> PointRatings:
    """Fits r to r_i - r_j = m_ij by least squares, each pairing weighted by its deals.

    A rating is a weighted sum of the pairings' means, and its variance V the same of their variances, as deals are
    independent. These are estimates, poor ones where deals are few: the interval is rating +- t sqrt(V), t Student's
    with Welch's degrees of freedom. A bootstrap does not know that, and covers the truth of two deals half of the time.

    Args:
      points: for i, j float[deals], the points per hand of i against j in each mirrored deal; deals >= 2.
      players: N.
    Raises:
      ValueError: the pairings played do not connect all players.
    Source: least-squares ratings as in Stefani 1977; variance as in White 1980; degrees of freedom as in Welch 1947.
    """
    met = np.zeros((players, players))
    for i, j in points:
        met[i, j] = met[j, i] = 1.0
    if len(set(_levels(met))) > 1:
        raise ValueError("some players never met, directly or through others; their ratings cannot be compared")
    design = np.zeros((len(points), players))
    for row, (i, j) in enumerate(points):
        design[row, i], design[row, j] = 1.0, -1.0
    deals = [np.asarray(x, np.float64) for x in points.values()]
    sizes = np.array([x.size for x in deals])
    weights = np.sqrt(sizes)
    share = np.linalg.pinv(design * weights[:, None]) * weights  # the shortest solution: its mean is 0
    rating = share @ np.array([x.mean() for x in deals])
    parts = share**2 * np.array([x.var(ddof=1) for x in deals]) / sizes
    variance = parts.sum(axis=1)
    relative = parts / np.where(variance > 0, variance, 1.0)[:, None]
    freedom = 1 / np.maximum((relative**2 / (sizes - 1)).sum(axis=1), 1 / sizes.sum())
    half = t95(freedom) * np.sqrt(variance)
    return PointRatings(rating, rating - half, rating + half)


def _chances(strength: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(np.clip(strength[None, :] - strength[:, None], -500, 500)))


def _laplacian(weights: np.ndarray) -> np.ndarray:
    return np.diag(weights.sum(axis=1)) - weights


def _log_likelihood(score: np.ndarray, strength: np.ndarray) -> float:
    return float(-np.sum(score * np.logaddexp(0.0, strength[None, :] - strength[:, None])))


def _maximum(score: np.ndarray, games: np.ndarray) -> np.ndarray:
    """Returns the strengths of greatest likelihood, mean 0, by Newton steps halved until they do not make it worse."""
    strength = np.zeros(len(score))
    for _ in range(_STEPS):
        chance = _chances(strength)
        gradient = (score - games * chance).sum(axis=1)
        step = np.linalg.pinv(_laplacian(games * chance * (1 - chance)), hermitian=True) @ gradient
        before, size = _log_likelihood(score, strength), 1.0
        while _log_likelihood(score, strength + size * step) < before - 1e-9 * abs(before) and size > 1e-6:
            size /= 2
        strength = strength + size * step
        strength -= strength.mean()
        if np.max(np.abs(step)) < _ENOUGH:
            break
    return strength


def _levels(points: np.ndarray) -> np.ndarray:
    """Returns each player's level: classes of players who reach each other over `points` > 0, the highest 0.

    A class is above another if it got points from it and none went back; unconnected classes go by their first player.
    """
    size = len(points)
    reach = (points > 0) | np.eye(size, dtype=bool)
    for middle in range(size):
        reach |= reach[:, middle : middle + 1] & reach[middle : middle + 1, :]
    alike = reach & reach.T
    above = (reach.T & ~reach).sum(axis=1)
    first = alike.argmax(axis=1)
    order = sorted({(int(above[f]), int(f)) for f in first})
    return np.array([order.index((int(above[f]), int(f))) for f in first])
