"""Does a function cut into calls give what it gives in one, bit for bit, and how often can the host look up?"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from dream.compiled import bounded
from dream.compiled.bounded import BoundedCalls, long_loop, long_scan, settled, whole


def _walk(x: Array, key: Array) -> tuple[dict[str, Array], Array, Array]:
    """Two loops and a scan, each needing what came before; the second holds a loop of its own."""
    scaled = jnp.sin(x) * 3

    def inner(at: tuple[Array, Array]) -> tuple[Array, Array]:
        n, y = at
        return n + 1, long_loop(lambda z: z[0] < 3, lambda z: (z[0] + 1, jnp.cos(z[1] + scaled)), (0, y))[1]

    _, first = long_loop(lambda at: at[0] < 37, lambda at: (at[0] + 1, jnp.tanh(at[1]) + scaled), (0, x))
    middle = settled({"m": first / 7})["m"]
    _, second = long_loop(lambda at: at[0] < 5, inner, (0, middle))
    carry, rows = long_scan(lambda c, k: (c + jax.random.normal(k), c * 2), second[0], jax.random.split(key, 11))
    return {"a": second, "x": x}, carry, rows


def _counted(calls: Generator[None, None, Any]) -> tuple[Any, int]:
    times = 0
    while True:
        try:
            next(calls)
        except StopIteration as end:
            return end.value, times
        times += 1


def _assert_same(one: Any, two: Any) -> None:
    assert jax.tree.structure(one) == jax.tree.structure(two)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        assert (a.dtype, np.asarray(a).tobytes()) == (b.dtype, np.asarray(b).tobytes())


def test_cut_or_not_the_results_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """One turn a call, then as many as fit: the arguments are as they were, and every loop was cut."""
    x, key = jnp.linspace(-1, 1, 5), jax.random.key(3)
    kept = np.asarray(x).copy()
    expected = jax.jit(_walk)(x, key)
    calls = BoundedCalls(_walk)
    monkeypatch.setattr(bounded, "CALL_SECONDS", 0.0)
    result, looks = _counted(calls(x, key))
    _assert_same(result, expected)
    assert looks == 37 + 5 + 11
    monkeypatch.setattr(bounded, "CALL_SECONDS", 1e9)
    _assert_same(whole(calls(x, key)), expected)
    _, looks = _counted(calls(x, key))
    assert looks < 8, "the turns of a call have grown"
    assert np.asarray(x).tobytes() == kept.tobytes()


def test_a_function_without_loops_is_one_call() -> None:
    """And one that is left in the middle can be called again."""
    assert _counted(BoundedCalls(lambda x: x + 1)(jnp.float32(2))) == (3, 0)
    calls = BoundedCalls(_walk)
    left = calls(jnp.ones(5), jax.random.key(0))
    next(left)
    left.close()
    _assert_same(whole(calls(jnp.ones(5), jax.random.key(0))), jax.jit(_walk)(jnp.ones(5), jax.random.key(0)))


def test_double_precision() -> None:
    """Inside the calls alone: who looks up between them is in single precision."""

    def halved(x: Array) -> Array:
        return long_loop(lambda at: at[0] < 60, lambda at: (at[0] + 1, at[1] / 2), (0, x))[1]

    calls = BoundedCalls(halved, x64=True)(np.float64(1) / 3)
    next(calls)
    assert jnp.asarray(1.5).dtype == jnp.float32
    result = whole(calls)
    assert (result.dtype, float(result)) == (np.float64, (1 / 3) * 2.0**-60)


def test_a_loop_begins_once() -> None:
    """What gives the first carry is traced where the loop begins, and not in the parts that go on with it or after."""
    began = []

    def halved(x: jax.Array) -> jax.Array:
        def start() -> tuple[jax.Array, jax.Array]:
            began.append(None)
            return jnp.int32(0), x

        return long_loop(lambda at: at[0] < 60, lambda at: (at[0] + 1, at[1] / 2), start)[1] + 1

    assert float(whole(BoundedCalls(halved)(jnp.float32(2.0**60)))) == 2.0
    assert len(began) == 1
    assert float(jax.jit(halved)(jnp.float32(2.0**60))) == 2.0


def test_a_scan_may_say_what_its_outputs_are_like() -> None:
    """Then its body is traced for its turns alone; the results are those of the body."""
    traced = []

    def summed(x: Array, output: Callable[..., Any] | None) -> tuple[Array, Array]:
        def body(carry: Array, row: Array) -> tuple[Array, Array]:
            traced.append(None)
            return carry + row, carry * row

        return long_scan(body, jnp.float32(0), x, output)

    x = jnp.arange(1.0, 6.0)
    expected = whole(BoundedCalls(functools.partial(summed, output=None))(x))
    assert len(traced) == 2
    result = whole(BoundedCalls(functools.partial(summed, output=lambda carry, row: row))(x))
    assert len(traced) == 3
    _assert_same(result, expected)
    _assert_same(result, jax.jit(functools.partial(summed, output=None))(x))
