"""Numbers that are no longer numbers: found and reported by the name of their array."""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Sharding

from dream.compiled import devices

_PASSED_OVER, _HERE, _AWAY = range(3)


def not_finite(tree: Any) -> str | None:
    """Returns the first array of a pytree with a value that is NaN or infinite, in words; None where there is none.

    Integers, masks and PRNG keys are passed over.

    Args:
      tree: pytree of arrays, on the device or the host.
    Returns:
      "<path in the tree> is not finite (<how many> of <size> values)", or None.
    """
    away, here = [], []
    for x in jax.tree.leaves(tree):
        where = _place(getattr(x, "dtype", object), getattr(x, "sharding", None))
        if where == _HERE:
            here.append(np.asarray(x))
        elif where == _AWAY:
            away.append(x)
    if _are_finite(away) and _are_finite_here(here):
        return None
    leaves = [(path, x) for path, x in jax.tree_util.tree_flatten_with_path(devices.on_host(tree))[0] if _is_float(x)]
    path, leaf = next((path, x) for path, x in leaves if not np.isfinite(np.asarray(x, np.float64)).all())
    wrong = int(np.sum(~np.isfinite(np.asarray(leaf, np.float64))))
    name = jax.tree_util.keystr(path, simple=True, separator=".")
    return f"{name or 'the array'} is not finite ({wrong:,} of {np.size(leaf):,} values)"


def _is_float(x: Any) -> bool:
    return jnp.issubdtype(getattr(x, "dtype", object), jnp.floating)


@functools.lru_cache(maxsize=256)
def _place(dtype: Any, sharding: Sharding | None) -> int:
    """Returns whether an array has floating numbers, and NumPy reads them where they lie, in this process's memory."""
    if not jnp.issubdtype(dtype, jnp.floating):
        return _PASSED_OVER
    if sharding is None:
        return _HERE
    platforms = [device.platform for device in sharding.device_set]
    return _HERE if sharding.is_fully_addressable and platforms == ["cpu"] else _AWAY


def _are_finite_here(arrays: list[np.ndarray]) -> bool:
    """Returns whether all numbers of arrays in this process's memory are finite.

    Where a sum of squares is finite all of its terms are; one that is not may be an overflow, and is looked at closely.
    """
    if math.isfinite(sum(float(np.vdot(x, x)) for x in arrays)):
        return True
    return all(np.isfinite(x).all() for x in arrays)


def _are_finite(arrays: list[Array]) -> bool:
    """Returns whether all numbers of arrays on the device are finite, in the arrays' own precision."""
    if not any(x.dtype == np.float64 for x in arrays):
        return not arrays or bool(_all_finite(arrays))
    with jax.enable_x64(True):
        return bool(_all_finite(arrays))


@jax.jit
def _all_finite(leaves: list[Array]) -> Array:
    return jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in leaves]).all()
