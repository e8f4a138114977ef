"""The play command's work: a server on this machine, its address printed and opened in the browser; or the terminal."""

from __future__ import annotations

import dataclasses
import importlib.util
import secrets
import socket
import webbrowser
from pathlib import Path

import envs
from dream.config import settings
from dream.config.compose import Composed, check_names
from dream.config.schema import PlayConfig
from dream.page.catalogue import Catalogue
from dream.storage.policies import find_opponent
from envs import Game, HostPlayer, InputError, Policy
from envs.records import check_lines
from envs.terminal import play_in_terminal

_NEEDED = ("starlette", "uvicorn", "websockets")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_YOU = "you"


@dataclasses.dataclass(frozen=True)
class Page:
    """What is to be served.

    Attributes:
      config: the settings.
      catalogue: games and players.
      listening: the socket.
      records: file for finished rounds, None for none.
    """

    config: PlayConfig
    catalogue: Catalogue
    listening: socket.socket
    records: Path | None


@dataclasses.dataclass(frozen=True)
class Terminal:
    """What is to be played in the terminal.

    Attributes:
      game: what is played.
      seats: who sits where, by name.
      players: the same, None for a person.
      target: the score that ends the match.
      seed: of deals and players, None for a random one.
      records: file for finished rounds, None for none.
    """

    game: Game
    seats: tuple[str, ...]
    players: tuple[Policy | HostPlayer | None, ...]
    target: int | None
    seed: int | None
    records: Path | None


def prepare_play(composed: Composed) -> Page | Terminal:
    """Checks a composed configuration and takes the port; writes nothing.

    Raises:
      InputError: a wrong setting, a player that cannot be loaded, a port that is taken, or a package that is missing.
    """
    check_names(composed, "env")
    config = settings.read(PlayConfig, composed.node, "")
    records = None if config.records is None else Path(config.records).expanduser().absolute()
    if records is not None and (records.is_dir() or not records.parent.is_dir()):
        raise InputError(f"records={config.records} is not valid; it must be a file in a folder that exists")
    if records is not None:
        check_lines(records)
    if config.terminal:
        return _terminal(config, records)
    if composed.gives("env"):
        raise InputError("env applies only in the terminal; on the page the game is chosen there. Add terminal=true")
    return _page(config, records)


def _page(config: PlayConfig, records: Path | None) -> Page:
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(f"the page needs {', '.join(missing)}; install the extra: pip install 'dream-rummy[play]'")
    for setting in ("seats", "target", "seed"):
        if getattr(config, setting) is not None:
            instead = "every deal is a random one" if setting == "seed" else "it is chosen there"
            raise InputError(f"{setting} applies only in the terminal; on the page {instead}. Add terminal=true")
    from dream.page.server import listen

    if config.host not in _LOOPBACK and not config.anyone:
        raise InputError(
            f"host={config.host} is not this machine alone; anyone=true lets everybody who knows the address play"
        )
    return Page(config, Catalogue(config.players), listen(config.host, config.port), records)


def _terminal(config: PlayConfig, records: Path | None) -> Terminal:
    if config.players:
        raise InputError("players applies only on the page; in the terminal the seats are given: seats=[you,<player>]")
    for setting in ("host", "port", "anyone"):
        if getattr(config, setting) != getattr(PlayConfig, setting):
            raise InputError(
                f"{setting} applies only on the page; in the terminal nobody else can play. Leave out terminal=true"
            )
    game = envs.make(config.env.name, **config.env.rules)
    best = Catalogue(runs=None).advisor(game)
    seats = config.seats if config.seats is not None else (_YOU, *[best] * (game.num_players - 1))
    if len(seats) != game.num_players:
        raise InputError(f"seats={list(seats)} names {len(seats)}; {game.name} has {game.num_players} seats")
    players = tuple(None if name == _YOU else _seated(name, game) for name in seats)
    return Terminal(game, tuple(seats), players, config.target, config.seed, records)


def _seated(name: str, game: Game) -> Policy | HostPlayer:
    """Returns the player of a seat in the terminal; the error for a wrong name also names the person."""
    try:
        return find_opponent(name, game)
    except InputError as error:
        raise InputError(f"{error}; a person is named {_YOU}") from error


def play(prepared: Page | Terminal) -> None:
    """Serves until it is interrupted, or plays in the terminal until the person leaves."""
    if isinstance(prepared, Terminal):
        _play_in_terminal(prepared)
    else:
        _serve(prepared)


def _play_in_terminal(prepared: Terminal) -> None:
    game = prepared.game
    hint = find_opponent(Catalogue(runs=None).advisor(game), game)
    assert isinstance(hint, Policy)
    play_in_terminal(
        game,
        prepared.players,
        names=prepared.seats,
        hint=hint,
        target=prepared.target,
        seed=prepared.seed,
        keep=prepared.records,
    )


def _serve(prepared: Page) -> None:
    """Serves the page; its address is a line of its own."""
    from dream.page.hub import Hub
    from dream.page.opened import Keeper
    from dream.page.server import EVERYWHERE, Site, address, serve

    config, token = prepared.config, secrets.token_urlsafe(24)
    bound, port = prepared.listening.getsockname()[:2]
    host = bound if bound in EVERYWHERE or ":" in bound else config.host  # as browsers write it, however it was given
    opened = address(host, port, token)
    keeper = Keeper(prepared.records) if prepared.records else None
    site = Site(Hub(prepared.catalogue, keeper), token, host, port)
    print("Open this address in a browser; whoever knows it can play. Ctrl-C ends.", flush=True)
    print(opened, flush=True)
    if config.open_browser:
        webbrowser.open(opened)
    serve(site, prepared.listening)
