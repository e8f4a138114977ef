"""A game's state as one array: a call takes and returns each array at a cost, however small it is."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from envs import keys
from envs.game import Game, State


def packed(state: State) -> Array:
    """Returns a state's arrays one after the other: uint8[bytes]."""
    return jnp.concatenate([jnp.ravel(jnp.asarray(keys.plain(x))).view(jnp.uint8) for x in jax.tree.leaves(state)])


def unpacked(game: Game, data: Array) -> State:
    """Returns the state that `packed` made `data` of, a state of this game."""
    leaves, first = [], 0
    for shape in jax.tree.leaves(_shapes(game)):
        plain = keys.plain_shape(shape)
        size = plain.size * plain.dtype.itemsize
        leaves.append(keys.rewrapped(data[first : first + size].view(plain.dtype).reshape(plain.shape), shape))
        first += size
    return jax.tree.unflatten(jax.tree.structure(_shapes(game)), leaves)


@functools.cache
def _shapes(game: Game) -> Any:
    return jax.eval_shape(lambda: game.init(jax.random.key(0)))
