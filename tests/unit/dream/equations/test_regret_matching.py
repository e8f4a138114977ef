"""Soft regret matching: the document's formula, and what it and a softmax must keep at the edges."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import Array

from dream.equations.regret_matching import masked_log_softmax, masked_softmax, soft_regret_matching

SIZE = 6
_policy = jax.jit(soft_regret_matching)
numbers = st.lists(st.integers(-400, 400).map(lambda n: n / 100), min_size=SIZE, max_size=SIZE)
masks = st.lists(st.booleans(), min_size=SIZE, max_size=SIZE).filter(any)
temperatures = st.sampled_from([0.05, 0.1, 0.5, 2.0, 10.0])
quick = settings(max_examples=60)


def slow_policy(advantages: list[float], legal: list[bool], temperature: float) -> list[float]:
    """The formula in plain Python."""
    best = max(a for a, allowed in zip(advantages, legal, strict=True) if allowed)
    weights = [
        math.log1p(math.exp((a - best) / temperature)) if allowed else 0.0
        for a, allowed in zip(advantages, legal, strict=True)
    ]
    return [w / sum(weights) for w in weights]


@jax.jit
@jax.value_and_grad
def _value_and_slope(advantages: Array, legal: Array, temperature: Array) -> Array:
    return jnp.sum(jnp.array([1.0, -2.0, 3.0, 5.0]) * soft_regret_matching(advantages, legal, temperature))


def policy(advantages: list[float], legal: list[bool], temperature: float) -> np.ndarray:
    """Returns the function's answer as NumPy."""
    return np.asarray(_policy(jnp.array(advantages, jnp.float32), jnp.array(legal), jnp.float32(temperature)))


def test_written_out() -> None:
    """T = 1, advantages 1, 0, -1, an illegal 5: softplus(0) = 0.6931, softplus(-1) = 0.3133, softplus(-2) = 0.1269."""
    total = 0.693147 + 0.313262 + 0.126928
    expected = [0.693147 / total, 0.313262 / total, 0.126928 / total, 0.0]
    np.testing.assert_allclose(policy([1, 0, -1, 5], [True, True, True, False], 1.0), expected, rtol=1e-5)
    np.testing.assert_allclose(policy([2, 0, -2, 10], [True, True, True, False], 2.0), expected, rtol=1e-5)


@quick
@given(numbers, masks, temperatures)
def test_equals_the_formula(advantages: list[float], legal: list[bool], temperature: float) -> None:
    """Sums to one over legal actions, exactly zero elsewhere, and equal to plain Python."""
    found = policy(advantages, legal, temperature)
    np.testing.assert_allclose(found, slow_policy(advantages, legal, temperature), rtol=2e-5, atol=1e-7)
    assert found.sum() == pytest.approx(1.0, abs=1e-6)
    assert np.all(found[~np.array(legal)] == 0)


@pytest.mark.parametrize("temperature", [1e-6, 1e-3, 1.0, math.inf])
@pytest.mark.parametrize("level", [-1e4, 0.0, 3.7, 1e4])
def test_uniform_where_all_legal_are_equal(temperature: float, level: float) -> None:
    """Whatever the level, the temperature and the illegal actions' advantages."""
    advantages = np.full(8, level, np.float32)
    advantages[5:] = [1e6, -1e6, level]
    legal = np.array([1, 1, 1, 1, 1, 0, 0, 0], bool)
    np.testing.assert_allclose(soft_regret_matching(advantages, legal, temperature), legal / 5, rtol=1e-6)


def test_infinite_temperature_is_uniform() -> None:
    """Exactly so, whatever the advantages."""
    legal = np.array([True, False, True, True])
    np.testing.assert_array_equal(policy([1e4, 0, -1e4, 3], list(legal), math.inf), legal / np.float32(3))


def test_nothing_legal_gives_zeros() -> None:
    """No NaN where a game is over, alone or in a batch beside a live one."""
    advantages = jnp.array([[1.0, -2.0], [1.0, 1.0]])
    found = soft_regret_matching(advantages, jnp.array([[False, False], [True, True]]), 0.1)
    np.testing.assert_array_equal(found, [[0, 0], [0.5, 0.5]])


