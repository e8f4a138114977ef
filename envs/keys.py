"""Typed PRNG keys among a game's arrays: NumPy has no such type, so that they are taken apart into their numbers."""

from __future__ import annotations

import functools
from typing import Any

import jax


def is_key(x: Any) -> bool:
    """Returns whether an array, or the shape of one, is of typed PRNG keys."""
    return jax.dtypes.issubdtype(getattr(x, "dtype", object), jax.dtypes.prng_key)


def plain(x: Any) -> Any:
    """Returns the numbers of typed keys; any other array as it is."""
    return jax.random.key_data(x) if is_key(x) else x


def plain_shape(x: Any) -> Any:
    """Returns shape and dtype of what `plain` gives, from those of an array."""
    return jax.eval_shape(plain, x) if is_key(x) else x


def rewrapped(data: Any, like: Any) -> Any:
    """Returns what `plain` was given, from what it returned and an array or shape of the same dtype."""
    if not is_key(like):
        return data
    return jax.random.wrap_key_data(data, impl=_kind(like.dtype))


@functools.cache
def _kind(dtype: Any) -> Any:
    """Returns the kind of keys of a dtype. JAX says it of arrays alone: one is traced, so that nothing is compiled."""
    kinds = []
    jax.eval_shape(lambda key: kinds.append(jax.random.key_impl(key)), jax.ShapeDtypeStruct((), dtype))
    return kinds[0]
