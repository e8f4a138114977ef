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


def finish(
    step: Callable[[Any, Any], Any], goes_on: Callable[[Any], Array], start: Any, constants: Any, most: int
) -> Any:
    """Plays rollouts to their ends.

    Args:
      step: (states, constants) -> the states one turn on; arrays [..., n], on any number n of rollouts.
      goes_on: states -> bool[n], which are in play.
      start: states, arrays [..., N].
      constants: what belongs to each rollout and does not change, arrays [..., N].
      most: turns of a rollout, after which it is left as it is.
    Returns:
      The last states, arrays [..., N].
    """
    waiting = goes_on(start)
    total, count = waiting.shape[0], jnp.sum(waiting, dtype=jnp.int32)
    # The n-th rollout in play is the first whose running count reaches n + 1; past the last it is `total`.
    order = jnp.searchsorted(jnp.cumsum(waiting), np.arange(1, total + 1)).astype(jnp.int32)
    slots = min(_SLOTS, total)

    def picked(values: Any, numbers: Array) -> Any:
        return jax.tree.map(lambda x: x[..., jnp.minimum(numbers, total - 1)], values)

    def body(carry: tuple[Array, Array, Array, Any, Any]) -> tuple[Array, Array, Array, Any, Any]:
        begun, numbers, turn, states, ends = carry
        after = step(states, picked(constants, numbers))
        turn = turn + 1
        ended = ~goes_on(after) | (turn >= most)
        done = jnp.where(ended, numbers, total)
        ends = jax.tree.map(lambda x, y: x.at[..., done].set(y, mode="drop"), ends, after)
        places = begun + jnp.cumsum(ended, dtype=jnp.int32) - 1
        new = jnp.where(places < count, order[jnp.minimum(places, total - 1)], total)
        numbers = jnp.where(ended, new, numbers)
        states = jax.tree.map(lambda x, y: jnp.where(ended, x, y), picked(start, numbers), after)
        return begun + jnp.sum(ended, dtype=jnp.int32), numbers, jnp.where(ended, 0, turn), states, ends

    first = jnp.where(np.arange(slots) < count, order[:slots], total)
    carry = (jnp.int32(slots), first, jnp.zeros(slots, jnp.int32), picked(start, first), start)
    return lax.while_loop(lambda carry: jnp.any(carry[1] < total), body, carry)[-1]
