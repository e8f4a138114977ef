"""where_needed is a select and lanes_last is vmap: batching changes the cost of a function, never its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from envs.batching import computed_once, lanes_last, traced_for, where_needed

MASKS: dict[str, Callable[[int], np.ndarray]] = {
    "none": lambda n: np.zeros(n, bool),
    "all": lambda n: np.ones(n, bool),
    "first": lambda n: np.arange(n) == 0,
    "last": lambda n: np.arange(n) == n - 1,
    "some": lambda n: np.random.default_rng(n).random(n) < 0.3,
}


def _costly(x: Array, pair: tuple[Array, Array]) -> dict[str, Array]:
    """Returns two results of different shape and type."""
    return {"number": x * 2 + pair[0], "row": jnp.arange(3) * pair[1] + x}


def _chosen(needed: Array, x: Array, pair: tuple[Array, Array], otherwise: dict[str, Array]) -> dict[str, Array]:
    return where_needed(needed, _costly, otherwise, x, pair)


def _arguments(n: int) -> tuple[Array, tuple[Array, Array], dict[str, Array]]:
    x = jnp.arange(n, dtype=jnp.int32)
    otherwise = {"number": -x.astype(jnp.float32), "row": jnp.full((n, 3), -7, jnp.int32)}
    return x, (x % 5, x % 3), otherwise


def _expected(needed: np.ndarray, arguments: tuple) -> dict[str, np.ndarray]:
    """Selects with NumPy after computing every lane."""
    x, pair, otherwise = arguments
    results = jax.vmap(_costly)(x, pair)
    return {
        "number": np.where(needed, results["number"], otherwise["number"]),
        "row": np.where(needed[:, None], results["row"], otherwise["row"]),
    }


def _assert_same(out: Any, expected: dict[str, np.ndarray], otherwise: dict[str, Array]) -> None:
    for name, value in expected.items():
        np.testing.assert_array_equal(out[name], value)
        assert out[name].dtype == otherwise[name].dtype


@pytest.fixture(params=["cpu", "gpu"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Traces as on each kind of backend: lanes gathered in chunks on a CPU, all lanes on an accelerator."""
    monkeypatch.setattr(jax, "default_backend", lambda: request.param)
    return request.param


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("size", [1, 5, 64, 200, 512])
def test_where_needed_is_a_select_under_vmap_and_jit(kind: str, size: int, backend: str) -> None:
    """Sizes below, at and above a chunk and of whole blocks of the running count; from no lane needed to all."""
    needed, arguments = MASKS[kind](size), _arguments(size)
    out = jax.jit(jax.vmap(_chosen))(needed, *arguments)
    _assert_same(out, _expected(needed, arguments), arguments[2])


def test_chunks_of_more_than_the_smallest_size() -> None:
    """With 4,096 lanes a chunk holds 128; one lane more than two chunks is needed."""
    needed, arguments = np.zeros(4096, bool), _arguments(4096)
    needed[np.random.default_rng(0).permutation(4096)[:257]] = True
    _assert_same(jax.jit(jax.vmap(_chosen))(needed, *arguments), _expected(needed, arguments), arguments[2])


@pytest.mark.parametrize("kind", ["none", "all", "some"])
def test_where_needed_is_a_select_under_nested_vmap(kind: str, backend: str) -> None:
    """Two mapped axes, the flag on both."""
    needed, arguments = MASKS[kind](60), _arguments(60)
    nested = jax.tree.map(lambda x: jnp.reshape(x, (12, 5, *x.shape[1:])), (jnp.asarray(needed), *arguments))
    out = jax.jit(jax.vmap(jax.vmap(_chosen)))(*nested)
    flat = jax.tree.map(lambda x: x.reshape(60, *x.shape[2:]), out)
    _assert_same(flat, _expected(needed, arguments), arguments[2])


