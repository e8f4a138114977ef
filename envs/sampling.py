"""Draws by weights."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax


def first_above(sums: Array, weights: Array, threshold: Array) -> Array:
    """Returns the first index whose cumulative weight is above a threshold, never one of weight 0: int32.

    With a threshold drawn uniformly from [0, sums[-1]) this draws an index by its weight.

    Args:
      sums: float32[n], the cumulative sums of `weights`.
      weights: float32[n], non-negative, not all 0; need not be normalised.
      threshold: float32, at least 0.
    """
    # Rounding may lift a sum over a weight of 0, or leave none above the threshold.
    above = (sums > threshold) & (weights > 0)
    return jnp.where(jnp.any(above), jnp.argmax(above), jnp.argmax(weights)).astype(jnp.int32)


def resample(key: Array, weights: Array, count: int) -> Array:
    """Draws indices by their weights, systematically: each floor or ceil of `count` times its share, none of weight 0.

    Source: Kitagawa 1996, "Monte Carlo filter and smoother", systematic resampling.

    Args:
      key: consumed.
      weights: float32[n], non-negative, not all 0; need not be normalised.
      count: how many to draw.
    Returns:
      int32[count], ascending.
    """
    # Rounding may lift a sum over a weight of 0: such an index ends where the one before it does.
    ends = lax.cummax(jnp.where(weights > 0, jnp.cumsum(weights), 0))
    places = (jax.random.uniform(key) + np.arange(count)) / count
    return jnp.searchsorted(ends / ends[-1], jnp.clip(places, 1e-12, 1)).astype(jnp.int32)
