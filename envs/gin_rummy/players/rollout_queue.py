"""Rollouts of unequal length side by side: a slot whose rollout has ended takes up the next one.

Played in lockstep, all lanes of a batch take as many turns as the longest; of rounds that is three times the mean.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

_SLOTS = 256
"""Rollouts in play at a time: enough to fill the lanes of a CPU, few enough that the last ones do not matter."""
_TURNS = 3
"""Turns between two looks at which slots are free, as moving rollouts in and out costs as much as a turn."""


def finish(
    step: Callable[[Any, Array], Any],
    goes_on: Callable[[Any], Array],
    keep: Callable[[Any], Array],
    start: Any,
    most: int,
) -> Array:
    """Plays rollouts to their ends.

    Args:
      step: (states, numbers of the rollouts int32[n]) -> the states one turn on, those that are over unchanged; arrays
        [..., n], on any number n of rollouts.
      goes_on: states -> bool[n], which are in play.
      keep: states -> [k, n], what is wanted of them.
      start: states, arrays [..., N].
      most: turns of a rollout after which it is left as it is, rounded up to a multiple of three.
    Returns:
      What is wanted of the last states: [k, N].
    """
    waiting = goes_on(start)
    total, count = waiting.shape[0], jnp.sum(waiting, dtype=jnp.int32)
    # The n-th rollout in play is the first whose running count reaches n + 1; past the last it is `total`.
    order = jnp.searchsorted(jnp.cumsum(waiting), np.arange(1, total + 1)).astype(jnp.int32)
    slots = min(_SLOTS, total)

    def picked(numbers: Array) -> Any:
        return jax.tree.map(lambda x: x[..., jnp.minimum(numbers, total - 1)], start)

    def body(carry: tuple[Array, Array, Array, Any, Array]) -> tuple[Array, Array, Array, Any, Array]:
        begun, numbers, turn, states, ends = carry
        known = jnp.minimum(numbers, total - 1)
        after = lax.fori_loop(0, _TURNS, lambda _, states: step(states, known), states)
        turn = turn + _TURNS
        ended = ~goes_on(after) | (turn >= most)
        ends = ends.at[:, jnp.where(ended, numbers, total)].set(keep(after), mode="drop")
        places = begun + jnp.cumsum(ended, dtype=jnp.int32) - 1
        new = jnp.where(places < count, order[jnp.minimum(places, total - 1)], total)
        numbers = jnp.where(ended, new, numbers)
        states = jax.tree.map(lambda x, y: jnp.where(ended, x, y), picked(numbers), after)
        return begun + jnp.sum(ended, dtype=jnp.int32), numbers, jnp.where(ended, 0, turn), states, ends

    first = jnp.where(np.arange(slots) < count, order[:slots], total)
    carry = (jnp.int32(slots), first, jnp.zeros(slots, jnp.int32), picked(first), keep(start))
    return lax.while_loop(lambda carry: jnp.any(carry[1] < total), body, carry)[-1]
