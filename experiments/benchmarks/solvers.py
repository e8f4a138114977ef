"""CFR iterations per second and milliseconds of NashConv on whole trees, with pyspiel's in the same rounds."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import jax
import numpy as np
from common import Parser, Timing, Work, interleaved, ratio, run, spread

import envs
from dream.algorithms.tabular import cfr
from dream.game_tree import sequence_form
from dream.game_tree.tree import Tree, build_tree

_SECONDS = 1.0
"""A measurement lasts at least this long."""
_UPDATES = {"kuhn_poker": 4096, "leduc_poker": 2048, "liars_dice": 64}
"""CFR iterations of one call; other games 16."""
_PYSPIEL = ("kuhn_poker", "leduc_poker", "liars_dice")


def main() -> None:
    """Reads the arguments and measures."""
    parser = Parser(__doc__)
    parser.add_argument("--games", nargs="+", default=["leduc_poker", "liars_dice"], metavar="GAME")
    parser.add_argument("--no-pyspiel", action="store_true", help="leave pyspiel out")
    run(parser, measure)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Times every game in turn, trees built anew."""
    return {name: _game(name, arguments) for name in arguments.games}


def _game(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    began = time.perf_counter()
    tree = build_tree(envs.make(name))
    report = {"histories": tree.num_histories, "infosets": tree.num_infosets, "build_s": time.perf_counter() - began}
    peers = {} if arguments.no_pyspiel or name not in _PYSPIEL else _pyspiel(name)
    timings = interleaved({"cfr": cfr_calls(tree), "nash_conv": _nash_conv(tree), **peers}, arguments.repeats, _SECONDS)
    rates = timings["cfr"].rates("iterations")
    report |= spread("iterations_per_s", rates) | spread("nash_conv_ms", _milliseconds(timings["nash_conv"]))
    if peers:
        theirs = timings["pyspiel_cfr"].rates("iterations")
        report |= spread("pyspiel_iterations_per_s", theirs) | ratio(rates, theirs)
        report |= spread("pyspiel_nash_conv_ms", _milliseconds(timings["pyspiel_nash_conv"]))
    return report


def _milliseconds(timing: Timing) -> list[float]:
    return [1e3 * seconds for seconds in timing.seconds]


def cfr_calls(tree: Tree, updates: int | None = None) -> Work:
    """Returns calls of so many iterations of CFR, by default as many as suit the game."""
    zeros, config = np.zeros(tree.legal.shape), cfr.CfrConfig("cfr")
    start = cfr.CfrState(zeros, zeros, zeros, np.int64(0), np.int32(0))
    updates = _UPDATES.get(tree.game.name, 16) if updates is None else updates

    def work(n: int) -> Any:
        with jax.enable_x64(True):
            return cfr.run_updates(config, sequence_form.sequence_form(tree), start, updates)[0]

    return Work(work, lambda after: {"iterations": updates})


def _nash_conv(tree: Tree) -> Work:
    table = tree.uniform()
    return Work(lambda n: sequence_form.nash_conv(tree, table))


def _pyspiel(name: str) -> dict[str, Work]:
    """Returns an iteration of pyspiel's C++ CFR, and its NashConv of uniform play."""
    try:
        import pyspiel
    except ImportError as error:
        print(f"pyspiel is left out, it cannot be imported: {error}", file=sys.stderr)
        return {}
    game = pyspiel.load_game(name)
    solver, policy = pyspiel.CFRSolver(game), pyspiel.UniformRandomPolicy(game)
    return {
        "pyspiel_cfr": Work(lambda n: solver.evaluate_and_update_policy(), lambda nothing: {"iterations": 1}),
        "pyspiel_nash_conv": Work(lambda n: pyspiel.nash_conv(game, policy)),
    }


if __name__ == "__main__":
    main()
