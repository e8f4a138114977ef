"""Magnetic mirror descent over the actions of one information set."""

from __future__ import annotations

from typing import Any

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
    logits = magnetic_logits(logs, values, magnet_logs, step=step, strength=strength)
    return jnp.where(legal, jax.nn.log_softmax(jnp.where(legal, logits, LOW), axis=-1), LOW)


def magnetic_logits(logs: Any, values: Any, magnet_logs: Any, *, step: Any, strength: Any) -> Any:
    """Returns the logarithm of `magnetic_step`'s policy before it is normalised; of NumPy's arrays or JAX's."""
    return (logs + step * (strength * magnet_logs + values)) / (1.0 + step * strength)


FLOOR = 1e-7
"""The least probability whose logarithm is taken; float16 holds it."""


def mirror_descent_policy(policy: Array, q: Array, legal: Array, *, eta: Array | float, alpha: Array | float) -> Array:
    """Returns the policy after one step from a policy, with a uniform magnet.

    Args:
      policy: float[..., A], the last policy; probabilities below FLOOR count as FLOOR.
      q: float32[..., A], values of the actions under it; a constant added to all of them changes nothing.
      legal: bool[..., A].
      eta: step, in 1 / units of q.
      alpha: strength of the magnet, in units of q.
    Returns:
      float32[..., A], summing to one over legal actions and 0 elsewhere; all 0 where nothing is legal.
    """
    logs = jnp.log(jnp.maximum(policy.astype(jnp.float32), FLOOR))
    return jnp.exp(magnetic_step(logs, q, jnp.zeros_like(logs), legal, step=eta, strength=alpha))
