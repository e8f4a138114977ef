"""Are PPO's equations the ones of its papers?"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dream.algorithms.ppo import clipped_loss
from dream.equations.regret_matching import masked_softmax


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "slope"),
    [
        (1.0, 2.0, -2.0, -2.0),
        (1.5, 2.0, -2.4, 0.0),  # better than before by more than the clip: no further pull
        (0.5, 2.0, -1.0, -2.0),  # worse than before: pulled back
        (1.5, -2.0, 3.0, 2.0),
        (0.5, -2.0, 1.6, 0.0),
    ],
)
def test_the_clip_stops_the_gradient_on_one_side(ratio: float, advantage: float, loss: float, slope: float) -> None:
    """Schulman et al. 2017, eq. 7, clip 0.2."""
    value, gradient = jax.value_and_grad(clipped_loss)(ratio, advantage, 0.2)
    assert float(value) == pytest.approx(loss)
    assert float(gradient) == pytest.approx(slope)


def test_the_policy_is_a_softmax_over_legal_actions() -> None:
    """Illegal actions get exactly 0, the others what a softmax among them gives."""
    logits, legal = jnp.array([1.0, 50.0, -1.0, 0.0]), jnp.array([True, False, True, True])
    policy = np.asarray(masked_softmax(logits, legal))
    expected = np.exp([1.0, -1.0, 0.0])
    np.testing.assert_allclose(policy[[0, 2, 3]], expected / expected.sum(), rtol=1e-6)
    assert policy[1] == 0.0
    assert not np.any(np.asarray(masked_softmax(logits, jnp.zeros(4, bool))))
