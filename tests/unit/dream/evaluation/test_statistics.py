"""95 % intervals cover the truth in 95 % of simulated experiments."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from dream.evaluation.statistics import Interval, mean_interval, positive_interval, rate_interval, ratio_interval
from envs import InputError

EXPERIMENTS = 2000
_SLACK = 4 * math.sqrt(0.95 * 0.05 / EXPERIMENTS)


def _coverage(truth: float, interval: Callable[[], Interval]) -> float:
    found = [interval() for _ in range(EXPERIMENTS)]
    for one in found[:50]:
        assert one.low <= one.mean <= one.high
    return sum(one.low <= truth <= one.high for one in found) / EXPERIMENTS


@pytest.mark.parametrize("n", [60, 500])
def test_mean_interval_covers(n: int) -> None:
    """Normal, skewed and three-valued samples; within four standard errors of 95 %, a little less for short samples."""
    rng = np.random.default_rng(n)
    makers = {
        2.0: lambda: rng.normal(2.0, 3.0, n),
        0.5: lambda: rng.exponential(0.5, n),
        0.0525: lambda: rng.choice([-0.25, 0.0, 0.35], n, p=[0.28, 0.37, 0.35]),
    }
    for truth, make in makers.items():
        assert abs(_coverage(truth, lambda make=make: mean_interval(make())) - 0.95) < _SLACK + 1.0 / n


def test_mean_interval_written_out() -> None:
    """1, 2, 3, 6: mean 3, s^2 = 14 / 3, t of three degrees of freedom 3.182446."""
    half = 3.182446 * math.sqrt(14 / 3) / 2
    assert mean_interval(np.array([1, 2, 3, 6])) == pytest.approx((3, 3 - half, 3 + half), rel=1e-6)
    assert mean_interval(np.float32([2, 2, 2])) == (2, 2, 2)


def _pairs(rng: np.random.Generator, rate: float, correlation: float, n: int) -> np.ndarray:
    """Returns pairs of correlated hits, bool[n, 2]: with chance |c| the second repeats, or mirrors, the first."""
    one = rng.random((n, 2)) < rate
    tied = rng.random(n) < abs(correlation)
    one[tied, 1] = one[tied, 0] if correlation > 0 else ~one[tied, 0]
    return one


@pytest.mark.parametrize("correlation", [-0.5, -0.2, 0.0, 0.5, 0.9])
def test_rate_interval_covers_with_dependent_hands(correlation: float) -> None:
    """Rate 1/2, the hands of a pair alike or opposed, 200 pairs."""
    rng = np.random.default_rng(7)
    coverage = _coverage(0.5, lambda: rate_interval(_pairs(rng, 0.5, correlation, 200).mean(axis=1), 2))
    assert abs(coverage - 0.95) < _SLACK + 0.005


@pytest.mark.parametrize("per_sample", [3, 4, 6])
def test_rate_interval_covers_where_all_rounds_of_a_deal_are_alike(per_sample: int) -> None:
    """Each deal is then worth one trial, however many seats it is played from; 200 deals."""
    rng = np.random.default_rng(10)
    coverage = _coverage(0.5, lambda: rate_interval((rng.random(200) < 0.5).astype(float), per_sample))
    assert abs(coverage - 0.95) < _SLACK + 0.01


@pytest.mark.parametrize("rate", [0.003, 0.02, 0.3, 0.9, 0.97])
@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_rate_interval_covers_any_rate(rate: float, correlation: float) -> None:
    """Rare and common events, 500 pairs; Wilson's interval errs on the safe side near 0 and 1."""
    rng = np.random.default_rng(8)
    coverage = _coverage(rate, lambda: rate_interval(_pairs(rng, rate, correlation, 500).mean(axis=1), 2))
    common = 500 * min(rate, 1 - rate) > 15
    assert coverage > 0.95 - _SLACK - (0.01 if common else 0.035)
    assert coverage < (0.95 + _SLACK + 0.01 if common else 1.0)


@pytest.mark.parametrize(("per_sample", "deals", "rate"), [(2, 100, 0.02), (3, 64, 0.97), (6, 16, 0.9)])
def test_rate_interval_covers_what_no_deal_shows(per_sample: int, deals: int, rate: float) -> None:
    """Where all rounds of a deal are alike many matches see a rate of 0 or 1: their deals count, not their rounds."""
    rng = np.random.default_rng(12)
    coverage = _coverage(rate, lambda: rate_interval((rng.random(deals) < rate).astype(float), per_sample))
    assert coverage > 0.95 - _SLACK - 0.01


@pytest.mark.parametrize("n", [3, 5, 10, 20])
@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_rate_interval_covers_however_few_deals(n: int, correlation: float) -> None:
    """The variance between a few deals is often far too small; with z for t three deals with alike hands cover 89 %."""
    rng = np.random.default_rng(11)
    coverage = _coverage(0.5, lambda: rate_interval(_pairs(rng, 0.5, correlation, n).mean(axis=1), 2))
    assert coverage > 0.95 - _SLACK


def test_dependence_changes_the_width() -> None:
    """Hands of a pair that always agree are worth half their number, opposed ones more than it."""
    rng = np.random.default_rng(9)

    def width(correlation: float) -> float:
        interval = rate_interval(_pairs(rng, 0.5, correlation, 4000).mean(axis=1), 2)
        return interval.high - interval.low

    free = width(0.0)
    assert free == pytest.approx(2 * 1.96 * math.sqrt(0.25 / 8000), rel=0.05)
    assert width(1.0) == pytest.approx(math.sqrt(2) * free, rel=0.05)
    assert width(-0.4) < 0.9 * free


