"""Compiler options of programs on a CPU."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dream.compiled import options
from dream.compiled.bounded import BoundedCalls, long_loop, whole


@pytest.fixture(autouse=True)
def optimised(compile_quickly: None) -> Iterator[None]:
    """Programs of this module are; those of tests are not, and then have no options."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


def test_options_are_known_to_the_compiler() -> None:
    """XLA refuses what it does not know; programs of games have one option more than products."""
    play, fit = (options.compiler_options(plays=plays) for plays in (True, False))
    for named in (play, fit):
        assert float(jax.jit(lambda x: x + 1, compiler_options=named)(1.0)) == 2
    known = jax.__version_info__[:2] == (0, 10) and jax.default_backend() == "cpu"
    assert (len(play), len(fit)) == ((2, 1) if known else (0, 0))


def test_programs_that_are_not_optimised_have_none() -> None:
    """Which compiles faster still."""
    jax.config.update("jax_disable_most_optimizations", True)
    assert options.compiler_options(plays=True) == {}


@pytest.mark.parametrize(("backend", "version"), [("gpu", (0, 10, 2)), ("cpu", (0, 11, 0))])
def test_others_have_none(monkeypatch: pytest.MonkeyPatch, backend: str, version: tuple[int, int, int]) -> None:
    """Neither accelerators nor releases of JAX whose options may differ."""
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    monkeypatch.setattr(jax, "__version_info__", version)
    assert options.compiler_options(plays=True) == {}


def test_a_program_that_plays_is_compiled_once_with_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """At its first call, so that to decorate starts no backend; static arguments and the function inside stay."""
    asked = []

    def asking(*, plays: bool) -> dict[str, object]:
        asked.append(plays)
        return {}

    monkeypatch.setattr(options, "compiler_options", asking)

    def scaled(times: int, x: jax.Array) -> jax.Array:
        return x * times

    program = options.jit_play(static_argnums=0)(scaled)
    assert asked == []
    np.testing.assert_array_equal([program(3, jnp.ones(2)), program(4, jnp.ones(2))], [[3, 3], [4, 4]])
    assert set(asked) == {True}
    assert program.program() is program.program()
    assert inspect.unwrap(program) is scaled


@pytest.mark.parametrize("plays", [True, False])
def test_bounded_calls_pass_the_options_on(monkeypatch: pytest.MonkeyPatch, plays: bool) -> None:
    """Both programs of a function with a loop have them."""
    given = []
    compiled = jax.jit

    def jit(*arguments: object, **named: object) -> object:
        given.append(named["compiler_options"])
        return compiled(*arguments, **named)

    monkeypatch.setattr(jax, "jit", jit)
    calls = BoundedCalls(lambda x: long_loop(lambda n: n < 5, lambda n: n + 1, x), plays=plays)
    assert int(whole(calls(jnp.int32(0)))) == 5
    assert given == [options.compiler_options(plays=plays)] * 2
