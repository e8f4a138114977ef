"""Are the matrix products of a program all found, as often as it takes them?"""

from __future__ import annotations

import importlib
from types import ModuleType

import jax
import jax.numpy as jnp
import pytest
from command_support import REPO
from jax import lax


@pytest.fixture
def products(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module next to the benchmarks."""
    monkeypatch.syspath_prepend(REPO / "experiments" / "benchmarks")
    return importlib.import_module("products")


def test_a_gradient_has_five_products(products: ModuleType) -> None:
    """Two layers: two forward, two for the weights, one for what the second hands back; 2 m n k operations each."""

    def loss(weights: list[jax.Array], x: jax.Array) -> jax.Array:
        return jnp.sum((jnp.tanh(x @ weights[0]) @ weights[1]) ** 2)

    weights, x = [jnp.zeros((3, 5)), jnp.zeros((5, 2))], jnp.zeros((7, 3))
    found, loops = products.products_of(jax.jit(jax.grad(loss)), weights, x)
    assert not loops
    assert sum(found.values()) == 5
    assert sum(n * product.operations for product, n in found.items()) == 2 * 7 * (2 * 3 * 5 + 3 * 5 * 2)


def test_loops_are_told_apart(products: ModuleType) -> None:
    """A scan counts by its length, a while loop by itself, with what loops inside it; a loop without products not."""
    x, w = jnp.ones((4, 3)), jnp.ones((3, 3))

    def turn(at: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        return at[0] + 1, lax.fori_loop(0, at[0], lambda n, x: x @ w, at[1] @ w)

    def function(x: jax.Array) -> jax.Array:
        x = lax.scan(lambda x, _: (x @ w, None), x, length=6)[0]
        x = lax.while_loop(lambda at: at[0] < 5, turn, (jnp.int32(0), x))[1]
        return lax.while_loop(lambda x: jnp.sum(x) < 9, lambda x: x + 1, x)

    found, loops = products.products_of(function, x)
    assert sum(found.values()) == 6
    assert [sum(loop.values()) for loop in loops] == [2]


def test_the_floor_is_a_time(products: ModuleType) -> None:
    """One for each repeat."""
    x = jnp.ones((16, 16))
    once, _ = products.products_of(jnp.matmul, x, x)
    seconds = products.floor(once, 2)
    assert len(seconds) == 2
    assert all(second > 0 for second in seconds)
