"""Many short iterations in one compiled loop: what each reports is kept in rows, and the host looks up once for all.

A turn of the loop is one update, and the learner's state is all that goes from one turn to the next. So the same
compiled turn gives the same bits however many iterations are asked for at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from dream.compiled.bounded import long_loop

MOST = 1024
"""Iterations of one call whose reports are kept."""


def run_iterations(
    update: Callable[[Any], Any], report: Callable[[Any], Any], state: Any, updates: int, iterations: Array | int
) -> tuple[Any, Any]:
    """Runs iterations of some updates each.

    Args:
      update: state -> the state after one update, a pytree of arrays with the same shapes and types.
      report: state after an iteration -> pytree of arrays.
      state: the first.
      updates: of one iteration.
      iterations: how many; the reports of the first MOST are kept.
    Returns:
      (the state after all of them, the reports with a leading axis [MOST], zeros past the last).
    """

    def turn(at: tuple[Array, Any, Any]) -> tuple[Array, Any, Any]:
        done, state, rows = at
        state, done = update(state), done + 1

        def written() -> Any:
            n = done // updates - 1
            return jax.tree.map(lambda row, x: row.at[n].set(x, mode="drop"), rows, report(state))

        return done, state, written() if updates == 1 else lax.cond(done % updates == 0, written, lambda: rows)

    shapes = jax.eval_shape(report, state)
    rows = jax.tree.map(lambda x: jnp.zeros((MOST, *x.shape), x.dtype), shapes)
    last = jnp.asarray(iterations, jnp.int64) * updates
    _, state, rows = long_loop(lambda at: at[0] < last, turn, (jnp.int64(0), state, rows))
    return state, rows