def test_where_needed_with_an_argument_and_a_flag_shared_by_all_lanes(backend: str) -> None:
    """What is not mapped is the same in every lane."""
    x, pair, otherwise = _arguments(70)
    one = jax.tree.map(lambda leaf: leaf[3], otherwise)
    shared = (pair[0][7], pair[1][7])
    for flag in (False, True):
        out = jax.vmap(lambda x, flag=flag: _chosen(jnp.asarray(flag), x, shared, one))(x)
        results = jax.vmap(lambda x: _costly(x, shared))(x)
        for name, result in results.items():
            np.testing.assert_array_equal(out[name], result if flag else np.broadcast_to(one[name], result.shape))


def test_lanes_of_several_vmaps_are_gathered_together() -> None:
    """From all of them at once: of 32 x 40 lanes with one needed in each row, as many as a chunk holds run."""
    rows = []

    def counted(x: Array) -> Array:
        def double(x: np.ndarray) -> np.ndarray:
            rows.append(x.size)
            return 2 * x

        return jax.pure_callback(double, jax.ShapeDtypeStruct((), np.int32), x, vmap_method="expand_dims")

    def chosen(needed: Array, x: Array) -> Array:
        return where_needed(needed, counted, jnp.int32(-1), x)

    needed, x = np.eye(32, 40, dtype=bool), np.arange(32 * 40, dtype=np.int32).reshape(32, 40)
    np.testing.assert_array_equal(jax.jit(jax.vmap(jax.vmap(chosen)))(needed, x), np.where(needed, 2 * x, -1))
    assert sum(rows) == 64


@pytest.mark.parametrize("flag", [False, True])
def test_where_needed_without_vmap_takes_one_branch(flag: bool) -> None:
    """Unbatched, with and without jit, results have the types of `otherwise`."""
    x, pair, otherwise = jax.tree.map(lambda leaf: leaf[4], _arguments(9))
    expected = _costly(x, pair) if flag else otherwise
    for call in (_chosen, jax.jit(_chosen)):
        out = call(jnp.asarray(flag), x, pair, otherwise)
        _assert_same(out, {name: np.asarray(value) for name, value in expected.items()}, otherwise)


def _sum_and_scale(x: Array, y: Array) -> tuple[Array, Array]:
    """Reduces the leading axis of x and stretches y, trailing axes being lanes."""
    return x[0] + 2 * x[1] * y[None], jnp.stack([y, y + x[0, 0]])


def test_lanes_last_equals_vmap() -> None:
    """One and two mapped axes, all arguments mapped or only one, and none."""
    laid = lanes_last(_sum_and_scale)
    x = jnp.arange(5 * 4 * 2 * 3, dtype=jnp.int32).reshape(5, 4, 2, 3)
    y = jnp.arange(5 * 4, dtype=jnp.int32).reshape(5, 4)
    cases = [
        (jax.vmap(jax.vmap(laid)), jax.vmap(jax.vmap(_sum_and_scale)), (x, y)),
        (jax.vmap(laid, in_axes=(0, None)), jax.vmap(_sum_and_scale, in_axes=(0, None)), (x[0], y[0, 0])),
        (jax.vmap(laid, in_axes=(None, 0)), jax.vmap(_sum_and_scale, in_axes=(None, 0)), (x[0, 0], y[0])),
        (jax.vmap(laid, in_axes=(1, 0)), jax.vmap(_sum_and_scale, in_axes=(1, 0)), (x[0].swapaxes(0, 1), y[0])),
        (laid, _sum_and_scale, (x[0, 0], y[0, 0])),
    ]
    for ours, plain, arguments in cases:
        for out, expected in zip(jax.jit(ours)(*arguments), jax.jit(plain)(*arguments), strict=True):
            np.testing.assert_array_equal(out, expected)


def test_lanes_last_is_traced_once_for_a_shape() -> None:
    """Also where it is called several times, and by several compiled functions."""
    traced = []

    @lanes_last
    def doubled(x: Array) -> Array:
        traced.append(x.shape)
        return 2 * x

    x = jnp.arange(6)
    out = jax.jit(jax.vmap(lambda x: doubled(x) + doubled(x + 1)))(x)
    jax.jit(jax.vmap(lambda x: doubled(x) - 1))(x)
    np.testing.assert_array_equal(out, 4 * x + 2)
    assert sorted(traced) == [(), (6,)]


