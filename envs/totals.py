"""What the rewards of a game come to: equal sums are equal, however float32 rounded them on the way.

0.1 + 0.6 - 0.7 is 6e-8 in float32: a game that pays on the way and ends in a tie would have a winner.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from envs.game import Game

_TOLERANCE = 1e-5
"""By which sums of rewards may differ and be equal, as a part of the largest of them or of the largest payment."""


def settled(game: Game, paid: Array) -> Array:
    """Returns sums of a game's rewards, float32[..., P], those equal that differ by rounding, and 0 where it is that.

    Args:
      game: what was played; one that pays at its end alone sums nothing up, and its rewards are as they are. The most
        that it pays at once is its `largest_payment`, or else its worst reward, or 1.
      paid: float32[..., P], all that it has paid.
    """
    if game.pays_at_end:
        return paid
    largest = jnp.max(jnp.abs(paid), axis=-1, keepdims=True)
    payment = getattr(game, "largest_payment", abs(getattr(game, "worst_reward", 1.0)))
    margin = _TOLERANCE * jnp.maximum(largest, payment)
    sums = jnp.where(jnp.abs(paid) <= margin, 0.0, paid)
    others = sums[..., None, :]
    near = jnp.abs(sums[..., None] - others) <= margin[..., None]
    return jnp.where(jnp.isfinite(largest), jnp.min(jnp.where(near, others, jnp.inf), axis=-1), paid)
