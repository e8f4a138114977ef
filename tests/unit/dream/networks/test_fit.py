"""The gradient loop and its optimizer against plain NumPy."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from dream.networks.fit import adam, fit

L2, MAX_NORM, RATE = 0.01, 1.0, 0.05
X = np.random.default_rng(0).normal(size=(6, 8, 3))
Y = np.random.default_rng(1).normal(size=(6, 8))
START = {"w": np.array([0.5, -1.0, 2.0]), "b": np.array(0.3)}


def _loss(params: dict, batch: tuple[Array, Array]) -> tuple[Array, dict[str, Array]]:
    x, y = batch
    error = x @ params["w"] + params["b"] - y
    loss = jnp.mean(error**2)
    return loss, {"loss": loss, "first": y[0]}


def _batch(n: Array) -> tuple[Array, Array]:
    return jnp.asarray(X, jnp.float32)[n], jnp.asarray(Y, jnp.float32)[n]


def _fitted(steps: int, rate: float = RATE, norm: float = MAX_NORM) -> tuple[dict, dict]:
    optimizer = adam(max_grad_norm=norm, l2=L2)
    params = {name: jnp.asarray(x, jnp.float32) for name, x in START.items()}
    params, _, reported = fit(
        _loss, optimizer, params, optimizer.init(params), _batch, learning_rate=rate, steps=jnp.int32(steps)
    )
    return params, reported


def _slow_fit(steps: int, rate: float = RATE, max_norm: float = MAX_NORM) -> tuple[np.ndarray, dict]:
    """Adam (Kingma and Ba 2015, algorithm 1) on the clipped gradient of loss + L2 * |params|^2, in NumPy."""
    p, first, second = np.array([*START["w"], START["b"]]), np.zeros(4), np.zeros(4)
    losses, norms = [], []
    for n in range(steps):
        x = np.c_[X[n], np.ones(8)]
        error = x @ p - Y[n]
        losses.append(np.mean(error**2))
        gradient = 2 * x.T @ error / 8
        norms.append(np.linalg.norm(gradient))
        gradient = gradient + 2 * L2 * p
        gradient = gradient * min(1.0, max_norm / np.linalg.norm(gradient))
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        p = p - rate * (first / (1 - 0.9 ** (n + 1))) / (np.sqrt(second / (1 - 0.999 ** (n + 1))) + 1e-8)
    return p, {"loss": np.mean(losses), "gradient_norm": np.mean(norms), "first": Y[:steps, 0].mean()}


@pytest.mark.parametrize("steps", [1, 6])
@pytest.mark.parametrize("norm", [0.5, 100.0])
def test_equals_adam_written_out(steps: int, norm: float) -> None:
    """Six minibatches in order, the clip at work or not, L2 in the gradient; diagnostics are means over the steps."""
    params, reported = _fitted(steps, norm=norm)
    expected, means = _slow_fit(steps, max_norm=norm)
    np.testing.assert_allclose([*params["w"], params["b"]], expected, rtol=1e-4)
    assert reported.keys() == means.keys()
    for name, mean in means.items():
        assert reported[name] == pytest.approx(mean, rel=1e-4)
    assert (means["gradient_norm"] > norm) == (norm == 0.5)


def test_first_step_is_as_long_as_the_learning_rate() -> None:
    """Adam's first step moves every parameter by the rate, whatever the gradient's size."""
    for rate in (0.05, 0.001):
        params, _ = _fitted(1, rate=rate)
        np.testing.assert_allclose(np.abs(np.asarray(params["w"]) - START["w"]), rate, rtol=1e-3)


def test_no_learning_rate_no_change() -> None:
    """Zero leaves the parameters as they were; the optimizer's state still moves on, so it scales nothing else."""
    params, _ = _fitted(4, rate=0.0)
    np.testing.assert_array_equal(params["w"], np.float32(START["w"]))


def test_no_step_no_change() -> None:
    """Nothing to learn from leaves the parameters as they were, with diagnostics of 0 and no division by it."""
    params, reported = _fitted(0)
    np.testing.assert_array_equal(params["w"], np.float32(START["w"]))
    assert {float(value) for value in reported.values()} == {0.0}


def test_l2_alone_shrinks_parameters() -> None:
    """With a loss that is flat, parameters go towards zero."""
    optimizer = adam(max_grad_norm=1.0, l2=L2)
    start = {"w": jnp.array([1.0, -2.0])}
    params, _, reported = fit(
        lambda p, b: (jnp.sum(p["w"] * 0.0), {}), optimizer, start, optimizer.init(start), lambda n: n,
        learning_rate=0.1, steps=5,
    )  # fmt: skip
    np.testing.assert_allclose(np.abs(params["w"]), [0.5, 1.5], atol=0.01)
    assert reported["gradient_norm"] == 0
