"""Magnetic mirror descent over the actions of one information set."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from dream.equations.regret_matching import LOW


def magnetic_step(
    logs: Array, values: Array, magnet_logs: Array, legal: Array, *, step: Array | float, strength: Array | float
) -> Array:
    """Returns the logarithm of the policy one step of magnetic mirror descent makes.

        pi_new = argmax over pi of <q, pi> - alpha KL(pi, rho) - KL(pi, pi_old) / eta
        log pi_new(a) = (log pi_old(a) + eta alpha log rho(a) + eta q(a)) / (1 + eta alpha) - log of what normalises it

    Args:
      logs: float[..., A], log pi_old, up to a constant.
      values: float[..., A], q.
      magnet_logs: float[..., A], log rho, up to a constant; 0 for uniform play.
      legal: bool[..., A], at least one in each row.
      step: eta > 0.
      strength: alpha >= 0.
    Returns:
      float[..., A], normalised over legal actions, LOW elsewhere.
    Source: Sokota et al. 2023, "A unified approach to reinforcement learning, quantal response equilibria, and
      two-player zero-sum games", section 3.3.
    """
    logits = (logs + step * (strength * magnet_logs + values)) / (1.0 + step * strength)
    return jnp.where(legal, jax.nn.log_softmax(jnp.where(legal, logits, LOW), axis=-1), LOW)
