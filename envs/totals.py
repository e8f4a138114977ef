"""Sums of the rewards of a game, with sums that differ only by float32 rounding made equal.

0.1 + 0.6 - 0.7 is 6e-8 in float32: a game with intermediate rewards that ends in a tie would have a winner.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from envs.game import Game

_TOLERANCE = 1e-5
"""Relative tolerance within which sums of rewards are equal, relative to the largest sum or the largest payment."""


def tied(earned: Array) -> Array:
    """Returns whether no player earned more than every other: bool[...].

    Args:
      earned: float32[..., P], sums of a game's rewards, without rounding errors.
    """
    return jnp.sum(earned == jnp.max(earned, axis=-1, keepdims=True), axis=-1) > 1


def settled(game: Game, paid: Array) -> Array:
    """Returns sums of a game's rewards, float32[..., P], without rounding errors: near sums equal, near-zero sums 0.

    Args:
      game: the game; if it pays only at its end, nothing is summed and the rewards are returned unchanged. The most
        that it pays in one step is its `largest_payment`.
      paid: float32[..., P], the sum of its rewards.
    """
    if game.pays_at_end:
        return paid
    largest = jnp.max(jnp.abs(paid), axis=-1, keepdims=True)
    margin = _TOLERANCE * jnp.maximum(largest, game.largest_payment)
    sums = jnp.where(jnp.abs(paid) <= margin, 0.0, paid)
    others = sums[..., None, :]
    near = jnp.abs(sums[..., None] - others) <= margin[..., None]
    return jnp.where(jnp.isfinite(largest), jnp.min(jnp.where(near, others, jnp.inf), axis=-1), paid)
