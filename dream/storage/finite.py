"""Numbers that are no longer numbers: found and reported by the name of their array."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


def not_finite(tree: Any) -> str | None:
    """Returns the first array of a pytree with a value that is NaN or infinite, in words; None where there is none.

    Integers, masks and PRNG keys are passed over.

    Args:
      tree: pytree of arrays, on the device or the host.
    Returns:
      "<path in the tree> is not finite (<how many> of <size> values)", or None.
    """
    leaves = [(path, x) for path, x in jax.tree_util.tree_flatten_with_path(tree)[0] if _is_float(x)]
    with jax.enable_x64(True):  # host arrays in double precision stay as they are
        sound = np.asarray(_all_finite([x for _, x in leaves])) if leaves else np.ones(0, bool)
    if sound.all():
        return None
    path, leaf = leaves[int(np.argmin(sound))]
    wrong = int(np.sum(~np.isfinite(np.asarray(leaf, np.float64))))
    name = jax.tree_util.keystr(path, simple=True, separator=".")
    return f"{name or 'the array'} is not finite ({wrong:,} of {np.size(leaf):,} values)"


def _is_float(x: Any) -> bool:
    return hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.floating)


@jax.jit
def _all_finite(leaves: list[Array]) -> Array:
    return jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in leaves])
