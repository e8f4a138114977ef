"""A state with every kind of leaf, and the meta that is stored with it, for tests of checkpoints."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from dream_support import arrays

META = {"config": {"seed": 1}, "game": {"name": "coin", "version": "1", "rules": {}}, "counters": {"decisions": 7}}


class Nested(NamedTuple):
    """A state with every kind of leaf a learner has."""

    params: dict[str, Any]
    key: jax.Array
    keys: jax.Array
    iteration: jax.Array
    nothing: tuple[()] = ()


def random_state(seed: int, width: int = 40) -> Nested:
    """Returns a state of random numbers."""
    rng = np.random.default_rng(seed)
    params = {
        "w": jnp.asarray(rng.normal(size=(300, width)), jnp.float32),
        "half": jnp.asarray(rng.normal(size=9), jnp.bfloat16),
        "mask": jnp.asarray(rng.random(5) < 0.5),
        "small": jnp.asarray([np.float32(3e38), 1e-40, -0.0], jnp.float32),
    }
    key = jax.random.key(seed)
    return Nested(params, key, jax.random.split(key, 3), jnp.int32(seed))


def assert_equal(one: Any, two: Any) -> None:
    """Compares two states, dtypes and bits."""
    assert jax.tree.structure(one) == jax.tree.structure(two)
    for a, b in zip(arrays(one), arrays(two), strict=True):
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes()
