"""Whether numbers are a distribution over the legal actions."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

TOLERANCE = 1e-4
"""How far from 1 probabilities, perhaps float32, may sum: in play and where exploitability is computed."""


def faults(probabilities: Array, legal: Array) -> Array:
    """Returns what is wrong with a policy's answer.

    Args:
      probabilities: float32[A].
      legal: bool[A]; where nothing is legal, nothing is wrong with the policy.
    Returns:
      bool[4]: not finite, negative, not summing to 1, not zero where illegal.
    """
    finite = jnp.isfinite(probabilities)
    known = jnp.where(finite, probabilities, 0)
    found = [
        ~jnp.all(finite),
        jnp.any(known < 0),
        jnp.all(finite) & (jnp.abs(jnp.sum(known) - 1) > TOLERANCE),
        jnp.any(~legal & (known != 0)),
    ]
    return jnp.stack(found) & jnp.any(legal)
