"""Ways to reduce the cost of expensive functions under vmap: fewer lanes, lanes innermost, no recomputation."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.custom_batching import custom_vmap

QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
"""Compiler options for programs that run a few times on the host: most of their time would go into compiling."""
_SMALLEST_CHUNK = 64
_BLOCK = 256
"""Flags that are counted together in the first level of a running count."""
_FEW = 0.5
"""On an accelerator lanes are gathered where no larger share of them is expected to need a function."""
_backend: contextvars.ContextVar[str | None] = contextvars.ContextVar("backend", default=None)


@contextlib.contextmanager
def traced_for(backend: str) -> Iterator[None]:
    """Traces the enclosed code as for another backend, such as "cuda", to inspect its programs without a device.

    JAX caches traces, so all of them are cleared before and after.
    """
    jax.clear_caches()
    token = _backend.set(backend)
    try:
        yield
    finally:
        _backend.reset(token)
        jax.clear_caches()


def on_cpu() -> bool:
    """Returns whether the current trace is for a CPU."""
    return (_backend.get() or jax.default_backend()) == "cpu"


def lanes_last(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes vmap append the mapped axis to the arguments' shapes instead of putting it first.

    The inner loop of every elementwise operation then runs over lanes, which a CPU vectorises well.

    Args:
      function: on arrays only, written so that extra trailing axes, the same for all arguments, broadcast through.
    Returns:
      The same function with its own batching rule; nested vmaps append one axis each.
    """
    mapped = custom_vmap(jax.jit(function))  # traced once for each shape, not once for each call

    @mapped.def_vmap
    def _rule(size: int, batched: list[bool], *args: Array) -> tuple[Any, Any]:
        appended = [
            jnp.moveaxis(x, 0, -1) if is_batched else jnp.broadcast_to(x[..., None], (*x.shape, size))
            for x, is_batched in zip(args, batched, strict=True)
        ]
        out = jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), mapped(*appended))
        return out, jax.tree.map(lambda _: True, out)

    return functools.wraps(function)(mapped)


def computed_once(values: Array) -> Array:
    """Returns the values, materialised in memory, so that their consumers do not recompute them.

    XLA for CPUs fuses an elementwise computation into all its consumers, even across `lax.optimization_barrier`, and so
    repeats it in each. It does not fuse the result of a loop; the loop here has one iteration, which XLA cannot know.

    Args:
      values: int32[n], -1 or more, below 2^31 - 2; n >= 1. Not under vmap.
    """
    if not on_cpu():
        return lax.optimization_barrier(values)
    turns = jnp.minimum(values[0] + 2, 1)
    start = jnp.int32(0), jnp.zeros_like(values)
    return lax.while_loop(lambda carry: carry[0] < turns, lambda carry: (carry[0] + 1, values), start)[1]


def where_needed(
    needed: Array,
    function: Callable[..., Any],
    otherwise: Any,
    *args: Any,
    smallest_chunk: int = _SMALLEST_CHUNK,
    share: float = 1.0,
    largest_chunk: int | None = None,
) -> Any:
    """Returns function(*args) where needed, else `otherwise`: a cond that stays a branch under vmap.

    Plain `lax.cond` becomes a select under vmap and runs the expensive branch for every lane. Here the lanes that need
    it are gathered in chunks, so the cost is proportional to their number; with nested vmaps they are gathered from the
    lanes of all. A `where_needed` nested in another one sees one chunk at a time, all of whose lanes run where few are
    needed: where possible, place such calls one after the other. On accelerators, where an iteration of a loop of
    unknown length costs more than most functions, all lanes run, unless only the share `share` is expected to need it:
    then that many lanes are gathered at once. The default backend at tracing time decides.

    Args:
      needed: bool scalar (per lane).
      function: pure, on one unbatched set of arguments.
      otherwise: pytree like the function's result.
      *args: pytrees of arrays.
      smallest_chunk: minimum number of lanes per chunk; smaller for a function that is vectorised within a lane.
      share: largest expected share of lanes that need it; on an accelerator one iteration of the loop runs that many.
      largest_chunk: maximum number of lanes per chunk, also on accelerators, for a function that takes much memory; 1
        does not batch the function at all.
    Returns:
      Pytree like `otherwise`, with its dtypes.
    """
    # Traced once, though it is read alone and then batched; with nested calls Python would run for each twice.
    once = jax.jit(lambda *args: function(*args), inline=True)

    @custom_vmap
    def choose(needed: Array, otherwise: Any, args: tuple[Any, ...]) -> Any:
        return lax.cond(needed, lambda: _like(once(*args), otherwise), lambda: otherwise)

    @custom_vmap
    def in_lanes(needed: Array, otherwise: Any, args: tuple[Any, ...]) -> Any:
        size, is_on_cpu = needed.shape[0], on_cpu()
        chunk = max(smallest_chunk, size // 32) if is_on_cpu or share > _FEW else max(1, math.ceil(size * share))
        if is_on_cpu or share <= _FEW or largest_chunk is not None:
            return _on_some_lanes(min(size, chunk, largest_chunk or size), once, needed, otherwise, args)
        return _on_all_lanes(once, needed, otherwise, args)

    @choose.def_vmap
    def _lanes(size: int, batched: Any, *operands: Any) -> tuple[Any, Any]:
        out = in_lanes(*_batched(size, batched, operands))
        return out, jax.tree.map(lambda _: True, out)

    @in_lanes.def_vmap
    def _more_lanes(size: int, batched: Any, *operands: Any) -> tuple[Any, Any]:
        each = _batched(size, batched, operands)
        out = in_lanes(*jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), each))
        out = jax.tree.map(lambda x: x.reshape(size, -1, *x.shape[1:]), out)
        return out, jax.tree.map(lambda _: True, out)

    return choose(needed, otherwise, args)


