"""How XLA compiles the programs of large games on a CPU, where the first minute of a run goes into compiling.

Measured in docs/decisions/0260: with fewer of LLVM's passes a program runs as fast. Without fusion emitters, which
compile every group of operations by way of MLIR, it is compiled sooner still and may run slower, so only programs that
run for seconds do without. Games with exact values keep XLA's own options: their programs are small, and what was
measured on them can be run again to the last bit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax

from envs import EnumerableGame, Game

_FEWER_PASSES = {"xla_backend_optimization_level": 1}
_NO_FUSION_EMITTERS = {"xla_cpu_use_fusion_emitters": False}


def compiler_options(game: Game, *, brief: bool = False) -> dict[str, Any]:
    """Returns the options for a program on the default backend, which is started; none but on a CPU with JAX 0.10.

    Args:
      game: what is played or learned; none for those with exact values.
      brief: whether the program runs for no longer than it is compiled.
    """
    known = jax.default_backend() == "cpu" and jax.__version_info__[:2] == (0, 10)
    is_small = isinstance(game, EnumerableGame) or game.hidden_placement is not None
    if is_small or not known or jax.config.read("jax_disable_most_optimizations"):  # the latter spends less still
        return {}
    return _FEWER_PASSES | (_NO_FUSION_EMITTERS if brief else {})


def jit_brief(game_of: Callable[[Any], Game], **settings: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns a decorator like jax.jit for a brief program of a game; inside another program it has that one's options.

    Args:
      game_of: the first argument, which is static -> the game.
      **settings: of jax.jit.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.cache
        def jitted(options: tuple[tuple[str, Any], ...]) -> Any:
            return jax.jit(function, compiler_options=dict(options), **settings)

        def program(first: Any) -> Any:
            return jitted(tuple(compiler_options(game_of(first), brief=True).items()))

        @functools.wraps(function)
        def call(first: Any, *arguments: Any, **named: Any) -> Any:
            traced = any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves((arguments, named)))
            return (jitted(()) if traced else program(first))(first, *arguments, **named)

        # The stages that jax.jit's functions have.
        call.trace = lambda first, *rest, **named: program(first).trace(first, *rest, **named)  # type: ignore[attr-defined]
        call.lower = lambda first, *rest, **named: program(first).lower(first, *rest, **named)  # type: ignore[attr-defined]
        return call

    return decorate
