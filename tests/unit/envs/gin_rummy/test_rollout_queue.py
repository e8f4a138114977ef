"""The queue of rollouts: each is played to its own end, whichever slot and turn it gets."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from envs.gin_rummy.players import rollout_queue


@pytest.mark.parametrize("count", [1, 7, 256, 1000])
def test_each_rollout_comes_to_its_end(count: int) -> None:
    """Collatz sequences: how many steps each takes to 1, most of them less than the few that take longest."""
    start = np.arange(1, count + 1)
    most = 120

    def step(state: tuple[Array, Array], numbers: Array) -> tuple[Array, Array]:
        value, steps = state
        odd = value % 2 == 1
        after = jnp.where(odd, 3 * value + jnp.asarray(np.ones(count, np.int32))[numbers], value // 2)
        return jnp.where(value > 1, after, value), steps + (value > 1)

    def run(values: Array) -> Array:
        state = values, jnp.zeros_like(values)
        return rollout_queue.finish(step, lambda state: state[0] > 1, lambda state: jnp.stack(state), state, most)

    value, steps = jax.device_get(jax.jit(run)(jnp.asarray(start, jnp.int32)))
    for number, (last, taken) in enumerate(zip(value, steps, strict=True), 1):
        wanted, n = number, 0
        while wanted > 1 and n < most:
            wanted, n = (3 * wanted + 1 if wanted % 2 else wanted // 2), n + 1
        assert (last, taken) == (wanted, n)
