"""Are the operands of a product in lower precision rounded in its backward pass too, and sums and gradients not?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from dream_support import CoinGame

from dream.networks import make_network
from dream.networks.products import product

ROWS = [(5, 7), (2, 3, 7), (7,)]
"""Shapes of x: a batch, a batch of batches, one row."""


@pytest.mark.parametrize("shape", ROWS, ids=str)
def test_gradients_are_those_of_rounded_operands(shape: tuple[int, ...]) -> None:
    """Sums in double precision of operands that NumPy rounded: float32 sums are within 1e-5, bfloat16 ones 4e-3 off."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=shape).astype(np.float32), rng.normal(size=(7, 4)).astype(np.float32)
    dy = rng.normal(size=(*shape[:-1], 4)).astype(np.float32)
    out, pull = jax.vjp(lambda x, w: product(x, w, jnp.bfloat16), x, w)
    dx, dw = pull(dy)
    rounded = [np.asarray(a, ml_dtypes.bfloat16).astype(np.float64) for a in (x, w, dy)]
    rows = [a.reshape(-1, a.shape[-1]) for a in (rounded[0], rounded[2])]
    expected = (rounded[0] @ rounded[1], rounded[2] @ rounded[1].T, rows[0].T @ rows[1])
    for found, right in zip((out, dx, dw), expected, strict=True):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-5)
    exact = dy.reshape(-1, 4).astype(np.float64)
    assert np.abs(dw - x.reshape(-1, 7).T.astype(np.float64) @ exact).max() > 1e-4  # it does round


def test_lanes_have_gradients_of_their_own() -> None:
    """Under vmap, over parameters and rows: equal to one call for each."""
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=(3, 5, 7)).astype(np.float32), rng.normal(size=(3, 7, 4)).astype(np.float32)
    gradient = jax.grad(lambda x, w: (product(x, w, jnp.bfloat16) ** 2).sum(), argnums=(0, 1))
    for found, each in zip(jax.vmap(gradient)(x, w), zip(*map(gradient, x, w), strict=True), strict=True):
        np.testing.assert_allclose(found, np.stack(each), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    "node",
    [{"name": "dueling", "hidden": [16, 8]}, {"name": "simba", "width": 16, "blocks": 1}],
    ids=lambda n: n["name"],
)
def test_no_product_mixes_precisions(node: dict[str, Any], dtype: str) -> None:
    """A product of float32 and bfloat16 would run in float32: forward and backward, all operands of a product agree."""
    game = CoinGame()
    network = make_network({**node, "dtype": dtype}, game)
    params = jax.jit(network.init)(jax.random.key(0))
    observations = jnp.ones((4, game.observation_size))

    def loss(params: Any) -> Any:
        return sum(jnp.sum(x**2) for x in jax.tree.leaves(network.apply(params, observations)))

    kinds = [
        tuple(v.aval.dtype.name for v in eqn.invars) for eqn in _products(jax.make_jaxpr(jax.grad(loss))(params).jaxpr)
    ]
    assert {len(set(kind)) for kind in kinds} == {1}
    hidden = {"dueling": 2, "simba": 3}[node["name"]]  # each has its forward product and two backward
    assert sum(kind[0] == "bfloat16" for kind in kinds) == (3 * hidden if dtype == "bfloat16" else 0)


def _products(jaxpr: jex.Jaxpr) -> Iterator[Any]:
    """Yields the matrix products of a program and of the programs within."""
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "dot_general":
            yield eqn
        for value in jax.tree.leaves(
            list(eqn.params.values()), is_leaf=lambda x: hasattr(x, "eqns") or hasattr(x, "jaxpr")
        ):
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                yield from _products(inner)
