"""Replay of decisions: what is kept is views, never observation vectors."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array


class Replay(NamedTuple):
    """Decisions to draw minibatches from.

    Attributes:
      rows: pytree, leading axis [N].
      index: int32[N], the places of the `count` valid rows come first.
      count: int32.
    """

    rows: Any
    index: Array
    count: Array


def collect(rows: Any, valid: Array) -> Replay:
    """Builds a replay of the valid rows.

    Args:
      rows: pytree, leading axes [T, lanes].
      valid: bool[T, lanes].
    """
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rows)
    valid = valid.reshape(-1)
    return Replay(flat, jnp.nonzero(valid, size=valid.shape[0], fill_value=0)[0], jnp.sum(valid, dtype=jnp.int32))


def draw(replay: Replay, key: Array, size: int) -> Any:
    """Draws `size` rows uniformly, with replacement: pytree with leading axis [size]; `key` is consumed."""
    places = replay.index[jax.random.randint(key, (size,), 0, replay.count)]
    return jax.tree.map(lambda x: x[places], replay.rows)
