"""Is a step of magnetic mirror descent what its argmax says, and where do its steps lead?"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dream.equations.mirror_descent import magnetic_step, mirror_descent_policy

LEGAL = np.array([True, True, False, True])
OLD, MAGNET, VALUES = np.array([0.5, 0.2, 0.0, 0.3]), np.array([0.1, 0.6, 0.0, 0.3]), np.array([1.0, -0.5, 9.0, 0.2])


def _logs(policy: np.ndarray) -> np.ndarray:
    return np.log(np.where(LEGAL, policy, 1.0))


def _gain(policy: np.ndarray, step: float, strength: float) -> float:
    """Returns what the step maximises."""
    logs = np.log(policy)
    to_magnet, to_old = (float(np.sum(policy * (logs - np.log(x[LEGAL])))) for x in (MAGNET, OLD))
    return float(policy @ VALUES[LEGAL]) - strength * to_magnet - to_old / step


@pytest.mark.parametrize(("step", "strength"), [(0.5, 0.2), (3.0, 0.0), (10.0, 1.0)])
def test_no_policy_near_or_far_gains_more(step: float, strength: float) -> None:
    """1,000 policies around it and anywhere; the step is normalised and plays nothing illegal."""
    with jax.enable_x64(True):
        logs = np.asarray(
            magnetic_step(_logs(OLD), jnp.asarray(VALUES), _logs(MAGNET), LEGAL, step=step, strength=strength)
        )
    policy = np.where(LEGAL, np.exp(logs), 0.0)
    assert policy.sum() == pytest.approx(1.0)
    assert policy[2] == 0.0
    best, rng = _gain(policy[LEGAL], step, strength), np.random.default_rng(0)
    for size in (1e-3, 0.1, 1.0):
        for other in rng.dirichlet(np.ones(3), 333):
            assert _gain((1 - size) * policy[LEGAL] + size * other, step, strength) <= best + 1e-12


def test_steps_lead_to_the_softmax_of_the_values() -> None:
    """At fixed values and a uniform magnet the steps' limit is softmax(q / alpha), whatever the step."""
    logs = _logs(OLD)
    for _ in range(200):
        logs = magnetic_step(logs, VALUES, np.zeros(4), LEGAL, step=2.0, strength=0.5)
    expected = np.where(LEGAL, np.exp(VALUES / 0.5), 0.0)
    np.testing.assert_allclose(np.where(LEGAL, np.exp(logs), 0.0), expected / expected.sum(), atol=1e-6)


POLICY, Q = OLD.astype(np.float32), VALUES.astype(np.float32)


def test_the_policys_form_is_the_step_with_a_uniform_magnet() -> None:
    """Of a policy, as float16 holds it: softmax of (log policy + eta q) / (1 + eta alpha), written out."""
    logits = (np.log(OLD[LEGAL]) + 2.0 * VALUES[LEGAL]) / (1 + 2.0 * 0.3)
    found = mirror_descent_policy(jnp.asarray(OLD, jnp.float16), Q, LEGAL, eta=2.0, alpha=0.3)
    np.testing.assert_allclose(found[LEGAL], np.exp(logits) / np.exp(logits).sum(), atol=1e-3)
    assert found[2] == 0


def test_without_a_magnet_steps_add_up() -> None:
    """Two steps of eta are one of 2 eta: what was learned first is not forgotten."""
    once = mirror_descent_policy(POLICY, Q, LEGAL, eta=0.5, alpha=0.0)
    twice = mirror_descent_policy(once, Q, LEGAL, eta=0.5, alpha=0.0)
    np.testing.assert_allclose(twice, mirror_descent_policy(POLICY, Q, LEGAL, eta=1.0, alpha=0.0), atol=1e-6)


def test_nothing_legal_is_all_zero() -> None:
    """A finished game has no policy; probability 0 is finite."""
    assert not np.any(mirror_descent_policy(POLICY, Q, np.zeros(4, bool), eta=1.0, alpha=0.1))
    sure = mirror_descent_policy(np.array([1.0, 0.0, 0.0, 0.0], np.float32), Q, LEGAL, eta=1.0, alpha=0.1)
    assert np.all(np.isfinite(sure))
