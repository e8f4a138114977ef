"""Exact values of phantom games: seconds to set up, of NashConv, and of a network on all information sets.

With --peer the C++ package of the 2026 benchmark, exp-a-spiel (module `eas`, https://github.com/gabrfarina/exp-a-spiel),
which must be installed, computes the same exploitability once, in the same process and with as many threads; that takes
minutes. What it prints goes to standard error.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from common import Parser, Work, at_least_one, interleaved, parameters, peak_gib, run, spread, spreads

import envs
from dream.game_tree.placement.form import PlacementForm, placement_form
from dream.networks import make_network
from dream.networks.policy import Acts, make_network_policy
from envs import Game, InputError

_SIDE, _ROWS = 512, 1 << 15
"""Of the square matrix whose products are the yardstick of arithmetic, and how many rows it is applied to."""

_TRAVERSERS = {
    ("dark_hex", "classical"): "DhTraverser",
    ("dark_hex", "abrupt"): "AbruptDhTraverser",
    ("phantom_ttt", "classical"): "PtttTraverser",
    ("phantom_ttt", "abrupt"): "AbruptPtttTraverser",
}
"""Game and version -> the peer's name of it."""


def main() -> None:
    """Reads the arguments and measures."""
    parser = Parser(__doc__, repeats=3)
    parser.add_argument("--env", choices=("phantom_ttt", "dark_hex"), default="dark_hex")
    parser.add_argument("--version", choices=("classical", "abrupt"), default="classical")
    parser.add_argument("--hidden", type=at_least_one, nargs="*", default=[64, 64], help="widths; none: no network")
    parser.add_argument("--peer", action="store_true", help="compute it by exp-a-spiel too, which takes minutes")
    run(parser, measure)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Builds the form once, and times the rest in turn; processor seconds count all threads."""
    game = envs.make(arguments.env, version=arguments.version)
    peer = _peer() if arguments.peer else None
    began, used = time.perf_counter(), time.process_time()
    form = placement_form(game)
    report = {"env": game.name, "version": arguments.version, "information_sets": form.num_infosets}
    report |= {"setup_seconds": time.perf_counter() - began, "setup_cpu_seconds": time.process_time() - used}
    table = form.uniform()
    rows = [_nash_conv(form, table) for _ in range(arguments.repeats)]
    report |= spreads(rows)
    if peer:
        with _printing_to_stderr():
            report |= _by_peer(peer, _TRAVERSERS[arguments.env, arguments.version], rows)
    if arguments.hidden:
        report |= _network(game, form, arguments)
    return report | {"peak_gib": peak_gib()}


def _nash_conv(form: PlacementForm, table: Any) -> dict[str, float]:
    began, used = time.perf_counter(), time.process_time()
    value = form.values(table).nash_conv
    return {
        "nash_conv_seconds": time.perf_counter() - began,
        "nash_conv_cpu_seconds": time.process_time() - used,
        "uniform_exploitability": value / 2,
    }


@contextlib.contextmanager
def _printing_to_stderr() -> Iterator[None]:
    """Has C++ code print to standard error, as standard output holds the result."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)  # its buffer, which would else be written at the end of the process
        os.dup2(kept, 1)
        os.close(kept)


def _peer() -> Any:
    """Returns the peer's module.

    Raises:
      InputError: it is not installed.
    """
    try:
        return importlib.import_module("eas")
    except ImportError as error:
        raise InputError(
            "--peer needs exp-a-spiel, which is built from its sources (cmake, Boost 1.81 and later): "
            "pip install git+https://github.com/gabrfarina/exp-a-spiel"
        ) from error


def _by_peer(peer: Any, name: str, ours: list[dict[str, float]]) -> dict[str, float]:
    """Times the peer on uniform play once, and returns how many times as long it takes as our rounds."""
    began, used = time.perf_counter(), time.process_time()
    traverser = getattr(peer, name)()
    set_up, used_for_set_up = time.perf_counter() - began, time.process_time() - used
    strategies = traverser.construct_uniform_strategies()
    began, used = time.perf_counter(), time.process_time()
    found = traverser.ev_and_exploitability(*strategies)
    seconds = time.perf_counter() - began
    report = {
        "peer_setup_seconds": set_up,
        "peer_setup_cpu_seconds": used_for_set_up,
        "peer_nash_conv_seconds": seconds,
        "peer_nash_conv_cpu_seconds": time.process_time() - used,
        "peer_information_sets": sum(len(table) for table in strategies),
        "peer_uniform_exploitability": sum(found.expl) / 2,
    }
    return report | spread("times_as_fast", [seconds / row["nash_conv_seconds"] for row in ours])


def _network(game: Game, form: PlacementForm, arguments: argparse.Namespace) -> dict[str, Any]:
    """Times a network on all information sets, and a matrix product in the same rounds."""
    config = {"name": "dueling", "hidden": list(arguments.hidden)}
    network = make_network(config, game)
    params = network.init(jax.random.key(0))
    policy = make_network_policy(game, network, params, Acts())
    matrix, rows = jnp.ones((_SIDE, _SIDE)), jnp.ones((_ROWS, _SIDE))
    product = jax.jit(jnp.matmul)
    works = {
        "network": Work(lambda n: [np.asarray(x) for x in form.tabulate(policy)]),
        "product": Work(lambda n: product(rows, matrix)),
    }
    timings = interleaved(works, arguments.repeats)
    operations = 2 * parameters(config, game) * form.num_infosets
    peak = [2 * _ROWS * _SIDE**2 / seconds for seconds in timings["product"].seconds]
    reached = [operations / seconds for seconds in timings["network"].seconds]
    shares = [one / other for one, other in zip(reached, peak, strict=True)]
    return spread("network_seconds", timings["network"].seconds) | spread("share_of_arithmetic", shares)


if __name__ == "__main__":
    main()