def test_lanes_last_keeps_name_and_docstring() -> None:
    """The wrapped function still tells what it is."""
    assert lanes_last(_sum_and_scale).__doc__ == _sum_and_scale.__doc__


def test_computed_once_returns_the_values_and_stands_between_writer_and_readers() -> None:
    """Illegal actions, -1, and the first lane's value make no difference; on a CPU the loop survives compilation."""

    @jax.jit
    def double(values: Array) -> Array:
        return 2 * computed_once(values)

    for values in ([-1, 5, 0], [7], [0, -1], [2**30 - 1, 3]):
        np.testing.assert_array_equal(double(jnp.array(values, jnp.int32)), 2 * np.array(values))
    compiled = double.lower(jax.ShapeDtypeStruct((64,), jnp.int32)).compile().as_text()
    assert (" while(" in compiled) == (jax.default_backend() == "cpu")


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("share", [0.0, 0.05, 0.5])
def test_few_lanes_are_gathered_on_an_accelerator(mask: str, share: float) -> None:
    """The share is what is expected: more lanes than that take more turns of the loop, and give the same."""
    needed, arguments = MASKS[mask](100), _arguments(100)
    x, pair, otherwise = arguments
    with traced_for("cuda"):
        chosen = jax.vmap(lambda *lane: where_needed(lane[0], _costly, lane[3], lane[1], lane[2], share=share))
        out = jax.jit(chosen)(needed, x, pair, otherwise)
    _assert_same(out, _expected(needed, arguments), otherwise)


def test_on_an_accelerator_a_turn_runs_the_share_of_lanes_that_is_expected() -> None:
    """A product in a turn is one of 1,024 / 16 rows; of most lanes it is one of all rows, and there is no loop."""

    def products(share: float) -> list[int]:
        def one(needed: Array, x: Array) -> Array:
            return where_needed(needed, lambda x: jnp.ones((7, 5)) @ x, jnp.zeros(7), x, share=share)

        with traced_for("cuda"):
            text = str(jax.make_jaxpr(jax.vmap(one))(np.zeros(1024, bool), np.ones((1024, 5), np.float32)))
        shapes = [line.split("f32[")[1].split("]")[0] for line in text.splitlines() if "dot_general" in line]
        found = [max(map(int, shape.split(","))) for shape in shapes]
        return [*found, text.count("while")]

    assert products(1 / 16) == [64, 1]
    assert products(1.0) == [1024, 0]


def test_no_more_lanes_than_allowed_run_together(backend: str) -> None:
    """On an accelerator too; the result is what it would be at once."""
    sizes: list[int] = []

    @jax.custom_batching.custom_vmap
    def noted(x: Array) -> Array:
        return x

    @noted.def_vmap
    def _rule(size: int, batched: Any, x: Array) -> tuple[Array, bool]:
        sizes.append(size)
        return x, True

    needed, x = MASKS["some"](50), jnp.arange(50.0)
    limited = jax.vmap(lambda flag, x: where_needed(flag, lambda y: noted(y) + 1, 0.0, x, largest_chunk=6))
    np.testing.assert_array_equal(limited(needed, x), np.where(needed, x + 1, 0))
    assert set(sizes) == {6}


def test_lanes_one_by_one_are_not_batched(backend: str) -> None:
    """The function sees its arguments as they are, and the results are the same."""
    for mask in MASKS.values():
        needed, arguments = mask(20), _arguments(20)
        x, pair, otherwise = arguments
        out = jax.vmap(lambda n, x, pair, other: where_needed(n, _costly, other, x, pair, largest_chunk=1))(
            needed, x, pair, otherwise
        )
        _assert_same(out, _expected(needed, arguments), otherwise)
