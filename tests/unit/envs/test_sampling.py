"""Draws by weights."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.sampling import first_above, resample


def test_each_is_drawn_as_often_as_it_weighs() -> None:
    """Its share of the draws, rounded up or down, whatever the key and the unit; in the mean the share itself."""
    draw = jax.jit(jax.vmap(functools.partial(resample, count=10), (0, None)))
    keys = jax.random.split(jax.random.key(1), 4000)
    for weights in ([0.5, 0.0, 0.3, 0.05, 0.15], [0.01, 0.33, 0.66], [3.0, 1.0]):
        shares = np.array(weights) / np.sum(weights)
        counts = np.array(
            [np.bincount(row, minlength=len(weights)) for row in np.asarray(draw(keys, np.float32(weights)))]
        )
        assert np.all(np.abs(counts - 10 * shares) < 1 + 1e-5)
        np.testing.assert_allclose(np.mean(counts, axis=0) / 10, shares, atol=0.003)


def test_none_of_weight_zero_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not where a draw is at the sum up to it, which rounding lifts over weights of 0, and not at 0 or 1."""
    rng = np.random.default_rng(0)
    weights = np.where(rng.random(5000) < 0.5, 0, rng.random(5000) ** 4).astype(np.float32)
    weights[[0, -1]] = 0
    sums = np.asarray(jnp.cumsum(weights))
    monkeypatch.setattr(jax.random, "uniform", lambda place: place)
    drawn = jax.vmap(lambda place: resample(place, weights, 1)[0])(jnp.append(sums / sums[-1], 1.0))
    assert np.all(weights[drawn] > 0)


def test_the_first_sum_above_a_threshold_is_found() -> None:
    """Also beyond the last sum, and where rounding lifts a sum over a weight of 0, never one of those."""
    weights, sums = np.float32([0, 0.25, 0, 0.5, 0]), np.float32([0, 0.25, 0.25, 0.75, 0.75])
    found = [int(first_above(sums, weights, np.float32(x))) for x in (0, 0.249, 0.25, 0.74, 0.75, 1)]
    assert found == [1, 1, 3, 3, 3, 3]
    lifted = np.float32([0, 0.25, 0.26, 0.75, 0.76])
    assert [int(first_above(lifted, weights, np.float32(x))) for x in (0.255, 0.755)] == [3, 3]
