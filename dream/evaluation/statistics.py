"""Means with 95 % intervals."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from envs.errors import InputError

Z95 = 1.959963984540054
"""The 97.5 % point of the standard normal distribution."""
_MOST = 700.0
"""Exponents beyond which float64 has no number."""


class Interval(NamedTuple):
    """A mean and its 95 % interval."""

    mean: float
    low: float
    high: float


def mean_interval(samples: np.ndarray) -> Interval:
    """Returns the mean and mean +- t s / sqrt(n), s the sample standard deviation, t Student's 97.5 % point.

    Args:
      samples: float[n], independent, about normal where they are few, n >= 2; with one the ends are NaN.
    Raises:
      InputError: no sample.
    """
    samples = np.asarray(samples, np.float64)
    if not samples.size:
        raise InputError("there are no samples; an interval needs two or more")
    mean = float(samples.mean())
    half = float(t95(samples.size - 1)) * float(samples.std(ddof=1)) / math.sqrt(samples.size)
    return Interval(mean, mean - half, mean + half)


def t95(freedom: np.ndarray | float) -> np.ndarray:
    """Returns the 97.5 % point of Student's t, `Z95` for very many degrees of freedom.

    Args:
      freedom: degrees of freedom, n - 1 for a standard deviation of n samples.
    """
    return stdtrit(freedom, 0.975)


def positive_interval(samples: np.ndarray) -> Interval:
    """Returns the mean and a 95 % interval of the expectation of a positive quantity, on a log scale.

    With m and s^2 mean and variance of the logarithms, the interval is

        exp(m + s^2 / 2 +- t sqrt(s^2 / n + s^4 / (2 (n - 1)))),     t Student's 97.5 % point.

    It never reaches 0, and covers the expectation of log-normal samples, however few, as `mean_interval` does not.

    Args:
      samples: float[n], independent, n >= 2. Where one is not positive, as a solver's value within rounding of 0 may
        be, there is no logarithm: the interval is `mean_interval` cut off at 0.
    Raises:
      InputError: fewer than two samples.
    Source: Olsson 2005, "Confidence intervals for the mean of a log-normal distribution", modified Cox method.
    """
    samples = np.asarray(samples, np.float64)
    if samples.size < 2:
        raise InputError(f"{samples.size} samples have no interval; it needs two or more")
    if np.any(samples <= 0):
        mean, low, high = mean_interval(samples)
        return Interval(mean, max(low, 0.0), max(high, 0.0))
    logs = np.log(samples)
    variance = float(logs.var(ddof=1))
    centre = float(logs.mean()) + variance / 2
    half = float(t95(samples.size - 1))
    half *= math.sqrt(variance / samples.size + variance**2 / (2 * (samples.size - 1)))
    low, high = (math.exp(min(max(bound, -_MOST), _MOST)) for bound in (centre - half, centre + half))
    return Interval(float(samples.mean()), low, high)


def rate_interval(samples: np.ndarray, per_sample: int) -> Interval:
    """Returns a rate and its Wilson interval, the number of trials corrected for their dependence within a sample.

    The pairs of mirrored rounds are independent, the rounds of a pair are not. The effective number of trials is
    p (1 - p) / Var(mean), Var estimated between samples, at most twice the plain number and at least one a sample,
    and less where samples are few; Wilson's interval then stays within [0, 1] and has a width where the rate is 0 or 1.

    Args:
      samples: float[n], each the rate among `per_sample` trials that may depend on each other; n >= 2.
      per_sample: trials in a sample.
    Raises:
      InputError: fewer than two samples.
    Source: Wilson 1927; effective sample size as in Kish 1965, section 8.2.
    """
    samples = np.asarray(samples, np.float64)
    if samples.size < 2:
        raise InputError(f"{samples.size} samples have no interval; it needs two or more")
    mean = float(samples.mean())
    variance = float(samples.var(ddof=1)) / samples.size
    return wilson(mean, effective_trials(mean, variance, samples.size, samples.size * per_sample, per_sample))


def share_interval(wins: np.ndarray, losses: np.ndarray) -> Interval | None:
    """Returns wins / (wins + losses) and its Wilson interval, the number of trials corrected as in `rate_interval`.

    The variance is the ratio estimator's: of sum(w - p (w + l)) over the samples with any, by (sum (w + l))^2.

    Args:
      wins, losses: float[n], counts in each sample; n >= 2.
    Returns:
      The Interval, None where there is neither.
    """
    total = float(np.sum(wins) + np.sum(losses))
    return wilson(float(np.sum(wins)) / total, share_trials(wins, losses)) if total else None


def share_trials(wins: np.ndarray, losses: np.ndarray) -> float:
    """Returns how many independent trials give wins / (wins + losses) the precision it has; some are decided.

    A sample in which nothing was decided carries no information about the share and is left out of the variance.

    Args:
      wins, losses: float[n], counts in each sample; n >= 2.
    """
    wins, decided = np.asarray(wins, np.float64), np.asarray(wins, np.float64) + np.asarray(losses, np.float64)
    total, samples = float(decided.sum()), max(int(np.count_nonzero(decided)), 2)
    share = float(wins.sum()) / total
    variance = samples / (samples - 1) * float(np.sum((wins - share * decided) ** 2)) / total**2
    return effective_trials(share, variance, samples, total)


def ratio_interval(parts: np.ndarray, sizes: np.ndarray) -> Interval:
    """Returns r = sum(parts) / sum(sizes) and r +- t sqrt(V), t Student's 97.5 % point.

    V is the ratio estimator's variance, n / (n - 1) sum (p - r s)^2 / (sum s)^2.

    Args:
      parts, sizes: float[n], of each sample; n >= 2, sizes positive.
    Source: Cochran 1977, section 6.4.
    """
    parts, sizes = np.asarray(parts, np.float64), np.asarray(sizes, np.float64)
    ratio = float(parts.sum() / sizes.sum())
    half = (
        float(t95(parts.size - 1))
        * math.sqrt(parts.size * float(np.var(parts - ratio * sizes, ddof=1)))
        / float(sizes.sum())
    )
    return Interval(ratio, ratio - half, ratio + half)


def effective_trials(mean: float, variance: float, samples: int, trials: float, per_sample: int = 2) -> float:
    """Returns how many independent trials give a rate this variance, times (z / t)^2 as the variance is an estimate.

    At most twice as many as there were, at least trials / max(per_sample, 2); t is Student's 97.5 % point, z the normal
    one's.

    Args:
      mean: the rate.
      variance: of the mean, estimated between the samples; where it is 0 a sample counts as one trial, as nothing shows
        that its trials differ.
      samples: independent samples, >= 2.
      trials: in all samples together.
      per_sample: trials in a sample.
    Source: Korn and Graubard 1998, "Confidence intervals for proportions with small expected number of positive
      counts estimated from survey data".
    """
    plain = min(trials, samples)
    if variance > 0:
        plain = min(max(mean * (1 - mean) / variance, trials / max(per_sample, 2)), trials * 2)
    return float(plain * (Z95 / t95(samples - 1)) ** 2)


def wilson(mean: float, trials: float) -> Interval:
    """Returns a rate and Wilson's 95 % interval for so many independent trials."""
    z2 = Z95 * Z95 / trials
    centre = (mean + z2 / 2) / (1 + z2)
    half = math.sqrt(z2 * (mean * (1 - mean) + z2 / 4)) / (1 + z2)
    # Whatever rounding leaves, the mean is within.
    return Interval(mean, max(0.0, min(mean, centre - half)), min(1.0, max(mean, centre + half)))
