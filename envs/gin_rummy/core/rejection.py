"""Rejection sampling in blocks: the first of independent proposals that fulfils a condition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

BLOCK = 8
"""Proposals looked at together."""
MOST_PROPOSALS = 1 << 11
"""Proposals after which one is returned that is not accepted."""


def first_accepted(propose: Callable[[Array], Any], accepts: Callable[[Any], Array], key: Array) -> Any:
    """Draws from the distribution of the proposals, given that they are accepted.

    Args:
      propose: key -> a pytree.
      accepts: pytree -> bool.
      key: consumed.
    Returns:
      The first proposal that is accepted; after MOST_PROPOSALS without one, one that is not.
    """

    def block(n: Array) -> tuple[Array, Any]:
        proposed = jax.vmap(propose)(jax.random.split(jax.random.fold_in(key, n), BLOCK))
        fine = jax.vmap(accepts)(proposed)
        first = jnp.argmax(fine)
        return fine[first], jax.tree.map(lambda leaf: leaf[first], proposed)

    def body(carry: tuple[Array, Array, Any]) -> tuple[Array, Array, Any]:
        return carry[0] + 1, *block(carry[0])

    shapes = jax.eval_shape(propose, key)
    start = (jnp.int32(0), jnp.bool_(False), jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes))
    return lax.while_loop(lambda carry: ~carry[1] & (carry[0] < MOST_PROPOSALS // BLOCK), body, start)[2]
