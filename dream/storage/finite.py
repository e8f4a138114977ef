"""Numbers that are no longer numbers: found and reported by the name of their array."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dream.compiled import devices


def not_finite(tree: Any) -> str | None:
    """Returns the first array of a pytree with a value that is NaN or infinite, in words; None where there is none.

    Integers, masks and PRNG keys are passed over.

    Args:
      tree: pytree of arrays, on the device or the host.
    Returns:
      "<path in the tree> is not finite (<how many> of <size> values)", or None.
    """
    arrays = [x for x in jax.tree.leaves(tree) if _is_float(x)]
    there = [x for x in arrays if isinstance(x, jax.Array)]
    if _are_finite(there) and all(np.isfinite(x).all() for x in arrays if not isinstance(x, jax.Array)):
        return None
    leaves = [(path, x) for path, x in jax.tree_util.tree_flatten_with_path(devices.on_host(tree))[0] if _is_float(x)]
    path, leaf = next((path, x) for path, x in leaves if not np.isfinite(np.asarray(x, np.float64)).all())
    wrong = int(np.sum(~np.isfinite(np.asarray(leaf, np.float64))))
    name = jax.tree_util.keystr(path, simple=True, separator=".")
    return f"{name or 'the array'} is not finite ({wrong:,} of {np.size(leaf):,} values)"


def _is_float(x: Any) -> bool:
    return hasattr(x, "dtype") and _is_floating(x.dtype)


@functools.cache
def _is_floating(dtype: Any) -> bool:
    return jnp.issubdtype(dtype, jnp.floating)


def _are_finite(arrays: list[Array]) -> bool:
    """Returns whether all numbers of arrays on the device are finite, in the arrays' own precision."""
    if not any(x.dtype == np.float64 for x in arrays):
        return not arrays or bool(_all_finite(arrays))
    with jax.enable_x64(True):
        return bool(_all_finite(arrays))


@jax.jit
def _all_finite(leaves: list[Array]) -> Array:
    return jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in leaves]).all()
