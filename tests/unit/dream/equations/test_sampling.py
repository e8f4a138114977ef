"""Drawing actions: the right frequencies, never an impossible action."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from dream.equations.sampling import entropy, sample_action

DRAWS = 40_000


@functools.partial(jax.jit, static_argnums=2)
def _drawn(key: Array, probabilities: Array, count: int) -> Array:
    return jax.vmap(lambda k: sample_action(k, probabilities))(jax.random.split(key, count))


CASES = {
    "skewed": [0.7, 0.2, 0.05, 0.05],
    "zeros at both ends and inside": [0.0, 0.1, 0.0, 0.6, 0.3, 0.0],
    "not normalised": [3.0, 0.0, 5.0, 1.0, 1.0],
    "one action": [0.0, 0.0, 1.0],
    "a hundred actions": list(np.random.default_rng(1).random(107) ** 4),
    "mostly illegal": [1.0 if n % 9 == 4 else 0.0 for n in range(107)],
}


@pytest.mark.parametrize("name", CASES)
def test_frequencies(name: str) -> None:
    """Chi-square over fixed keys stays below its 99.99 % point; nothing impossible is ever drawn."""
    weights = np.array(CASES[name])
    counts = np.bincount(_drawn(jax.random.key(5), jnp.array(weights, jnp.float32), DRAWS), minlength=len(weights))
    assert np.all(counts[weights == 0] == 0)
    expected = DRAWS * weights / weights.sum()
    possible = expected > 0
    chi_square = np.sum((counts - expected)[possible] ** 2 / expected[possible])
    freedom = max(possible.sum() - 1, 1)
    # Wilson and Hilferty's approximation of the 99.99 % point.
    assert chi_square < freedom * (1 - 2 / (9 * freedom) + 3.72 * np.sqrt(2 / (9 * freedom))) ** 3 + 4


@pytest.mark.parametrize("tiny", [1e-30, 1e-12, 1e-8])
def test_rounding_never_gives_an_impossible_action(tiny: float) -> None:
    """Probabilities of very different size, impossible actions between and after them."""
    for place in range(12):
        weights = np.full(13, tiny, np.float32)
        weights[place], weights[(place + 1) % 13], weights[12] = 1.0, 0.0, 0.0
        drawn = np.asarray(_drawn(jax.random.key(place), jnp.array(weights), 2000))
        assert np.all(weights[drawn] > 0)


def test_thirds_leave_no_gap_at_the_end() -> None:
    """Sums that do not add up to one exactly still give a legal action for every random number."""
    for legal in range(1, 60):
        weights = np.zeros(107, np.float32)
        weights[3 : 3 + legal] = np.float32(1) / np.float32(legal)
        drawn = np.asarray(_drawn(jax.random.key(legal), jnp.array(weights), 500))
        assert drawn.dtype == np.int32
        assert np.all((drawn >= 3) & (drawn < 3 + legal))


@pytest.mark.parametrize(("number", "expected"), [(0.0, 1), (1 - 2**-24, 3), (1.0, 3)])
def test_the_ends_of_the_unit_interval(monkeypatch: pytest.MonkeyPatch, number: float, expected: int) -> None:
    """The smallest and the largest random number, and one that rounding has made 1, give possible actions."""
    monkeypatch.setattr(jax.random, "uniform", lambda key: jnp.float32(number))
    assert sample_action(jax.random.key(0), jnp.array([0.0, 0.25, 0.0, 0.75, 0.0, 0.0])) == expected


def test_accelerators_round_no_probability() -> None:
    """By default they may round the operands of a product, and so draw by other probabilities."""
    lanes = jax.random.split(jax.random.key(0), 4), jnp.ones((4, 5))
    text = jax.jit(jax.vmap(sample_action)).trace(*lanes).lower(lowering_platforms=("cuda",)).as_text()
    (product,) = [line for line in text.splitlines() if "dot_general" in line]
    assert "precision = [HIGHEST, HIGHEST]" in product


def test_same_key_same_action() -> None:
    """The draw is a function of the key; other keys draw otherwise."""
    weights = jnp.ones(50)
    np.testing.assert_array_equal(_drawn(jax.random.key(1), weights, 100), _drawn(jax.random.key(1), weights, 100))
    assert not np.array_equal(_drawn(jax.random.key(1), weights, 100), _drawn(jax.random.key(2), weights, 100))


def test_entropy() -> None:
    """It is log n for uniform, 0 for certainty, zeros ignored, over the last axis."""
    table = jnp.array([[0.25] * 4, [0.5, 0.5, 0, 0], [1, 0, 0, 0], [0.5, 0.25, 0.25, 0]])
    np.testing.assert_allclose(entropy(table), [np.log(4), np.log(2), 0, 1.5 * np.log(2)], rtol=1e-6)
    assert entropy(table[0]).shape == ()
