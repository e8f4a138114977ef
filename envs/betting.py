"""Actions of small poker games, packed into integers: action + 1 in bits 2 i and 2 i + 1 for action i of a round."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs.game import Game

CODE_BITS = 2


def unpacked(bets: Array, slots: int) -> tuple[Array, Array]:
    """Returns (the actions of all rounds in their order int32[R * slots], how many there are int32).

    Args:
      bets: integer[R], one packed round each.
      slots: actions a round has room for.
    """
    codes = (bets.astype(jnp.int32)[:, None] >> CODE_BITS * np.arange(slots)) & (2**CODE_BITS - 1)
    codes = codes.reshape(-1)
    places = jnp.nonzero(codes > 0, size=codes.size, fill_value=0)[0]
    return codes[places] - 1, jnp.sum(codes > 0)


def played(game: Game, start: Any, actions: Array, count: Array) -> Any:
    """Returns the state that the first `count` of some actions lead to."""

    def body(t: Array, state: Any) -> Any:
        after = game.step(state, actions[t])[0]
        return jax.tree.map(lambda new, old: jnp.where(t < count, new, old), after, state)

    return lax.fori_loop(0, actions.shape[0], body, start)


def another(key: Array, cards: int, held: Array) -> Array:
    """Returns a card drawn uniformly among those not held: int32; `held` integer[n], some of which may be no cards."""
    free = ~(np.arange(cards) == held.astype(jnp.int32)[:, None]).any(axis=0)
    return jnp.argmax(jnp.where(free, jax.random.uniform(key, (cards,)), -1.0)).astype(jnp.int32)
