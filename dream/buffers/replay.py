"""Replay of decisions, kept as views and never as observation vectors."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dream.compiled import devices


class Replay(NamedTuple):
    """Decisions to sample minibatches from.

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
    # An iteration's views are small: every device holds them all, and gathers its part of a minibatch alone.
    rows, valid = devices.whole((rows, valid))
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rows)
    valid = valid.reshape(-1)
    return Replay(flat, jnp.nonzero(valid, size=valid.shape[0], fill_value=0)[0], jnp.sum(valid, dtype=jnp.int32))


def sample(replay: Replay, key: Array, size: int) -> Any:
    """Samples `size` rows uniformly, with replacement: pytree with leading axis [size]; `key` is consumed."""
    places = devices.split(replay.index[jax.random.randint(key, (size,), 0, replay.count)])
    return jax.tree.map(lambda x: x[places], replay.rows)


def batches_per_pass(replay: Replay, size: int) -> Array:
    """Returns how many minibatches of `size` cover every row: int32."""
    return -(-replay.count // size)


def nth_of_passes(replay: Replay, key: Array, n: Array, size: int) -> Any:
    """Returns minibatch n of endless passes over the rows, each row once per pass in an order of its own.

    The last minibatch of a pass is filled up from the pass's beginning.

    Args:
      replay: the rows.
      key: of all passes, not consumed.
      n: int32, number of the minibatch.
      size: rows in it.
    """
    per_pass = batches_per_pass(replay, size)
    ranks = (n % per_pass) * size + np.arange(size)
    order = _permutation_at(jax.random.fold_in(key, n // per_pass), ranks % replay.count, replay.count)
    places = devices.split(replay.index[order])
    return jax.tree.map(lambda x: x[places], replay.rows)


def _permutation_at(key: Array, positions: Array, count: Array) -> Array:
    """Returns a random permutation of 0..count-1 at some positions, without building the whole of it: int32.

    A four-round Feistel network permutes the next power of four; a value outside the range is permuted again until it
    falls inside ("cycle walking"). Of fewer than some seventy rows some orders are likelier than others: of five,
    a certain pair begins up to 8 passes in a hundred, for 5 of uniform orders.
    """
    half = (32 - lax.clz(jnp.maximum(count - 1, 1)) + 1) // 2
    low_bits = (jnp.uint32(1) << half.astype(jnp.uint32)) - 1
    keys = jax.random.bits(key, (4,))

    def shuffle(x: Array) -> Array:
        left, right = x >> half.astype(jnp.uint32), x & low_bits
        for k in keys:
            left, right = right, left ^ (_mix(right ^ k) & low_bits)
        return (left << half.astype(jnp.uint32)) | right

    def walk(x: Array) -> Array:
        return jnp.where(x >= count.astype(jnp.uint32), shuffle(x), x)

    start = shuffle(positions.astype(jnp.uint32))
    return lax.while_loop(lambda x: jnp.any(x >= count.astype(jnp.uint32)), walk, start).astype(jnp.int32)


def _mix(x: Array) -> Array:
    """Returns the bits of a word scrambled: the finaliser of MurmurHash3."""
    x = (x ^ (x >> 16)) * np.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * np.uint32(0xC2B2AE35)
    return x ^ (x >> 16)