@pytest.mark.parametrize(("rate", "low", "high"), [(0.0, 0.0, 0.0747), (1.0, 0.9253, 1.0)])
def test_rates_of_nothing_and_everything_have_a_width(rate: float, low: float, high: float) -> None:
    """Wilson for 0 and for 47.6 of 47.6, as 50 pairs count whose rounds agree: 0 to 7.47 % and 92.53 % to 100 %."""
    assert rate_interval(np.full(50, rate), 2) == pytest.approx((rate, low, high), abs=1e-4)


def test_rate_interval_is_wilsons() -> None:
    """300 of 1,000 independent trials: 0.272 to 0.329 (Wilson 1927)."""
    assert rate_interval(np.repeat([1.0, 0.0], [300, 700]), 1) == pytest.approx((0.3, 0.2724, 0.3291), abs=1e-3)


@pytest.mark.parametrize("n", [2, 3, 10])
def test_mean_interval_covers_however_few(n: int) -> None:
    """Normal samples, within four standard errors of 95 %."""
    rng = np.random.default_rng(n)
    assert abs(_coverage(2.0, lambda: mean_interval(rng.normal(2.0, 3.0, n))) - 0.95) < _SLACK


def test_ratio_interval_written_out() -> None:
    """Parts 1, 2, 6 of 1, 2, 3: 3 / 2, residuals -1/2, -1, 3/2 of variance 7/4, t of two degrees 4.302653."""
    half = 4.302653 * math.sqrt(3 * 7 / 4) / 6
    assert ratio_interval(np.array([1, 2, 6]), np.array([1, 2, 3])) == pytest.approx((1.5, 1.5 - half, 1.5 + half))


@pytest.mark.parametrize("n", [4, 10, 60])
def test_ratio_interval_covers(n: int) -> None:
    """Points of games of 4 to 11 rounds, 1/2 a round; a little less than 95 % for few games, as the ratio is biased."""
    rng = np.random.default_rng(n)

    def interval() -> Interval:
        rounds = rng.integers(4, 12, n)
        return ratio_interval(rng.normal(rounds / 2, 3.0), rounds)

    assert abs(_coverage(0.5, interval) - 0.95) < _SLACK + 0.02


@pytest.mark.parametrize("n", [2000, 100_000])
def test_many_samples_have_the_normal_interval(n: int) -> None:
    """What was measured with thousands of samples is as it was with 1.96, to a thousandth of its width."""
    samples = np.random.default_rng(n).normal(size=n)
    mean, _, high = mean_interval(samples)
    assert high - mean == pytest.approx(1.959964 * samples.std(ddof=1) / math.sqrt(n), rel=1e-3)


def test_positive_interval_written_out() -> None:
    """1, e, e^2: logarithms of mean 1 and variance 1, t of two degrees of freedom 4.302653."""
    half = 4.302653 * math.sqrt(1 / 3 + 1 / 4)
    expected = ((1 + math.e + math.e**2) / 3, math.exp(1.5 - half), math.exp(1.5 + half))
    assert positive_interval(np.exp([0.0, 1.0, 2.0])) == pytest.approx(expected, rel=1e-6)
    assert positive_interval(np.array([0.2, 0.2, 0.2])) == pytest.approx((0.2, 0.2, 0.2))


@pytest.mark.parametrize("samples", [[0.02, 0.5, 0.9], [1e-3, 1.0], [3.0, 3.1, 2.9]])
def test_a_positive_quantity_has_a_positive_interval(samples: list[float]) -> None:
    """Also where the t-interval reaches below 0; in any unit it is the same; for little spread it is the t-interval."""
    mean, low, high = positive_interval(np.array(samples))
    assert 0 < low <= mean <= high
    assert positive_interval(1000 * np.array(samples)) == pytest.approx((1000 * mean, 1000 * low, 1000 * high))
    if max(samples) < 1.1 * min(samples):
        assert (low, high) == pytest.approx(mean_interval(np.array(samples))[1:], rel=0.01)


def test_values_that_are_not_positive() -> None:
    """Rounding may take a solver's value below 0: the t-interval, cut off there."""
    samples = np.array([1e-3, 0.0, -1e-17])
    assert positive_interval(samples) == (samples.mean(), 0.0, mean_interval(samples).high)


@pytest.mark.parametrize("n", [3, 5, 10])
@pytest.mark.parametrize("spread", [0.2, 0.5, 1.0])
def test_positive_interval_covers(n: int, spread: float) -> None:
    """Log-normal samples, few seeds; where the t-interval of the values falls to 85 %."""
    rng = np.random.default_rng(n)
    truth = math.exp(spread**2 / 2)
    coverage = _coverage(truth, lambda: positive_interval(rng.lognormal(0.0, spread, n)))
    assert abs(coverage - 0.95) < _SLACK + 0.015


def _rate(samples: list[float]) -> Interval:
    return rate_interval(np.array(samples), 2)


@pytest.mark.parametrize(
    ("interval", "samples"),
    [(mean_interval, []), (positive_interval, []), (positive_interval, [0.5]), (_rate, []), (_rate, [1.0])],
)
def test_too_few_samples_are_named(interval: Callable[..., Interval], samples: list[float]) -> None:
    """One seed, or none, has no interval over seeds."""
    with pytest.raises(InputError, match=r"two or more$"):
        interval(samples)
