"""Compiled functions with long loops, run in calls of bounded length, so that the host can look up between them.

A function that is written in one piece, with its long loops as `long_loop`, can be compiled as it is; there these are
lax.while_loop. `BoundedCalls` compiles the same function in parts instead: what comes before a loop, some turns of the
loop, and what comes after it. Each part is the function traced anew and left, by an exception that never leaves the
trace, where the part ends; loops that are over already give what they gave. What a part does not need, the compiler
drops; what a loop's body needs of the code before it is computed again in every call.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
import inspect
import time
from collections.abc import Callable, Generator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dream.compiled.agreement import agreed
from dream.compiled.options import compiler_options
from envs import Game

CALL_SECONDS = 1.0
"""What a call aims at."""
_LARGEST_FACTOR = 4
"""By which the turns of a call grow from one call to the next."""


def long_loop(more: Callable[[Any], Array], body: Callable[[Any], Any], start: Any) -> Any:
    """Runs a loop as lax.while_loop does; inside BoundedCalls in as many calls as it takes.

    Not to be called inside vmap, another loop or another jit while BoundedCalls traces, unless inside `body`.

    Args:
      more: carry -> bool, whether there is another turn.
      body: carry -> carry.
      start: the first carry, or what gives it, called in the part where the loop begins alone: to derive it from the
        body's shapes takes as long as tracing the body.
    """
    part = _part.get()
    return lax.while_loop(more, body, _given(start)) if part is None else part.loop(more, body, start)


def _given(start: Any) -> Any:
    return start() if callable(start) else start


def long_scan(
    body: Callable[[Any, Any], tuple[Any, Any]],
    start: Any,
    inputs: Any,
    output: Callable[[Any, Any], Any] | None = None,
) -> tuple[Any, Any]:
    """Runs lax.scan; inside BoundedCalls in as many calls as it takes. At least one turn.

    Args:
      body: (carry, input) -> (carry, output).
      start: the first carry.
      inputs: pytree, leading axis [T].
      output: (carry, input) -> what has an output's shapes, where that is quicker to trace than the body.
    """
    if _part.get() is None:
        return lax.scan(body, start, inputs)
    turns = jax.tree.leaves(inputs)[0].shape[0]

    def nth(n: Array) -> Any:
        return jax.tree.map(lambda x: x[n], inputs)

    def turn(at: tuple[Array, Any, Any]) -> tuple[Array, Any, Any]:
        n, carry, outputs = at
        carry, output = body(carry, nth(n))
        return n + 1, carry, jax.tree.map(lambda rows, row: rows.at[n].set(row), outputs, output)

    def first() -> tuple[Array, Any, Any]:
        one = output or (lambda carry, row: body(carry, row)[1])
        shapes = jax.eval_shape(lambda carry: one(carry, nth(jnp.int32(0))), start)
        return jnp.int32(0), start, jax.tree.map(lambda x: jnp.zeros((turns, *x.shape), x.dtype), shapes)

    _, carry, outputs = long_loop(lambda at: at[0] < turns, turn, first)
    return carry, outputs


def settled(values: Any) -> Any:
    """Returns values as they are; inside BoundedCalls a call of its own computes them, once for all later loops."""
    part = _part.get()
    return values if part is None else part.settle(values)


@dataclasses.dataclass(eq=False)
class _Part:
    """One part of a function while it is traced.

    Attributes:
      over: what the loops that are over gave and what is settled, in order; the next one ends the part.
      carry: of that loop; None where the part ends before it.
      turns: of that loop, int32.
      met: loops and settled values met so far.
    """

    over: list[Any]
    carry: Any = None
    turns: Array | None = None
    met: int = 0

    def loop(self, more: Callable[[Any], Array], body: Callable[[Any], Any], start: Any) -> Any:
        """Returns what a loop gave that is over; leaves the trace with the carry of the one that is not."""
        number, self.met = self.met, self.met + 1
        if number < len(self.over):
            return self.over[number]
        if self.turns is None:
            # Copies: the loop's first call may write over its carry, which must not be an argument of the function.
            raise _LeftError(_LOOP, jax.tree.map(jnp.copy, _given(start)))

        def unfinished(at: tuple[Array, Any]) -> Array:
            return (at[0] < self.turns) & more(at[1])

        token = _part.set(None)  # loops inside a turn are parts of it
        try:
            _, carry = lax.while_loop(unfinished, lambda at: (at[0] + 1, body(at[1])), (jnp.int32(0), self.carry))
            raise _LeftError(_LOOP, (carry, more(carry)))
        finally:
            _part.reset(token)

    def settle(self, values: Any) -> Any:
        """Returns settled values; leaves the trace with them where they are not settled yet."""
        number, self.met = self.met, self.met + 1
        if number < len(self.over):
            return self.over[number]
        raise _LeftError(_SETTLED, values)


class _LeftError(Exception):
    """A part has ended: where, and what it returns."""

    def __init__(self, where: Any, result: Any) -> None:
        self.where, self.result = where, result


_part: contextvars.ContextVar[_Part | None] = contextvars.ContextVar("part", default=None)


class BoundedCalls:
    """A function of arrays with long loops, in calls of about a second.

    The turns of a call start at one and follow the time that calls take, separately for each loop. How a loop is cut
    changes no result.
    """

    def __init__(self, function: Callable[..., Any], *, game: Game | None = None, x64: bool = False) -> None:
        """Takes the function; it is compiled when first called.

        Args:
          function: not jitted; its arguments and its result are pytrees of arrays.
          game: what is played or learned, whose compiler options are used; None: XLA's own.
          x64: whether it computes in double precision.
        """
        self._function, self._game, self._x64 = function, game, x64
        self._turns: dict[int, int] = {}

    @classmethod
    def of(cls, method: Any, **settings: Any) -> BoundedCalls:
        """Returns the calls of a jitted method whose object is static: of the function inside; settings as above."""
        return cls(functools.partial(inspect.unwrap(method.__func__), method.__self__), **settings)

    def _options(self) -> dict[str, Any]:
        return {} if self._game is None else compiler_options(self._game)

    @functools.cached_property
    def _advance(self) -> Any:
        return jax.jit(self._advanced, donate_argnums=1, compiler_options=self._options())

    @functools.cached_property
    def _go_on(self) -> Any:
        return jax.jit(self._after, compiler_options=self._options())

    def __call__(self, *arguments: Any) -> Generator[None, None, Any]:
        """Runs the function; yields between its calls, and returns what it returns."""
        over: list[Any] = []
        while True:
            with self._precision():
                ended, result = self._go_on(over, arguments)
            if ended == _END:
                return result
            over.append(result if ended == _SETTLED else (yield from self._loop(over, result, arguments)))

    def _loop(self, over: list[Any], carry: Any, arguments: tuple[Any, ...]) -> Generator[None, None, Any]:
        """Runs the next loop to its end."""
        turns = self._turns.get(len(over), 1)
        while True:
            yield
            began = time.perf_counter()
            with self._precision():
                carry, more = self._advance(over, carry, np.int32(turns), arguments)
            unfinished = bool(more)
            took = max(time.perf_counter() - began, 1e-6)
            if not unfinished:
                return carry
            factor = min(CALL_SECONDS / took, _LARGEST_FACTOR)
            turns = agreed("turns", int(np.clip(turns * factor, 1, np.iinfo(np.int32).max // 2)))
            self._turns[len(over)] = turns

    def _after(self, over: list[Any], arguments: tuple[Any, ...]) -> tuple[Any, Any]:
        """Returns the function's result, or what is settled next, or the first carry of the next loop."""
        token = _part.set(_Part(over))
        try:
            return _END, self._function(*arguments)
        except _LeftError as left:
            return left.where, left.result
        finally:
            _part.reset(token)

    def _advanced(self, over: list[Any], carry: Any, turns: Array, arguments: tuple[Any, ...]) -> tuple[Any, Array]:
        """Returns the carry after some turns of the next loop, and whether there are more."""
        token = _part.set(_Part(over, carry, turns))
        try:
            self._function(*arguments)
        except _LeftError as left:
            return left.result
        finally:
            _part.reset(token)
        raise RuntimeError("the function has met another number of long loops than before")

    def _precision(self) -> Any:
        return jax.enable_x64(True) if self._x64 else contextlib.nullcontext()


_END, _LOOP, _SETTLED = (), ((),), ((), ())
"""Where a part has ended, in the structure of what it returns: pytrees without arrays."""


def in_one_call(function: Callable[..., Any]) -> Callable[..., Generator[None, None, Any]]:
    """Returns a function in the form of bounded calls, though it is one call."""

    def calls(*arguments: Any) -> Generator[None, None, Any]:
        yield
        return function(*arguments)

    return calls


def whole(calls: Generator[None, None, Any]) -> Any:
    """Runs bounded calls to their end and returns what they return."""
    while True:
        try:
            next(calls)
        except StopIteration as end:
            return end.value
