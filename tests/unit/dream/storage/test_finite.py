"""Every array of every learner's state is finite, so that one that is not is a fault; and that one is named."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from dream import algorithms
from dream.config.compose import compose_config
from dream.storage import finite
from dream.storage.finite import not_finite


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, jnp.bfloat16])
def test_the_array_is_named(value: float, dtype: np.dtype) -> None:
    """On the host and on the device, in any precision, among integers, masks and keys, which are passed over."""
    for make in (np.array, *([jnp.array] if dtype != np.float64 else [])):
        tree = {"n": np.arange(3), "w": [make([1.0, value, value], dtype)], "mask": np.ones(2, bool)}
        tree |= {"key": jax.random.key(0), "empty": np.zeros((0, 4), np.float32)}
        assert not_finite(tree) == "w.0 is not finite (2 of 3 values)"
        tree["w"] = [make([1.0, -0.0, 2.0], dtype)]
        assert not_finite(tree) is None


def test_numbers_of_double_precision_are_not_rounded() -> None:
    """1e300 is finite, as a solver's sums on the host may be, although single precision has no such number."""
    assert not_finite({"sums": np.array([1e300])}) is None
    assert not_finite({}) is None
    assert not_finite(jnp.float32(jnp.nan)) == "the array is not finite (1 of 1 values)"


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, jnp.bfloat16])
def test_squares_that_overflow_are_no_fault(dtype: np.dtype) -> None:
    """The largest numbers of each precision are finite; one that is not is found among them, wherever it is."""
    largest = jnp.finfo(dtype).max
    x = np.full(1000, largest, dtype)
    assert not_finite([x, np.ones(3), -x]) is None
    for place in (0, 500, 999):
        wrong = x.copy()
        wrong[place] = np.nan
        assert not_finite([x, wrong]) == "1 is not finite (1 of 1,000 values)"


@pytest.mark.parametrize("elsewhere", [False, True])
def test_arrays_of_the_device_and_of_the_host(monkeypatch: pytest.MonkeyPatch, elsewhere: bool) -> None:
    """Both in one tree, in double precision; also where the device has a memory of its own, as a GPU does."""
    if elsewhere:
        place = finite._place
        monkeypatch.setattr(finite, "_place", lambda dtype, where: place(dtype, where) + (where is not None))
    with jax.enable_x64(True):
        for wrong in range(2):
            parts = [np.array([1.0, np.inf if n == wrong else 1e300]) for n in range(2)]
            tree = [jnp.asarray(parts[0]), parts[1]]
            assert not_finite(tree) == f"{wrong} is not finite (1 of 2 values)"
        assert not_finite([jnp.asarray([1e300]), np.array([1e300])]) is None


@pytest.mark.parametrize("name", algorithms.names())
def test_no_learner_keeps_infinities(name: str) -> None:
    """At the start and after an iteration."""
    node = compose_config("config", [f"algo={name}", "env=kuhn_poker", "preset=tiny"]).node
    learner = algorithms.make(node.algo, node.network, envs.make("kuhn_poker"))
    state = learner.init(jax.random.key(1))
    assert not_finite(state) is None
    assert not_finite(learner.iterate(state)[0]) is None
