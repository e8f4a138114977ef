"""Draws under a condition that hardly a proposal fulfils: each that does comes as often, and a failure is said."""

from __future__ import annotations

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs.gin_rummy.core.rejection import PARTICLES, annealed

GROUPS, SIZE, CHOSEN = 4, 4, 5
"""Five of sixteen: those that hold a whole group of four are 48 of 4,368, and no single swap leads from one group's to
another's."""
TIMES = 16


def _start(key: Array) -> Array:
    noise = jax.random.uniform(key, (PARTICLES, GROUPS * SIZE))
    return jnp.argsort(jnp.argsort(noise, axis=1), axis=1) < CHOSEN


def _swapped(chosen: Array, key: Array) -> Array:
    noise = jax.random.uniform(key, (2, GROUPS * SIZE))
    moves = jnp.argmax(jnp.where(jnp.stack([chosen, ~chosen]), noise, -1.0), axis=1)
    return chosen ^ jnp.any(moves[:, None] == np.arange(GROUPS * SIZE), axis=0)


def _missing(chosen: Array, wanted: int) -> Array:
    return jnp.int32(wanted) - jnp.max(jnp.sum(chosen.reshape(GROUPS, SIZE), axis=1, dtype=jnp.int32))


def _draw(key: Array, wanted: int = SIZE) -> tuple[Array, Array]:
    start_key, key = jax.random.split(key)
    return annealed(_start(start_key), _swapped, functools.partial(_missing, wanted=wanted), key)


def test_all_that_fit_are_equally_likely() -> None:
    """Against the list, by chi-square: within five standard deviations of what draws that are exact would give."""
    every = [np.isin(np.arange(GROUPS * SIZE), them) for them in itertools.combinations(range(GROUPS * SIZE), CHOSEN)]
    listed = {tuple(one.tolist()) for one in every if one.reshape(GROUPS, SIZE).sum(axis=1).max() == SIZE}
    keys = jax.random.split(jax.random.key(0), TIMES * len(listed))
    drawn, fits = jax.device_get(jax.jit(lambda keys: lax.map(_draw, keys))(keys))
    assert fits.all()
    found, counts = np.unique(drawn, axis=0, return_counts=True)
    assert {tuple(one) for one in found.tolist()} == listed
    assert abs(np.sum((counts - TIMES) ** 2 / TIMES) - len(listed)) < 5 * np.sqrt(2 * len(listed))
    groups = np.bincount(np.argmax(drawn.reshape(-1, GROUPS, SIZE).sum(axis=2), axis=1), minlength=GROUPS)
    assert np.all(np.abs(groups - len(keys) / GROUPS) < 5 * np.sqrt(len(keys) * 3 / 16))


def test_where_nothing_fits_the_nearest_is_returned() -> None:
    """Five of a group of four; what comes back is said not to fit."""
    drawn, fits = jax.device_get(jax.jit(functools.partial(_draw, wanted=SIZE + 1))(jax.random.key(1)))
    assert not fits
    assert int(_missing(drawn, SIZE + 1)) == 1
