"""Sampling actions from probabilities, and their entropy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs.sampling import first_above


def sample_action(key: Array, probabilities: Array) -> Array:
    """Samples an action, never one of probability 0.

    Inverts the cumulative distribution, whose sums are one product with a triangular matrix: on a CPU several times
    faster than a scan or than one random number an action. In full precision on accelerators too, which by default
    round the operands of a product, here the probabilities.

    Args:
      key: consumed.
      probabilities: float32[A], non-negative, not all 0; need not be normalised.
    Returns:
      int32.
    """
    size = probabilities.shape[0]
    cumulative = jnp.matmul(probabilities, np.triu(np.ones((size, size), np.float32)), precision="highest")
    return first_above(cumulative, probabilities, jax.random.uniform(key) * cumulative[-1])


def entropy(probabilities: Array) -> Array:
    """Returns -sum p log p over the last axis, in nats: float32[...]."""
    return -jnp.sum(jax.scipy.special.xlogy(probabilities, probabilities), axis=-1)
