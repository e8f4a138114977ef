"""Compiler options of large games' programs on a CPU."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dream
import envs
from dream.compiled import options
from dream.compiled.bounded import BoundedCalls, long_loop, whole
from envs import Game


@pytest.fixture(autouse=True)
def optimised(compile_quickly: None) -> Iterator[None]:
    """Programs of this module are; those of tests are not, and then have no options."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


def test_options_are_known_to_the_compiler(game: Game) -> None:
    """XLA refuses what it does not know; brief programs have one option more."""
    brief, long = (options.compiler_options(game, brief=brief) for brief in (True, False))
    for named in (brief, long):
        assert float(jax.jit(lambda x: x + 1, compiler_options=named)(1.0)) == 2
    known = jax.__version_info__[:2] == (0, 10) and jax.default_backend() == "cpu"
    assert (len(brief), len(long)) == ((2, 1) if known else (0, 0))


def test_programs_that_are_not_optimised_have_none(game: Game) -> None:
    """Which compiles faster still."""
    jax.config.update("jax_disable_most_optimizations", True)
    assert options.compiler_options(game, brief=True) == {}


@pytest.mark.parametrize(
    "name", ["kuhn_poker", "leduc_poker", "liars_dice", "mini_gin_rummy", "phantom_ttt", "dark_hex"]
)
def test_games_with_exact_values_have_none(name: str) -> None:
    """Their runs give the same numbers as before to the last bit."""
    assert options.compiler_options(envs.make(name), brief=True) == {}


@pytest.mark.parametrize(("backend", "version"), [("gpu", (0, 10, 2)), ("cpu", (0, 11, 0))])
def test_others_have_none(
    monkeypatch: pytest.MonkeyPatch, game: Game, backend: str, version: tuple[int, int, int]
) -> None:
    """Neither accelerators nor releases of JAX whose options may differ."""
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    monkeypatch.setattr(jax, "__version_info__", version)
    assert options.compiler_options(game, brief=True) == {}


def test_a_brief_program_has_the_options_of_its_game(monkeypatch: pytest.MonkeyPatch, game: Game) -> None:
    """Asked for at each call, so that to decorate starts no backend; compiled once for each game."""
    asked, given, jit = [], [], jax.jit
    compiler_options = options.compiler_options

    def asking(game: Game, *, brief: bool) -> dict[str, object]:
        asked.append((game.name, brief))
        return compiler_options(game, brief=brief)

    def jitting(*arguments: object, **named: object) -> object:
        given.append(named["compiler_options"])
        return jit(*arguments, **named)

    monkeypatch.setattr(options, "compiler_options", asking)
    monkeypatch.setattr(jax, "jit", jitting)

    def times_actions(game: Game, x: jax.Array) -> jax.Array:
        return x * game.num_actions

    program = options.jit_brief(lambda game: game, static_argnums=0)(times_actions)
    assert (asked, given) == ([], [])
    small = envs.make("kuhn_poker")
    for played in (game, small, game):
        np.testing.assert_array_equal(program(played, jnp.ones(2)), 2 * [played.num_actions])
    assert asked == [(played.name, True) for played in (game, small, game)]
    assert given == [compiler_options(game, brief=True), {}]
    assert program.lower(small, jnp.ones(2)).compile()(jnp.ones(2))[0] == small.num_actions
    assert program.trace(small, jnp.ones(2)).out_info.shape == (2,)
    assert inspect.unwrap(program) is times_actions


def test_bounded_calls_have_the_options_of_their_game(monkeypatch: pytest.MonkeyPatch, game: Game) -> None:
    """Both programs of a function with a loop have them, and XLA's own without a game."""
    given, jit = [], jax.jit

    def jitting(*arguments: object, **named: object) -> object:
        given.append(named["compiler_options"])
        return jit(*arguments, **named)

    monkeypatch.setattr(jax, "jit", jitting)
    for played, wanted in ((game, options.compiler_options(game)), (None, {})):
        calls = BoundedCalls(lambda x: long_loop(lambda n: n < 5, lambda n: n + 1, x), game=played)
        assert given == []
        assert int(whole(calls(jnp.int32(0)))) == 5
        assert [given.pop(), given.pop()] == [wanted] * 2


def test_a_brief_program_can_be_part_of_another(game: Game) -> None:
    """It has the other's options then; a policy's shapes, for instance, are found by tracing how its learner begins."""
    program = options.jit_brief(lambda game: game, static_argnums=0)(
        lambda game, x, scale=1: scale * x * game.num_actions
    )
    wanted = np.full(2, float(game.num_actions))
    np.testing.assert_array_equal(jax.jit(lambda x: program(game, x))(jnp.ones(2)), wanted)
    np.testing.assert_array_equal(jax.jit(lambda x: program(game, np.ones(2), scale=x))(1.0), wanted)
    assert jax.eval_shape(lambda x: program(game, x), jnp.ones(2)).shape == (2,)
    np.testing.assert_array_equal(program(game, jnp.ones(2)), wanted)


@pytest.mark.parametrize("name", ["gin_rummy/points", "gin_rummy_mdp/points", "gin_rummy_openspiel/ppo"])
def test_a_shipped_player_is_loaded(name: str) -> None:
    """As where programs are optimised, which those of most tests are not."""
    assert dream.load_policy(name) is not None
