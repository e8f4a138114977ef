"""The play command's work: a server on this machine, its address printed and opened in the browser."""

from __future__ import annotations

import dataclasses
import importlib.util
import secrets
import socket
import webbrowser
from pathlib import Path

from dream.commands.play_terminal import TerminalPlay, play_terminal, prepare_terminal
from dream.config import settings
from dream.config.compose import Composed
from dream.config.schema import PlayConfig
from dream.page.catalogue import Catalogue
from envs import InputError

_NEEDED = ("starlette", "uvicorn", "websockets")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclasses.dataclass(frozen=True)
class Play:
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


def prepare_play(composed: Composed) -> Play | TerminalPlay:
    """Checks a composed configuration and takes the port; writes nothing.

    Raises:
      InputError: a wrong setting, a player that cannot be loaded, a port that is taken, or a package that is missing.
    """
    config = settings.read(PlayConfig, composed.node, "")
    if config.terminal:
        return prepare_terminal(config)
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(f"the page needs {', '.join(missing)}; install the extra: pip install 'dream-rummy[play]'")
    from dream.page.server import listen

    if config.host not in _LOOPBACK and not config.anyone:
        raise InputError(
            f"host={config.host} is not this machine alone; anyone=true lets everybody who knows the address play"
        )
    records = None if config.records is None else Path(config.records).expanduser().absolute()
    if records is not None and (records.is_dir() or not records.parent.is_dir()):
        raise InputError(f"records={config.records} is not valid; it must be a file in a folder that exists")
    return Play(config, Catalogue(config.players), listen(config.host, config.port), records)


def play(prepared: Play | TerminalPlay) -> None:
    """Serves until it is interrupted; the address is a line of its own."""
    if isinstance(prepared, TerminalPlay):
        play_terminal(prepared)
        return
    from dream.page.hub import Hub
    from dream.page.opened import Keeper
    from dream.page.server import Site, names, serve

    config, port = prepared.config, prepared.listening.getsockname()[1]
    token = secrets.token_urlsafe(24)
    host = f"[{config.host}]" if ":" in config.host else config.host
    address = f"http://{host}:{port}/{token}/"
    keeper = Keeper(prepared.records) if prepared.records else None
    site = Site(Hub(prepared.catalogue, keeper), token, names(config.host, port))
    print("Open this address in a browser; whoever knows it can play. Ctrl-C ends.", flush=True)
    print(address, flush=True)
    if config.open_browser:
        webbrowser.open(address)
    serve(site, prepared.listening)