def _batched(size: int, batched: Any, operands: tuple[Any, ...]) -> Any:
    """Returns operands of a vmap, all with the mapped axis first."""
    return jax.tree.map(
        lambda x, is_batched: x if is_batched else jnp.broadcast_to(x, (size, *jnp.shape(x))), operands, tuple(batched)
    )


def _like(values: Any, templates: Any) -> Any:
    return jax.tree.map(lambda value, template: jnp.asarray(value, jnp.asarray(template).dtype), values, templates)


def _on_all_lanes(function: Callable[..., Any], needed: Array, otherwise: Any, args: tuple[Any, ...]) -> Any:
    results = _like(jax.vmap(function)(*args), otherwise)
    return jax.tree.map(
        lambda x, y: jnp.where(needed.reshape(needed.shape + (1,) * (x.ndim - 1)), x, y), results, otherwise
    )


def _on_some_lanes(
    chunk: int, function: Callable[..., Any], needed: Array, otherwise: Any, args: tuple[Any, ...]
) -> Any:
    ranks, method = _running_count(needed), "scan" if on_cpu() else "scan_unrolled"
    if chunk == 1:
        return _one_by_one(ranks, function, otherwise, args)

    def body(carry: tuple[Array, Any]) -> tuple[Array, Any]:
        first, out = carry
        # The lane of the n-th needed one is the first whose running count reaches n; past the last it is `size`.
        lanes = jnp.searchsorted(ranks, first + jnp.arange(1, chunk + 1, dtype=jnp.int32), method=method)
        picked = jax.tree.map(lambda x: x.at[lanes].get(mode="clip"), args)
        results = jax.vmap(function)(*picked)
        out = jax.tree.map(lambda x, y: x.at[lanes].set(y.astype(x.dtype), mode="drop"), out, results)
        return first + chunk, out

    return lax.while_loop(lambda carry: carry[0] < ranks[-1], body, (jnp.int32(0), otherwise))[1]


def _one_by_one(ranks: Array, function: Callable[..., Any], otherwise: Any, args: tuple[Any, ...]) -> Any:
    """Runs the function on one needed lane after the other, without batching it: a smaller program."""

    def body(carry: tuple[Array, Any]) -> tuple[Array, Any]:
        number, out = carry
        lane = jnp.searchsorted(ranks, number + 1)
        result = function(*jax.tree.map(lambda x: x[lane], args))
        return number + 1, jax.tree.map(lambda x, y: x.at[lane].set(jnp.asarray(y, x.dtype)), out, result)

    return lax.while_loop(lambda carry: carry[0] < ranks[-1], body, (jnp.int32(0), otherwise))[1]


def _running_count(flags: Array) -> Array:
    """Returns the inclusive prefix sum of flags: int32[n]; in two levels, as a CPU scans long axes slowly."""
    if flags.shape[0] % _BLOCK:
        return jnp.cumsum(flags, dtype=jnp.int32)
    within = jnp.cumsum(flags.reshape(-1, _BLOCK), axis=1, dtype=jnp.int32)
    before = jnp.cumsum(within[:, -1]) - within[:, -1]
    return (within + before[:, None]).reshape(-1)
