"""A buffer of fixed size on the device: a uniform sample of all rows it was ever offered, or the newest of them.

Several devices hold a part of the rows each.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dream.compiled import devices

KINDS = ("reservoir", "fifo")
MOST_POWER = 5
"""Of the iteration in the weight of a row: float32 holds t^5 for ten million iterations."""


class ReservoirBuffer(NamedTuple):
    """Rows kept.

    Attributes:
      rows: pytree, leading axis [C], the capacity.
      seen: int32, rows offered so far, counted to 2^30 and then on from its half; the first min(seen, C) places hold
        rows.
    """

    rows: Any
    seen: Array


def empty(row: Any, capacity: int) -> ReservoirBuffer:
    """Returns a buffer without rows.

    Args:
      row: one row, or its shapes and dtypes.
      capacity: C, at least 1.
    """
    rows = jax.tree.map(lambda x: jnp.zeros((capacity, *x.shape), x.dtype), row)
    return ReservoirBuffer(devices.split(rows), jnp.int32(0))


def capacity(buffer: ReservoirBuffer) -> int:
    """Returns C."""
    return jax.tree.leaves(buffer.rows)[0].shape[0]


def filled(buffer: ReservoirBuffer) -> Array:
    """Returns the number of rows held: int32."""
    return jnp.minimum(buffer.seen, capacity(buffer))


def add(buffer: ReservoirBuffer, rows: Any, valid: Array, key: Array, *, kind: str) -> ReservoirBuffer:
    """Offers rows to a buffer, as if one after the other.

    Of n rows offered so far a reservoir keeps each with probability min(1, C / n): row n takes place n - 1 while there
    is room, later a place drawn from 0..n-1, and is dropped where that is no place. A FIFO keeps the newest C. Of a
    call that offers more, it keeps C drawn uniformly: rows come by time step, and the last C would be ends of games.

    Args:
      buffer: to add to.
      rows: pytree, leading axis [N].
      valid: bool[N], the others are not offered.
      key: consumed.
      kind: "reservoir" or "fifo".
    Source: Vitter 1985, "Random sampling with a reservoir", algorithm R; where several rows of one call draw the same
    place, the last one has it, as it would one after the other.
    """
    size = capacity(buffer)
    rows, valid = devices.whole((rows, valid))
    number = jnp.cumsum(valid, dtype=jnp.int32)
    if kind == "fifo" and valid.shape[0] > size:
        valid, number = _thinned(valid, number, size, key)
    order = buffer.seen + number
    place = (order - 1) % size if kind == "fifo" else _drawn_places(key, order, size)
    place = jnp.where(valid, place, size)
    by_place = jnp.argsort(place, stable=True)
    runs = place[by_place]
    is_last = jnp.append(runs[1:] != runs[:-1], True)
    place = place.at[by_place].set(jnp.where(is_last, runs, size))
    kept = jax.tree.map(lambda old, new: old.at[place].set(new.astype(old.dtype), mode="drop"), buffer.rows, rows)
    return ReservoirBuffer(devices.split(kept), counted(buffer.seen + jnp.sum(valid, dtype=jnp.int32), size))


def counted(total: Array, size: int) -> Array:
    """Returns the rows offered so far, set back by half at 2^30 to a number with the same place in a FIFO: int32."""
    return jnp.where(total > 2**30, total - 2**29 // size * size, total)


def _thinned(valid: Array, number: Array, size: int, key: Array) -> tuple[Array, Array]:
    """Returns which rows a FIFO takes and their numbers from 1: as they come, or drawn by lot where they are too many.

    Args:
      valid: bool[N].
      number: int32[N], of the valid rows as they come.
      size: C.
      key: consumed.
    """
    by_lot = jnp.argsort(jnp.where(valid, jax.random.uniform(key, valid.shape), 2.0))
    drawn = jnp.zeros_like(number).at[by_lot].set(np.arange(1, valid.shape[0] + 1, dtype=np.int32))
    number = jnp.where(number[-1] > size, drawn, number)
    return valid & (number <= size), number


def _drawn_places(key: Array, order: Array, size: int) -> Array:
    """Returns each row's place, `size` for none: int32[N]; `order` counts rows from 1."""
    drawn = jax.random.randint(key, order.shape, 0, jnp.maximum(order, 1))
    return jnp.where(order <= size, order - 1, jnp.minimum(drawn, size))


def sample(buffer: ReservoirBuffer, key: Array, size: int) -> Any:
    """Samples `size` of the rows held, uniformly and with replacement; `key` is consumed."""
    places = jax.random.randint(key, (size,), 0, jnp.maximum(filled(buffer), 1))
    return devices.split(jax.tree.map(lambda x: x[places], buffer.rows))


def held(buffer: ReservoirBuffer) -> Array:
    """Returns which places hold rows: bool[C]."""
    return np.arange(capacity(buffer)) < filled(buffer)


def mean(buffer: ReservoirBuffer, values: Array) -> Array:
    """Returns the mean over the rows held of a number each place has: float32, from float32[C]."""
    return jnp.sum(jnp.where(held(buffer), values, 0.0)) / jnp.maximum(filled(buffer), 1)
