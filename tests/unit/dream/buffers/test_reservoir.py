"""Is a reservoir a uniform sample of all it was offered, and a window the newest of it?"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dream.buffers import reservoir

CAPACITY, OFFERED, TRIALS = 8, 40, 4000


def _offer(kind: str, sizes: tuple[int, ...], key: jax.Array) -> reservoir.ReservoirBuffer:
    """Offers the numbers 1, 2, ... in calls of some sizes, every call with as many rows that are not valid."""
    memory = reservoir.empty({"x": jnp.int32(0)}, CAPACITY)
    first = 1
    for n, size in enumerate(sizes):
        rows = jnp.where(np.arange(2 * size) % 2 == 0, first + np.arange(2 * size) // 2, -1)
        valid = np.arange(2 * size) % 2 == 0
        memory = reservoir.add(memory, {"x": rows}, jnp.asarray(valid), jax.random.fold_in(key, n), kind=kind)
        first += size
    return memory


def _kept(kind: str, sizes: tuple[int, ...], *, seen: int = OFFERED) -> np.ndarray:
    """Returns what is held after each of many trials: int[TRIALS, CAPACITY]; `seen` is what a buffer should count."""
    trial = jax.jit(jax.vmap(functools.partial(_offer, kind, sizes)))
    memory = trial(jax.random.split(jax.random.key(0), TRIALS))
    assert np.all(memory.seen == seen)
    return np.asarray(memory.rows["x"])


@pytest.mark.parametrize("sizes", [(OFFERED,), (3, 20, 1, 16), (1,) * 9 + (31,)], ids=["at once", "uneven", "by ones"])
def test_reservoir_is_uniform(sizes: tuple[int, ...]) -> None:
    """Every row is held with chance C / n, none twice; chi-square over the rows, 5 standard deviations wide."""
    kept = _kept("reservoir", sizes)
    assert kept.min() >= 1
    assert all(len(set(row)) == CAPACITY for row in kept)
    counts, chance = np.bincount(kept.ravel(), minlength=OFFERED + 1)[1:], CAPACITY / OFFERED
    statistic = np.sum((counts - TRIALS * chance) ** 2 / (TRIALS * chance * (1 - chance)))
    assert abs(statistic - OFFERED) < 5 * np.sqrt(2 * OFFERED)


def test_first_row_that_does_not_fit_is_kept_with_the_right_chance() -> None:
    """C / (C + 1), not C / C: a count taken one too early would always keep it."""
    kept = _kept("reservoir", (CAPACITY, 1), seen=CAPACITY + 1)
    share = np.mean(np.any(kept == CAPACITY + 1, axis=1))
    chance = CAPACITY / (CAPACITY + 1)
    assert abs(share - chance) < 5 * np.sqrt(chance * (1 - chance) / TRIALS)


def test_pairs_are_as_frequent_as_in_a_uniform_sample() -> None:
    """Rows of one call and of different calls are held together with chance C (C - 1) / (n (n - 1))."""
    kept = _kept("reservoir", (20, 20))
    held = np.zeros((TRIALS, OFFERED + 1))
    np.put_along_axis(held, kept, 1.0, axis=1)
    together = (held.T @ held / TRIALS)[1:, 1:][np.triu_indices(OFFERED, 1)]
    chance = CAPACITY * (CAPACITY - 1) / (OFFERED * (OFFERED - 1))
    error = (together - chance) / np.sqrt(chance * (1 - chance) / TRIALS)
    assert np.abs(error).max() < 5
    assert 0.85 < error.std() < 1.15


@pytest.mark.parametrize("sizes", [(3, 4), (5, 5, 7, 2), (CAPACITY, 3)])
def test_window_holds_the_newest(sizes: tuple[int, ...]) -> None:
    """Also after it has wrapped."""
    total = sum(sizes)
    held = np.asarray(_offer("fifo", sizes, jax.random.key(0)).rows["x"])
    assert sorted(held[held > 0]) == list(range(max(1, total - CAPACITY + 1), total + 1))


def test_window_smaller_than_a_call_holds_rows_of_all_of_it() -> None:
    """Not its end alone, where games end: each row with chance C / n, those of a later small call surely."""
    kept = _kept("fifo", (3, OFFERED - 5, 2), seen=3 + CAPACITY + 2)
    assert all(len(set(row)) == CAPACITY for row in kept)
    shares = np.mean([np.isin(np.arange(1, OFFERED + 1), row) for row in kept], axis=0)
    chance = (CAPACITY - 2) / (OFFERED - 5)
    assert not shares[:3].any()
    assert shares[-2:].all()
    assert np.abs(shares[3:-2] - chance).max() < 5 * np.sqrt(chance * (1 - chance) / TRIALS)


@pytest.mark.parametrize("kind", reservoir.KINDS)
def test_count_does_not_run_over(kind: str) -> None:
    """After 2^31 rows and more a buffer is full, and the next row of a window has the place after the last one's."""
    memory = reservoir.empty({"x": jnp.int32(0)}, CAPACITY)
    memory = memory._replace(seen=jnp.int32(2**30 - 2))
    for n in range(8):
        rows = {"x": jnp.arange(1, 3) + 2 * n}
        memory = reservoir.add(memory, rows, jnp.ones(2, bool), jax.random.key(n), kind=kind)
    assert int(reservoir.filled(memory)) == CAPACITY
    assert 2**28 < int(memory.seen) < 2**30
    if kind == "fifo":
        assert sorted(np.asarray(memory.rows["x"])) == list(range(9, 17))


@pytest.mark.parametrize(("sizes", "count"), [((3,), 3), ((CAPACITY,), 8), ((30, 5), 8)])
def test_draws_come_from_rows_held_only(sizes: tuple[int, ...], count: int) -> None:
    """Never from places without a row; all that is held is drawn; the mean is theirs."""
    memory = _offer("fifo", sizes, jax.random.key(0))
    assert int(reservoir.filled(memory)) == count
    drawn = np.asarray(reservoir.sample(memory, jax.random.key(1), 400)["x"])
    held = np.asarray(memory.rows["x"])[np.asarray(reservoir.held(memory))]
    assert set(drawn) == set(held)
    assert reservoir.mean(memory, memory.rows["x"].astype(float)) == pytest.approx(held.mean())
