"""Sequential halving on bandits whose arms are known."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dream.search import halving

MEANS = np.array([0.0, -1.0, 0.5, 1.0, -0.5, 0.2, -2.0], np.float32)
ALL = np.ones(len(MEANS), bool)
PULLS, RUNS = 56, 200


@jax.jit
@functools.partial(jax.vmap, in_axes=(None, None, None, None, 0))
def _play(means: Any, valid: Any, evidence: Any, brackets: Any, key: Any) -> tuple[Any, halving.Tally]:
    """Returns the arm chosen, and the tally; an arm brings its mean, the world's share and noise of its own."""

    def one(n: Any, tally: halving.Tally) -> halving.Tally:
        world_key, noise_key = jax.random.split(jax.random.fold_in(key, n))
        luck = 5.0 * jax.random.normal(world_key, (PULLS,))
        noise = jax.random.normal(noise_key, (PULLS, len(MEANS)))

        def pull(arm: Any, world: Any, needed: Any) -> Any:
            return jnp.where(needed, means[arm] + luck[world] + noise[world, arm], jnp.nan)

        return halving.bracket(tally, valid, PULLS, pull)

    tally = jax.lax.fori_loop(0, brackets, one, halving.empty(len(MEANS)))
    return halving.chosen(tally, valid, evidence), tally


def _runs(means: np.ndarray, valid: np.ndarray, evidence: float, brackets: int, seed: int) -> Any:
    keys = jax.random.split(jax.random.key(seed), RUNS)
    return jax.device_get(_play(means, valid, np.float32(evidence), np.int32(brackets), keys))


@pytest.fixture(scope="module")
def played() -> tuple[np.ndarray, halving.Tally]:
    """The arms chosen in many runs of four brackets."""
    return _runs(MEANS, ALL, 1.0, 4, 2)


def test_the_best_arm_is_found(played: tuple[np.ndarray, halving.Tally]) -> None:
    """In nine runs of ten: worlds are shared, and their luck, five times the noise, cancels out."""
    assert np.mean(played[0] == MEANS.argmax()) > 0.9


def test_gains_are_unbiased_and_their_errors_right(played: tuple[np.ndarray, halving.Tally]) -> None:
    """Of the arm that always goes on; and better arms are looked at in more worlds."""
    tally = played[1]
    best = int(MEANS.argmax())
    gain, error = tally.mean[:, best], tally.error[:, best]
    assert abs(gain.mean() - MEANS[best]) < 4 * gain.std() / np.sqrt(RUNS) + 0.02
    assert error.mean() == pytest.approx(gain.std(), rel=0.25)
    mean_count = tally.count.mean(axis=0)
    assert mean_count[best] > 2 * mean_count[MEANS.argmin()]
    assert np.all(tally.count[:, 0] == tally.count.max(axis=1))
    assert np.all(tally.mean[:, 0] == 0)


def test_without_evidence_the_first_arm_stays() -> None:
    """All arms alike: at three standard errors another is seldom chosen, at none nearly always."""
    strict, loose = (_runs(np.zeros_like(MEANS), ALL, evidence, 4, 3)[0] for evidence in (3.5, 0.0))
    assert np.mean(strict != 0) < 0.05
    assert np.mean(loose != 0) > 0.5


def test_arms_that_are_not_there_are_never_pulled() -> None:
    """Though one of them would be the best; what is not asked for is not a number, and counts for nothing."""
    valid = np.array([True, True, False, False, True, False, False])
    arm, tally = _runs(MEANS, valid, 0.0, 2, 0)
    assert set(arm) <= {0, 1, 4}
    assert np.all(tally.count[:, ~valid] == 0)
    assert np.all(np.isfinite(tally.sums))
    assert not halving.is_open(jax.tree.map(lambda x: x[0], tally), valid, jnp.float32(0.0))


def test_one_arm_alone_needs_no_pull() -> None:
    """Nothing is looked at."""
    arm, tally = _runs(MEANS, np.arange(len(MEANS)) == 0, 0.0, 2, 0)
    assert not np.any(arm)
    assert tally.count.sum() == 0


def test_an_eliminated_arm_stays_out_of_its_bracket() -> None:
    """Of seven arms alike three go on and then two, whatever means are later: 8, 18 and 28 worlds a round."""
    _, tally = _runs(np.zeros_like(MEANS), ALL, 0.0, 1, 4)
    expected = [8] * 4 + [8 + 18] + [8 + 18 + 28] * 2
    np.testing.assert_array_equal(np.sort(tally.count, axis=1), np.tile(expected, (RUNS, 1)))
