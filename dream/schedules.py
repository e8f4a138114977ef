"""Quantities that change with the iteration; iterations are absolute, so a resumed run goes on where it was."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array


def linear(start: float, end: float, over: int, iteration: Array) -> Array:
    """Returns start + (end - start) * min(iteration / over, 1): float32.

    Args:
      start, end: values at iteration 0 and from iteration `over` on.
      over: iterations, at least 1.
      iteration: int32, completed iterations.
    """
    return start + (end - start) * jnp.clip(iteration / over, 0.0, 1.0)
