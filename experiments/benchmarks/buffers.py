"""What it costs to add rows to a full reservoir: milliseconds with the old buffer kept, and with it donated."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from common import Parser, Work, at_least_one, interleaved, ratio, run, spread

import envs
from dream.buffers import reservoir
from dream.buffers.reservoir import ReservoirBuffer


def main() -> None:
    """Reads the arguments and measures."""
    parser = Parser(__doc__, repeats=9)
    parser.add_argument("--env", default="gin_rummy")
    parser.add_argument("--capacity", type=at_least_one, default=200_000, help="rows kept (default %(default)s)")
    parser.add_argument("--rows", type=at_least_one, default=8_000, help="offered at a time (default %(default)s)")
    run(parser, measure)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Adds rows in both ways in turn, each to what its last call returned."""
    game = envs.make(arguments.env)
    view = jax.eval_shape(lambda key: game.view(game.init(key), jnp.int32(0)), jax.random.key(0))
    row = (view, jax.ShapeDtypeStruct((game.num_actions,), jnp.float32))
    offered = jax.tree.map(lambda x: jnp.zeros((arguments.rows, *x.shape), x.dtype), row)
    full = reservoir.empty(row, arguments.capacity)._replace(seen=jnp.int32(10 * arguments.capacity))
    add = functools.partial(reservoir.add, kind="reservoir")
    works = {
        "kept": Work(_adding(jax.jit(add), full, offered)),
        "donated": Work(_adding(jax.jit(add, donate_argnums=0), jax.tree.map(jnp.copy, full), offered)),
    }
    seconds = {name: timing.seconds for name, timing in interleaved(works, arguments.repeats, at_least=0.2).items()}
    size = sum(x.nbytes for x in jax.tree.leaves(full.rows))
    report: dict[str, Any] = {"env": game.name, "capacity": arguments.capacity, "rows": arguments.rows}
    report |= {"buffer_mib": size / 2**20}
    for name, one in seconds.items():
        report |= spread(f"{name}_ms", [1e3 * x for x in one])
    return report | {"kept_over_donated": ratio(seconds["kept"], seconds["donated"])}


def _adding(add: Callable[..., ReservoirBuffer], full: ReservoirBuffer, offered: Any) -> Callable[[int], Any]:
    """Returns number of the call -> the number of rows seen, after adding to the buffer of the last call."""
    buffers = [full]
    valid = jnp.ones(jax.tree.leaves(offered)[0].shape[0], bool)

    def call(number: int) -> Any:
        buffers[0] = add(buffers[0], offered, valid, jax.random.key(number))
        return buffers[0]

    return call


if __name__ == "__main__":
    main()
