"""A pool of a learner's past parameters, to play against the learner as it was."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


class PolicyPool(NamedTuple):
    """Past parameters; the newest take the place of the oldest.

    Attributes:
      params: pytree with leading axis [size].
      added: int32, how often parameters were added; at first every place holds those added first.
    """

    params: Any
    added: Array


def make_pool(params: Any, size: int) -> PolicyPool:
    """Returns a pool that holds one set of parameters in every place."""
    return PolicyPool(jax.tree.map(lambda x: jnp.repeat(x[None], size, axis=0), params), jnp.int32(1))


def add(pool: PolicyPool, params: Any, when: Array) -> PolicyPool:
    """Puts parameters in the place of the oldest where `when`, bool, says so."""
    is_oldest = (np.arange(_size(pool)) == pool.added % _size(pool)) & when

    def put(old: Array, new: Array) -> Array:
        return jnp.where(is_oldest.reshape((-1,) + (1,) * new.ndim), new, old)

    return PolicyPool(jax.tree.map(put, pool.params, params), pool.added + when)


def sample(pool: PolicyPool, key: Array) -> Any:
    """Samples one of the parameters added and not yet replaced, all equally likely; `key` is consumed."""
    place = jax.random.randint(key, (), 0, jnp.minimum(pool.added, _size(pool)))
    return jax.tree.map(lambda x: x[place], pool.params)


def _size(pool: PolicyPool) -> int:
    return jax.tree.leaves(pool.params)[0].shape[0]
