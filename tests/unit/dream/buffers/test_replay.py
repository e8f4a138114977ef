"""Replay: only valid rows, uniform draws, passes that visit every row once."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from dream.buffers.replay import Replay, batches_per_pass, collect, nth_of_passes, sample

SIZE, BATCH = 1007, 16
"""Places of every replay here, and rows of a minibatch of a pass: one compiled program serves all tests."""


def _replay(count: int) -> Replay:
    """Returns a replay whose valid rows hold 0..count-1, scattered over SIZE places, -1 elsewhere."""
    places = np.sort(np.random.default_rng(count).choice(SIZE, count, replace=False))
    rows = np.full(SIZE, -1)
    rows[places] = np.arange(count)
    return collect({"n": jnp.array(rows)[:, None]}, jnp.array(rows >= 0)[:, None])


@functools.partial(jax.jit, static_argnums=3)
def _batches(replay: Replay, key: Array, first: Array, number: int) -> Array:
    return jax.lax.map(lambda n: nth_of_passes(replay, key, n, BATCH)["n"], first + jnp.arange(number))


def _pass(replay: Replay, seed: int, number: int) -> np.ndarray:
    """Returns the rows of one pass, its last minibatch whole."""
    per_pass = int(batches_per_pass(replay, BATCH))
    rows = _batches(replay, jax.random.key(seed), jnp.int32(number * per_pass), -(-SIZE // BATCH))
    return np.asarray(rows)[:per_pass].reshape(-1)


def test_collect_drops_what_is_not_valid() -> None:
    """Rows of any shape, from [T, lanes], in order; the count is that of the valid ones."""
    valid = np.array([[True, False, True], [False, False, True]])
    rows = {"a": np.arange(6).reshape(2, 3), "b": np.arange(24).reshape(2, 3, 4)}
    replay = collect(rows, jnp.array(valid))
    assert replay.count == 3
    kept = jax.tree.map(lambda x: np.asarray(x[replay.index[:3]]), replay.rows)
    np.testing.assert_array_equal(kept["a"], rows["a"][valid])
    np.testing.assert_array_equal(kept["b"], rows["b"][valid])


def test_sample_is_uniform_over_the_valid_rows() -> None:
    """50 valid of 1007 places, 50,000 draws: chi-square of 49 degrees of freedom below its 99.99 % point, 94."""
    drawn = np.asarray(sample(_replay(50), jax.random.key(2), 50_000)["n"])
    assert drawn.min() >= 0
    counts = np.bincount(drawn, minlength=50)
    assert counts.size == 50
    assert np.sum((counts - 1000) ** 2 / 1000) < 94


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 100, 257, 1000])
def test_a_pass_visits_every_row_once(count: int) -> None:
    """Counts that are powers of four, one more, one less, and no multiple of the minibatch of 16.

    The last minibatch of a pass is filled up with the pass's first rows.
    """
    replay = _replay(count)
    for number in range(3):
        flat = _pass(replay, count, number)
        assert len(flat) == -(-count // BATCH) * BATCH
        np.testing.assert_array_equal(np.sort(flat[:count]), np.arange(count))
        np.testing.assert_array_equal(flat[count:], flat[np.arange(count, len(flat)) % count])


@pytest.mark.parametrize("count", [16, 100, 1000])
def test_orders_differ(count: int) -> None:
    """Between the passes of one key, and between keys; the same pass asked for twice is the same."""
    replay = _replay(count)
    orders = [tuple(_pass(replay, seed, n)[:count]) for seed in (1, 2) for n in range(4)]
    assert len(set(orders)) == 8
    assert tuple(_pass(replay, 2, 3)[:count]) == orders[-1]


def test_a_pass_is_well_mixed() -> None:
    """Over 400 passes of 112 rows the place of a row is spread evenly and neighbours do not stay together."""
    rows, passes = 112, 400
    orders = np.asarray(_batches(_replay(rows), jax.random.key(7), jnp.int32(0), passes * 7)).reshape(passes, rows)
    places, spread = np.argsort(orders, axis=1), np.sqrt((rows**2 - 1) / 12)
    assert np.all(np.abs(places.mean(axis=0) - (rows - 1) / 2) < 5 * spread / np.sqrt(passes))
    assert np.all(np.abs(places.std(axis=0) / spread - 1) < 0.15)
    assert np.mean(np.diff(orders, axis=1) == 1) < 1.5 / rows
