"""Decisions and games per second of uniform random play with the full legal mask, and of pyspiel's from Python.

With --devices lanes are split over as many devices of the CPU, of one thread each.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from typing import Any

from common import Parser, Work, at_least_one, interleaved, random_play, ratio, run, split_cores, spread

import envs

_PEER = "pyspiel"
_PEER_GAME = "gin_rummy"
_SECONDS = 0.5
"""A measurement lasts at least this long; one of pyspiel twice as long."""


def main() -> None:
    """Reads the arguments and measures."""
    parser = Parser(__doc__)
    parser.add_argument("--env", default="gin_rummy", help="the game (default %(default)s)")
    parser.add_argument("--version", help="the game's rule of that name: abrupt phantom games (default: the game's)")
    parser.add_argument("--batches", type=at_least_one, nargs="+", default=[256, 1024, 4096, 16384], metavar="GAMES")
    parser.add_argument("--no-pyspiel", action="store_true", help="leave pyspiel's gin_rummy out")
    parser.add_argument("--devices", type=at_least_one, default=1, help="that share the games (default %(default)s)")
    run(parser, measure)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Times whole random games at every batch size, and pyspiel's in the same rounds; compilation apart."""
    split_cores(arguments.devices, arguments.batches)
    rules = {} if arguments.version is None else {"version": arguments.version}
    game = envs.make(arguments.env, **rules)
    works = {batch: random_play(game, batch) for batch in dict.fromkeys(arguments.batches)}
    peer = None if arguments.no_pyspiel or arguments.env != _PEER_GAME else _pyspiel_play()
    timings = interleaved(works | ({_PEER: peer} if peer else {}), arguments.repeats, _SECONDS)
    by_batch = {
        str(batch): {
            **spread("decisions_per_s", timings[batch].rates("decisions")),
            **spread("games_per_s", timings[batch].rates("games")),
            "compile_seconds": timings[batch].compile_seconds,
        }
        for batch in works
    }
    best = max(works, key=lambda batch: statistics.median(timings[batch].rates("decisions")))
    figures = {"env": game.name, **rules, "best_batch": best, **by_batch[str(best)], "by_batch": by_batch}
    if peer:
        decisions = timings[_PEER].rates("decisions")
        figures |= spread("pyspiel_decisions_per_s", decisions)
        figures |= spread("pyspiel_games_per_s", timings[_PEER].rates("games"))
        figures |= ratio(timings[best].rates("decisions"), decisions)
    return figures


def _pyspiel_play() -> Work | None:
    """Plays games of pyspiel's gin_rummy for a while; counts games and the players' decisions, not chance's."""
    try:
        import pyspiel
    except ImportError as error:
        print(f"pyspiel is left out, it cannot be imported: {error}", file=sys.stderr)
        return None
    root = pyspiel.load_game(_PEER_GAME).new_initial_state()

    def play(n: int) -> tuple[int, int]:
        choose, games, decisions = random.Random(n).choice, 0, 0
        began = time.perf_counter()
        while time.perf_counter() - began < 2 * _SECONDS:
            state = root.clone()
            while not state.is_terminal():
                if state.is_chance_node():
                    # In this game all outcomes of a chance node are equally likely: no need to weigh them.
                    state.apply_action(choose(state.chance_outcomes())[0])
                else:
                    state.apply_action(choose(state.legal_actions()))
                    decisions += 1
            games += 1
        return games, decisions

    return Work(play, lambda played: {"games": played[0], "decisions": played[1]})


if __name__ == "__main__":
    main()
