"""A game's state as one array: a call takes and returns each array at a cost, however small it is."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from envs.game import Game, State


def packed(state: State) -> Array:
    """Returns a state's arrays one after the other: uint8[bytes]."""
    return jnp.concatenate([jnp.ravel(_plain(x)).view(jnp.uint8) for x in jax.tree.leaves(state)])


def unpacked(game: Game, data: Array) -> State:
    """Returns the state that `packed` made `data` of, a state of this game."""
    leaves, first = [], 0
    for like in jax.tree.leaves(_shapes(game)):
        plain = jax.eval_shape(_plain, like)
        size = plain.size * plain.dtype.itemsize
        x = data[first : first + size].view(plain.dtype).reshape(plain.shape)
        leaves.append(
            jax.random.wrap_key_data(x, impl=jax.random.key_impl(jnp.empty((), like.dtype))) if _is_key(like) else x
        )
        first += size
    return jax.tree.unflatten(jax.tree.structure(_shapes(game)), leaves)


def _is_key(x: Any) -> bool:
    return jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)


def _plain(x: Any) -> Array:
    """Returns an array, of typed PRNG keys their numbers."""
    return jax.random.key_data(x) if _is_key(x) else jnp.asarray(x)


@functools.cache
def _shapes(game: Game) -> Any:
    return jax.eval_shape(lambda: game.init(jax.random.key(0)))
