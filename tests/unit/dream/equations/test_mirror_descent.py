"""Magnetic mirror descent: its closed form against the objective it maximises."""

from __future__ import annotations

import numpy as np
import pytest

from dream.equations.mirror_descent import mirror_descent_policy

LEGAL = np.array([True, True, False, True])
POLICY = np.array([0.5, 0.2, 0.0, 0.3], np.float32)
Q = np.array([0.1, -0.4, 9.0, 0.7], np.float32)


def _objective(pi: np.ndarray, eta: float, alpha: float) -> float:
    own, old, q = (x[LEGAL].astype(float) for x in (pi, POLICY, Q))
    to_uniform, to_old = np.sum(own * np.log(own * LEGAL.sum())), np.sum(own * np.log(own / old))
    return float(own @ q - alpha * to_uniform - to_old / eta)


@pytest.mark.parametrize(("eta", "alpha"), [(0.5, 0.3), (2.0, 0.05), (1.0, 0.0)])
def test_it_maximises_its_objective(eta: float, alpha: float) -> None:
    """No policy nearby, and none of a thousand random ones, has a greater value."""
    best = np.asarray(mirror_descent_policy(POLICY, Q, LEGAL, eta=eta, alpha=alpha), np.float64)
    assert best.sum() == pytest.approx(1.0)
    assert best[2] == 0
    rng = np.random.default_rng(0)
    others = rng.dirichlet(np.ones(4), 1000) * LEGAL
    near = best * np.exp(0.05 * rng.normal(size=(1000, 4)))
    for pi in (*others, *near):
        assert _objective(pi / pi.sum(), eta, alpha) <= _objective(best, eta, alpha) + 1e-6


def test_without_a_magnet_steps_add_up() -> None:
    """Two steps of eta are one of 2 eta: softmax(log policy + 2 eta q), and what was learned first is not forgotten."""
    once = mirror_descent_policy(POLICY, Q, LEGAL, eta=0.5, alpha=0.0)
    twice = mirror_descent_policy(once, Q, LEGAL, eta=0.5, alpha=0.0)
    np.testing.assert_allclose(twice, mirror_descent_policy(POLICY, Q, LEGAL, eta=1.0, alpha=0.0), atol=1e-6)


def test_nothing_legal_is_all_zero() -> None:
    """A finished game has no policy; probability 0 is finite."""
    none = mirror_descent_policy(POLICY, Q, np.zeros(4, bool), eta=1.0, alpha=0.1)
    assert not np.any(none)
    sure = mirror_descent_policy(np.array([1.0, 0.0, 0.0, 0.0], np.float32), Q, LEGAL, eta=1.0, alpha=0.1)
    assert np.all(np.isfinite(sure))
