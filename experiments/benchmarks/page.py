"""The page through its socket: seconds from the start of the process to the first cards, and milliseconds per move.

Each repeat starts `python -m dream.play` with an empty cache of compiled programs, and then again with the cache that
the first left. `address` is when the address is printed, `first_card` when the first position of a round is there,
`first_move` the longest of the first three moves (they may compile), `move` every later one: from the person's action
until it is their turn again, the opponent's moves included.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from common import Parser, run, spreads
from websockets.sync.client import ClientConnection, connect

from envs import InputError

_PATIENCE = 120.0
_COMPILING = 3
"""Moves of a fresh server that may meet a program for the first time."""
_ENDS = ("knock", "gin", "lay", "layoff")


def main() -> None:
    """Reads the arguments and measures."""
    parser = Parser(__doc__, repeats=3)
    parser.add_argument("--game", default="gin_rummy", help="a game's name (default %(default)s)")
    parser.add_argument(
        "--players", nargs="+", default=["strong", "heuristic"], help="who is played, as the page calls them"
    )
    parser.add_argument("--moves", type=int, default=60, help="timed moves of the person (default %(default)s)")
    run(parser, measure)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Times every player, with an empty cache and with what it left.

    Raises:
      InputError: the server ended, or does not know a game or player.
    """
    if arguments.moves < 1:
        raise InputError(f"--moves {arguments.moves} is not valid; it must be at least 1")
    return {player: _of_player(arguments, player) for player in arguments.players}


def _of_player(arguments: argparse.Namespace, player: str) -> dict[str, Any]:
    found: dict[str, list[dict[str, float]]] = {"cold": [], "warm": []}
    for _ in range(arguments.repeats):
        with tempfile.TemporaryDirectory() as cache:
            for runs in found.values():
                runs.append(_sitting(arguments.game, player, arguments.moves, cache))
    return {name: spreads(runs) for name, runs in found.items()}


def _sitting(game: str, player: str, moves: int, cache: str) -> dict[str, float]:
    """Returns the figures of one process."""
    began = time.perf_counter()
    with _server(cache) as address, _socket(address) as socket:
        heard = time.perf_counter() - began
        _send(socket, type="hello", key=None)
        welcome = _wait(socket, "welcome")
        known = next((one for one in welcome["games"] if one["game"] == game), None)
        if known is None:
            raise InputError(f"the page has no game {game!r}; it has {', '.join(x['game'] for x in welcome['games'])}")
        variant = known["variants"][0]["label"]
        _send(socket, type="new", game=game, variant=variant, seats=[None, player], target=None, pace=0)
        match = _wait(socket, "match")["match"]
        first_card = time.perf_counter() - began
        match = _my_turn(socket, match)
        taken = [0.0] * (_COMPILING + moves)
        for n in range(len(taken)):
            if match["done"]:
                _send(socket, type="next", match=match["id"], round=match["round"])
                match = _my_turn(socket)
            at = time.perf_counter()
            act = {name: match[name] for name in ("round", "ply")}
            _send(socket, type="act", match=match["id"], action=_chosen(match["choices"]), **act)
            match = _my_turn(socket)
            taken[n] = 1000 * (time.perf_counter() - at)
        settled = sorted(taken[_COMPILING:])
        return {
            "address_s": heard,
            "first_card_s": first_card,
            "first_move_ms": max(taken[:_COMPILING]),
            "move_ms": statistics.median(settled),
            "move_95_ms": settled[int(0.95 * (len(settled) - 1))],
            "move_longest_ms": settled[-1],
        }


@contextlib.contextmanager
def _server(cache: str) -> Iterator[str]:
    """Runs the command until the end; gives the address it prints."""
    command = [sys.executable, "-m", "dream.play", "open_browser=false"]
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": cache}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as child:
        try:
            printed = []
            for line in child.stdout:
                printed.append(line.strip())
                if line.startswith("http://"):
                    yield line.strip()
                    break
            else:
                raise InputError(f"the page's server ended: {printed[-1] if printed else 'it printed nothing'}")
        finally:
            child.terminate()


def _socket(address: str) -> ClientConnection:
    parts = urlsplit(address)
    own = f"{parts.scheme}://{parts.netloc}"
    return connect(f"ws://{parts.netloc}{parts.path}socket", origin=own, max_size=None, open_timeout=_PATIENCE)


def _send(socket: ClientConnection, **message: Any) -> None:
    socket.send(json.dumps(message))


def _wait(socket: ClientConnection, kind: str) -> dict[str, Any]:
    """Returns the next message of a type.

    Raises:
      InputError: the server refused what was asked.
    """
    while (message := json.loads(socket.recv(_PATIENCE)))["type"] != kind:
        if message["type"] == "error":
            raise InputError(f"the page answered: {message}")
    return message


def _my_turn(socket: ClientConnection, match: dict[str, Any] | None = None) -> dict[str, Any]:
    """Returns the match once the person is to act, or the round is over."""
    while match is None or not (match["choices"] or match["done"]):
        match = _wait(socket, "match")["match"]
    return match


def _chosen(choices: list[dict[str, Any]]) -> int:
    """Returns what ends a round where that is offered, else the discard that leaves the least, else the last choice."""
    ends = [choice for choice in choices if choice["kind"] in _ENDS]
    discards = [choice for choice in choices if "left" in choice]
    best = ends[:1] or sorted(discards, key=lambda choice: choice["left"])[:1] or choices[-1:]
    return best[0]["id"]


if __name__ == "__main__":
    main()
