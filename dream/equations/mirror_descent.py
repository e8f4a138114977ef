"""One step of magnetic mirror descent on a policy, with a uniform magnet."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from dream.equations.regret_matching import masked_softmax

FLOOR = 1e-7
"""The least probability whose logarithm is taken; float16 holds it."""


def mirror_descent_policy(policy: Array, q: Array, legal: Array, *, eta: Array | float, alpha: Array | float) -> Array:
    """Returns the policy after one step: softmax over legal actions of (log policy + eta q) / (1 + eta alpha).

    It maximises <q, pi> - alpha KL(pi, uniform) - KL(pi, policy) / eta. What earlier steps learned stays in the policy,
    forgotten at rate eta alpha; with alpha = 0 it is the multiplicative-weights update on sums of q.

    Args:
      policy: float[..., A], the last policy; probabilities below FLOOR count as FLOOR.
      q: float32[..., A], values of the actions under it; a constant added to all of them changes nothing.
      legal: bool[..., A].
      eta: step, in 1 / units of q.
      alpha: strength of the magnet, in units of q.
    Returns:
      float32[..., A], summing to one over legal actions and 0 elsewhere; all 0 where nothing is legal.
    Source: Sokota et al. 2023, "A unified approach to reinforcement learning, quantal response equilibria, and
      two-player zero-sum games", section 3, the closed form for a uniform magnet.
    """
    logits = jnp.log(jnp.maximum(policy.astype(jnp.float32), FLOOR)) + eta * q
    return masked_softmax(logits / (1.0 + eta * alpha), legal)
