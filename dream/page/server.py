"""The server: static files and one WebSocket, for whoever knows the token in the address.

By default it is on this machine alone. Refused are: a request without the token, one whose Host is not this server's (a
name that was made to point here), a WebSocket opened by a page from elsewhere, and messages that `protocol` does not
know. Answers carry headers that forbid anything from outside the page.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import secrets
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from dream.page import dispatch, protocol, refusals
from dream.page.hub import Connection, Hub
from envs import InputError

FILES = Path(__file__).parent / "static"
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
MOST_CONNECTIONS = 256
EVERYWHERE = ("0.0.0.0", "::")
"""What stands for all addresses of this machine."""
_HTTP_PORT = 80
"""Browsers leave it out."""


class Site:
    """What is served to whom.

    Attributes:
      hub: the matches.
      token: part of every address.
    """

    def __init__(self, hub: Hub, token: str, host: str, port: int) -> None:
        """Reads the files of the page; host and port are those it is served at."""
        self.hub, self.token = hub, token
        self._host, self._port, self._names = host, port, frozenset(names(host, port))
        self._files = {
            path.relative_to(FILES).as_posix(): (path.read_bytes(), _TYPES[path.suffix])
            for path in sorted(FILES.rglob("*"))
            if path.suffix in _TYPES
        }

    def application(self) -> Starlette:
        """Returns the ASGI application."""

        @contextlib.asynccontextmanager
        async def lifespan(app: Starlette) -> AsyncIterator[None]:
            yield
            self.hub.close()

        routes = [
            WebSocketRoute("/{token}/socket", self._socket),
            Route("/{token}/", self._file),
            Route("/{token}/{name:path}", self._file),
        ]
        return Starlette(routes=routes, lifespan=lifespan)

    def _is_known(self, token: str, host: str | None) -> bool:
        return secrets.compare_digest(token.encode(), self.token.encode()) and self._is_own(host)

    def _is_own(self, host: str | None) -> bool:
        """Returns whether a Host header is this server's; a name that was made to point here is no address."""
        found = (host or "").lower()
        return found in self._names or (self._host in EVERYWHERE and _is_address(found, self._port))

    async def _file(self, request: Request) -> Response:
        """Answers with a file of the page; there is a fixed list of them, and no path is ever looked up."""
        if not self._is_known(request.path_params["token"], request.headers.get("host")):
            return PlainTextResponse("not found", 404, _HEADERS)
        found = self._files.get(request.path_params.get("name", "index.html"))
        if found is None:
            return PlainTextResponse("not found", 404, _HEADERS)
        return Response(found[0], 200, _HEADERS, f"{found[1]}; charset=utf-8")

    async def _socket(self, socket: WebSocket) -> None:
        """Talks to one tab until it leaves."""
        host, origin = socket.headers.get("host"), socket.headers.get("origin")
        known = self._is_known(socket.path_params["token"], host) and origin == f"http://{host}"
        if not known or len(self.hub.connections) >= MOST_CONNECTIONS:
            await socket.close(1008)
            return
        await socket.accept()
        lock = asyncio.Lock()

        async def send(message: dict[str, Any]) -> None:
            async with lock:
                with contextlib.suppress(WebSocketDisconnect, RuntimeError):
                    await socket.send_text(json.dumps(message))

        connection = Connection(send, socket.close)
        self.hub.connections.add(connection)
        try:
            while WebSocketState.CONNECTED is socket.client_state is socket.application_state:
                await self._answer(connection, await socket.receive_text())
        except (WebSocketDisconnect, KeyError):  # KeyError: a message of bytes
            pass
        finally:
            connection.stop()
            self.hub.connections.discard(connection)

    async def _answer(self, connection: Connection, text: str) -> None:
        try:
            message = protocol.parse(text)
            await dispatch.answer(self.hub, connection, message)
        except InputError as error:
            await connection.send(refusals.message(error))


def listen(host: str, port: int) -> socket.socket:
    """Returns a listening socket.

    Args:
      host: an address of this machine.
      port: 0 for any that is free.
    Raises:
      InputError: it cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
        found.listen(MOST_CONNECTIONS)
    except OSError as error:
        found.close()
        raise InputError(f"host={host} port={port} cannot be listened on ({error.strerror}); choose another") from error
    return found


def names(host: str, port: int) -> list[str]:
    """Returns the Host headers by which a browser may call the server; at all addresses they are the names alone."""
    hosts = {host}
    if host in ("127.0.0.1", "::1", "localhost"):
        hosts = {"127.0.0.1", "::1", "localhost"}
    elif host in EVERYWHERE:
        hosts = {"localhost", socket.gethostname()}
    bare = sorted(_bracketed(name).lower() for name in hosts)
    return [f"{name}:{port}" for name in bare] + (bare if port == _HTTP_PORT else [])


def address(host: str, port: int, token: str) -> str:
    """Returns where a browser finds the page; at all addresses by the machine's name, which others can reach."""
    name = socket.gethostname() if host in EVERYWHERE else _bracketed(host)
    return f"http://{name}:{port}/{token}/"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _is_address(header: str, port: int) -> bool:
    """Returns whether a Host header is an IP address with a port."""
    bare = header.removesuffix(f":{port}")
    if bare == header and port != _HTTP_PORT:
        return False
    inner = bare.removeprefix("[").removesuffix("]")
    try:
        ipaddress.ip_address(inner)
    except ValueError:
        return False
    return _bracketed(inner) == bare


def configured(site: Site) -> uvicorn.Config:
    """Returns how a site is served."""
    return uvicorn.Config(
        site.application(),
        log_level="warning",
        access_log=False,
        ws="websockets-sansio",
        ws_max_size=2 * protocol.MOST_PART_BYTES,
        server_header=False,
        timeout_graceful_shutdown=1,
    )


def serve(site: Site, listening: socket.socket) -> None:
    """Serves until it is interrupted, which ends the process with 130."""
    try:
        uvicorn.Server(configured(site)).run([listening])
    except KeyboardInterrupt:  # uvicorn hands the signal on when it has closed what was open
        sys.exit(128 + signal.SIGINT)
