"""Weights of worlds, and worlds drawn by them."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from dream.search.worlds import resample, tempered

LEAST = 48.0


def test_weights_are_softened_until_enough_worlds_count() -> None:
    """A belief that one world would rule alone, and one that needs nothing."""
    steep = np.asarray(tempered(np.linspace(0, 200, 256), LEAST))
    assert 1 / np.sum(steep**2) == pytest.approx(LEAST, rel=0.01)
    assert np.all(np.diff(steep) > 0)
    mild = np.linspace(0, 0.5, 256)
    assert np.allclose(tempered(mild, LEAST), np.exp(mild) / np.exp(mild).sum())


def test_all_worlds_count_alike_if_all_must_count() -> None:
    """As many effective worlds as there are."""
    weights = np.asarray(tempered(np.array([0.0, -1.0, -2.0]), 3.0))
    assert np.allclose(weights, 1 / 3, atol=1e-3)


def test_worlds_are_drawn_as_often_as_they_weigh() -> None:
    """Each its share of the draws, rounded up or down, whatever the key."""
    weights = np.array([0.5, 0.0, 0.3, 0.05, 0.15], np.float32)
    for seed in range(5):
        counts = np.bincount(resample(weights, jax.random.key(seed), 40), minlength=5)
        assert counts.sum() == 40
        assert np.all(np.abs(counts - 40 * weights) < 1)
        assert counts[1] == 0
