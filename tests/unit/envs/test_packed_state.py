"""A game's state as one array and back."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs.adapters.packed_state import packed, unpacked


class State(NamedTuple):
    """Of a game that keeps a typed key, which no game of the package does."""

    key: Any
    flags: Any
    small: Any
    wide: Any


class Keeps:
    """A game as far as packing asks for one."""

    def init(self, key: Any) -> State:
        """Deals."""
        return State(key, jnp.array([True, False, True]), jnp.int8(-3), jnp.array([[1.5, -2.0]], jnp.float32))


@pytest.mark.parametrize("name", ["gin_rummy", "kuhn_poker", "rummy500", "phantom_ttt", "typed keys"])
def test_a_packed_state_comes_back(name: str) -> None:
    """Every array to the bit, its dtype and shape too."""
    game: Any = Keeps() if name == "typed keys" else envs.make(name)
    state = jax.jit(game.init)(jax.random.key(7))
    found = jax.jit(lambda state: unpacked(game, packed(state)))(state)
    assert jax.tree.structure(found) == jax.tree.structure(state)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(state), strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        is_key = jax.dtypes.issubdtype(one.dtype, jax.dtypes.prng_key)
        plain = [jax.random.key_data(x) if is_key else x for x in (one, other)]
        np.testing.assert_array_equal(*map(np.asarray, plain))
