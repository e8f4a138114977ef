"""Run in a process of its own, with JAX_ENABLE_X64=1: prints which types of each game are not what they promise."""

from __future__ import annotations

import contextlib
import json
import warnings
from typing import Any

import jax
import numpy as np

import envs
from envs import Game, InputError


def _dtypes(tree: Any) -> list[str]:
    return [str(x.dtype) for x in jax.tree.leaves(tree)]


def wrong(game: Game) -> list[str]:
    """Returns what has other types than in single precision."""
    key, number = jax.eval_shape(lambda: jax.random.key(0)), jax.ShapeDtypeStruct((), np.int32)
    state = jax.eval_shape(game.init, key)
    view = jax.eval_shape(game.view, state, number)
    stepped, rewards, _ = jax.eval_shape(game.step, state, number)
    states = {"step": stepped}
    with contextlib.suppress(InputError):  # what a view does not show cannot be dealt anew in every game
        states["determinize"] = jax.eval_shape(game.determinize, view, key)
    found = [name for name, other in states.items() if _dtypes(other) != _dtypes(state)]
    read = {"rewards": rewards, "encode": jax.eval_shape(game.encode, view)}
    read["potential"] = jax.eval_shape(game.potential, state, number)
    return found + [name for name, x in read.items() if x.dtype != np.float32]


if __name__ == "__main__":
    warnings.simplefilter("ignore", FutureWarning)  # numbers that are written into an array are cast to its type
    assert jax.config.read("jax_enable_x64")
    print(json.dumps({name: wrong(envs.make(name)) for name in envs.names()}))