@pytest.mark.parametrize("temperature", [1e-6, 1e-3, 0.1, 2.0, math.inf])
@pytest.mark.parametrize("legal", [[True, True, True, False], [True, False, False, False], [False] * 4])
def test_finite_value_and_gradient(temperature: float, legal: list[bool]) -> None:
    """Neither value nor gradient is NaN or infinite at tiny temperatures and advantages of +-10,000."""
    for advantages in ([1e4, -1e4, 0.0, 5.0], [1.0, 1.0 - 1e-6, 1.0, 1.0], [-1e4, -1e4, -1e4, 1e4]):
        value, slope = _value_and_slope(jnp.array(advantages), jnp.array(legal), jnp.float32(temperature))
        assert np.isfinite(value)
        assert np.isfinite(slope).all()
        assert slope[3] == 0


def test_small_temperature_takes_the_best() -> None:
    """At T = 1e-3 an action 0.1 better than the others is certain."""
    np.testing.assert_allclose(policy([0.1, 0.2, 0.0, 9.0], [True, True, True, False], 1e-3), [0, 1, 0, 0], atol=1e-30)


@pytest.mark.parametrize("temperature", [1e-3, 1e-8, 1e-12, 1e-30])
def test_a_softmax_at_small_temperature_takes_the_best(temperature: float) -> None:
    """However far its logit is below 0, where LOW once stood above it; an illegal action's does not matter."""
    logits, legal = jnp.array([-40.0, -20.0, -30.0, 5.0]) / temperature, jnp.array([True, True, True, False])
    np.testing.assert_array_equal(masked_softmax(logits, legal), [0, 1, 0, 0])
    np.testing.assert_array_equal(jnp.exp(masked_log_softmax(logits, legal)), [0, 1, 0, 0])


def test_a_softmax_and_its_logarithm_agree() -> None:
    """With jax.nn.softmax among the legal actions; finite slopes, also where nothing is legal."""
    logits, legal = jnp.array([[1.0, 50.0, -1.0, 0.0]] * 2), jnp.array([[True, False, True, True], [False] * 4])
    expected = jax.nn.softmax(logits[0, jnp.array([0, 2, 3])])
    for found in (masked_softmax(logits, legal), jnp.where(legal, jnp.exp(masked_log_softmax(logits, legal)), 0.0)):
        np.testing.assert_allclose(found[0, jnp.array([0, 2, 3])], expected, rtol=1e-6)
        np.testing.assert_array_equal(found[1], np.zeros(4))
    slope = jax.grad(lambda x: jnp.sum(masked_softmax(x, legal)[:, 0] + masked_log_softmax(x, legal)[:, 0]))(logits)
    assert np.isfinite(slope).all()


@quick
@given(numbers, masks, temperatures, st.integers(-300, 300).map(lambda n: n / 10))
def test_a_constant_changes_nothing(
    advantages: list[float], legal: list[bool], temperature: float, shift: float
) -> None:
    """Only differences of advantages count."""
    moved = policy([a + shift for a in advantages], legal, temperature)
    np.testing.assert_allclose(moved, policy(advantages, legal, temperature), rtol=2e-3, atol=1e-6)


@quick
@given(numbers, masks, temperatures, st.integers(0, SIZE - 1), st.integers(1, 300).map(lambda n: n / 100))
def test_more_advantage_is_never_less_likely(
    advantages: list[float], legal: list[bool], temperature: float, action: int, more: float
) -> None:
    """Raising one action's advantage does not lower its probability, and the better of two is never the rarer."""
    before = policy(advantages, legal, temperature)
    raised = [a + more * (n == action) for n, a in enumerate(advantages)]
    assert policy(raised, legal, temperature)[action] >= before[action] - 1e-6
    order = np.argsort(np.array(advantages)[legal])
    assert np.all(np.diff(before[legal][order]) >= -1e-6)


@quick
@given(numbers, masks, temperatures, st.permutations(range(SIZE)))
def test_names_of_actions_do_not_matter(
    advantages: list[float], legal: list[bool], temperature: float, order: list[int]
) -> None:
    """A permutation of the actions permutes the policy."""
    permuted = policy([advantages[n] for n in order], [legal[n] for n in order], temperature)
    np.testing.assert_allclose(permuted, policy(advantages, legal, temperature)[order], rtol=1e-5, atol=1e-7)
