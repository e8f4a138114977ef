"""A page's server in the tests' own process, and a client that talks to it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import uvicorn
from websockets.sync.client import connect

from dream.page.catalogue import Catalogue
from dream.page.compiled import Position
from dream.page.hub import Hub
from dream.page.refusals import CODES
from dream.page.server import FILES, Site, configured, listen
from envs import Game, boards

TOKEN = "token-of-the-tests"
PATIENCE = 60.0


@contextlib.contextmanager
def served(keeper: Callable[[Any], None] | None = None, host: str = "127.0.0.1") -> Iterator[tuple[Hub, int]]:
    """Serves a page until the end; gives the hub and the port."""
    hub = Hub(Catalogue(runs=None), keeper)
    listening = listen(host, 0)
    port = listening.getsockname()[1]
    server = uvicorn.Server(configured(Site(hub, TOKEN, host, port)))

    async def run() -> None:
        hub.loop = asyncio.get_running_loop()
        await server.serve([listening])

    thread = threading.Thread(target=asyncio.run, args=(run(),), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield hub, port
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        listening.close()


def cut(hub: Hub) -> None:
    """Closes every connection from the server's side."""
    for connection in list(hub.connections):
        asyncio.run_coroutine_threadsafe(connection.close(), hub.loop).result(PATIENCE)


class Client:
    """One tab."""

    def __init__(self, port: int, key: str | None = None, **options: Any) -> None:
        """Connects and says hello."""
        self.sent: list[str] = []
        self._opened = open_socket(port, **options)
        self.socket = self._opened.__enter__()
        self.welcome = self.ask({"type": "hello", "key": key}, "welcome")
        self.key = self.welcome["key"]

    def send(self, message: dict[str, Any] | str) -> None:
        """Sends a message."""
        self.socket.send(message if isinstance(message, str) else json.dumps(message))

    def receive(self) -> dict[str, Any]:
        """Returns the next message, which holds no sentence, and in an error a known code; its text is kept."""
        text = self.socket.recv(PATIENCE)
        self.sent.append(text)
        message = json.loads(text)
        assert message["type"] != "error" or sorted(message["params"]) == sorted(CODES[message["code"]]), message
        assert not (found := list(sentences(message))), found
        return message

    def wait(self, kind: str, holds: Callable[[dict[str, Any]], bool] = lambda message: True) -> dict[str, Any]:
        """Returns the next message of a type of which something holds; an error in its place fails."""
        while True:
            message = self.receive()
            if message["type"] == kind and holds(message):
                return message
            assert message["type"] != "error" or kind == "error", message

    def ask(self, message: dict[str, Any] | str, kind: str) -> dict[str, Any]:
        """Sends a message and returns the first answer of a type."""
        self.send(message)
        return self.wait(kind)

    def new(self, game: str, seats: list[str | None], variant: str | None = None, **settings: Any) -> dict[str, Any]:
        """Starts a match and returns it once the person is to act."""
        way = variant or next(one for one in self.welcome["games"] if one["game"] == game)["variants"][0]["key"]
        message = {"type": "new", "game": game, "variant": way, "seats": seats, "target": None, "pace": 0, **settings}
        self.send(message)
        return self.my_turn()

    def my_turn(self) -> dict[str, Any]:
        """Returns the match once the person is to act, or the round is over."""
        found = self.wait("match", lambda message: bool(message["match"]["choices"]) or message["match"]["done"])
        return found["match"]

    def act(self, match: dict[str, Any], action: int) -> dict[str, Any]:
        """Plays an action and returns the match when it is the person's turn again."""
        self.send(act(match, action))
        return self.my_turn()

    def play(self, match: dict[str, Any]) -> dict[str, Any]:
        """Plays a round to its end: a knock where it is allowed, else what leaves the least, else the last choice."""
        while not match["done"]:
            match = self.act(match, chosen(match))
        return match

    def close(self) -> None:
        """Leaves."""
        self._opened.__exit__(None, None, None)


def open_socket(port: int, token: str = TOKEN, origin: str | None = "own", host: str | None = None) -> connect:
    """Returns what opens a WebSocket, as a page from this server does by default, in a `with`."""
    host = host or f"127.0.0.1:{port}"
    origin = f"http://{host}" if origin == "own" else origin
    to_here = socket.create_connection(("127.0.0.1", port))
    return connect(f"ws://{host}/{token}/socket", sock=to_here, origin=origin, max_size=None)


def act(match: dict[str, Any], action: int) -> dict[str, Any]:
    """Returns the message that plays an action."""
    return {"type": "act", "match": match["id"], "round": match["round"], "ply": match["ply"], "action": action}


def chosen(match: dict[str, Any]) -> int:
    """Returns a sensible action."""
    choices = match["choices"]
    ends = [choice for choice in choices if choice["kind"] in ("knock", "gin", "lay", "layoff")]
    if ends:
        return ends[0]["id"]
    discards = [choice for choice in choices if "left" in choice]
    return min(discards, key=lambda choice: choice["left"])["id"] if discards else choices[-1]["id"]


def hidden_cards(game: Game, position: Position, seat: int) -> set[str]:
    """Returns the cards that a seat may not know: in a hand of another's, and never seen taken."""
    board = boards.board_of(game)
    deck, held = board.deck(game), np.asarray(board.hands(game, position.state))
    others = {deck[card] for n in range(len(held)) if n != seat for card in np.flatnonzero(held[n])}
    return others - set(texts(board.seen(game, position.views[seat])))


def words(match: dict[str, Any]) -> set[str]:
    """Returns the words in what is shown of a match, the players' names aside."""
    return {word for text in texts({**match, "chairs": []}) for word in re.findall(r"\w+", text)}


_SENTENCE = re.compile(r"[A-Za-z]{2,}[,;:]? [A-Za-z]{2,}")
_AS_THEY_ARE = ("label", "svg", "name", "names", "chairs", "players", "advisor", "advisers", "params")
"""What may hold words: a game's own ones, names, and the parameters of an error."""
_MOVES, _TERMS = ("choices", "move", "log"), ("terms",)


def sentences(value: Any, key: str = "") -> Iterator[str]:
    """Yields what would be shown in the server's own words: sentences, and kinds of moves that strings.js lacks."""
    if isinstance(value, dict):
        if "kind" in value and key in _MOVES + _TERMS and "label" not in value:
            tables = ("VERBS", "LABELS") if key in _MOVES else ("TERMS",)
            yield from (f"{table}: {value['kind']}" for table in tables if value["kind"] not in _known(table))
        for name, item in value.items():
            yield from () if name in _AS_THEY_ARE else sentences(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from sentences(item, key)
    elif isinstance(value, str) and _SENTENCE.search(value):
        yield value


@functools.cache
def _known(table: str) -> set[str]:
    """Returns the keys of a table of strings.js."""
    text = (FILES / "strings.js").read_text()
    return set(re.findall(r"^  (\w+):", text[text.index(f"\nconst {table} = {{") :].split("\n};")[0], re.MULTILINE))


def texts(value: Any) -> Iterator[str]:
    """Yields every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
