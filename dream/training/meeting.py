"""How the processes of one run find each other: the first listens, the others call, and each says who it is."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Sequence
from typing import Any

from envs.errors import InputError

_HANDSHAKE_SECONDS = 5.0
_LONGEST_LINE = 2**16

Peers = dict[int, tuple[socket.socket, str]]
"""Connected socket and name by the index of the process."""


def listen(port: int) -> socket.socket:
    """Returns a socket that listens on all of this machine's addresses; port 0 is any that is free.

    Raises:
      InputError: the port cannot be had.
    """
    both = socket.has_dualstack_ipv6()
    try:
        return socket.create_server(
            ("", port), family=socket.AF_INET6 if both else socket.AF_INET, dualstack_ipv6=both, backlog=128
        )
    except OSError as error:
        raise InputError(
            f"hosts.coordinator: port {port} cannot be used here ({error.strerror}); it must be free on the first host"
        ) from error


def free_port() -> int:
    """Returns a port of this machine that is free now."""
    with listen(0) as server:
        return server.getsockname()[1]


def receive(server: socket.socket, count: int, seconds: float, said: dict[str, Any]) -> Peers:
    """Waits for all other processes, and says something to each when all have come.

    Args:
      server: listens.
      count: processes, this one included.
      seconds: to wait.
      said: to each of them.
    Raises:
      InputError: one has not come in time, or they do not fit together; those that came hear of it.
    """
    peers: Peers = {}
    deadline = time.monotonic() + seconds
    try:
        while len(peers) < count - 1:
            missing = [str(n) for n in range(1, count) if n not in peers]
            late = f"host{'s' * (len(missing) > 1)} {', '.join(missing)} of {count} did not come within {seconds:g} s"
            link = _accepted(server, deadline)
            if link is None:
                raise InputError(f"{late} (hosts.wait_seconds); start every process with the same hosts.coordinator")
            caller = _line(link)
            if not isinstance(caller, dict) or not isinstance(caller.get("index"), int):
                link.close()  # not one of ours
                continue
            index = caller["index"]
            wrong = _misfit(caller, count, peers)
            peers[-1 if wrong else index] = link, str(caller.get("name"))
            if wrong:
                raise InputError(wrong)
    except InputError as error:
        _say(peers, {"refused": str(error)})
        for link, _ in peers.values():
            link.close()
        raise
    _say(peers, said)
    return peers


def _misfit(caller: dict[str, Any], count: int, peers: Peers) -> str | None:
    index = caller["index"]
    if caller.get("count") != count:
        return f"hosts.count={count} on host 0 and {caller.get('count')} on host {index}; it must be the same"
    if index in peers:
        return f"hosts.index={index} is given to two processes; each must have its own"
    return None


def call(addresses: Sequence[str], port: int, seconds: float, said: dict[str, Any]) -> tuple[Peers, dict[str, Any]]:
    """Calls the first process until it answers, and waits for what it says when all have come.

    Args:
      addresses: of its machine; the first that answers is used.
      port: on which it listens.
      seconds: to try, and to wait for the others.
      said: to it: `index`, `count` and `name` of this process.
    Raises:
      InputError: it does not answer, or refuses.
    """
    deadline = time.monotonic() + seconds
    while True:
        for address in addresses:
            with contextlib.suppress(OSError):
                link = socket.create_connection((address, port), timeout=_HANDSHAKE_SECONDS)
                peers: Peers = {0: (link, address)}
                _say(peers, said)
                answer = _line(link, deadline - time.monotonic() + _HANDSHAKE_SECONDS)
                if isinstance(answer, dict) and "refused" not in answer:
                    return peers, answer
                link.close()
                if isinstance(answer, dict):
                    raise InputError(answer["refused"])
        if time.monotonic() > deadline:
            raise InputError(
                f"host 0 of {said['count']} did not answer at {addresses[0]}:{port} within {seconds:g} s "
                "(hosts.wait_seconds); start every process with the same hosts.coordinator"
            )
        time.sleep(0.2)


def own_name() -> str:
    """Returns this process in words."""
    return f"process {os.getpid()} on {socket.gethostname()}"


def own_addresses() -> str:
    """Returns what other machines may know this one by: its name, then its addresses, separated by blanks."""
    name = socket.gethostname()
    found = [name]
    with contextlib.suppress(OSError):
        found += [str(info[4][0]) for info in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)]
    return " ".join(dict.fromkeys(found))


def _accepted(server: socket.socket, deadline: float) -> socket.socket | None:
    """Returns the next connection; None where none comes in time."""
    left = deadline - time.monotonic()
    if left <= 0:
        return None
    server.settimeout(left)
    try:
        return server.accept()[0]
    except TimeoutError:
        return None


def _line(link: socket.socket, seconds: float = _HANDSHAKE_SECONDS) -> Any:
    """Returns the JSON of the next line, read byte by byte as what follows belongs to another; None without one."""
    link.settimeout(max(seconds, 0.1))
    data = b""
    try:
        while not data.endswith(b"\n") and len(data) < _LONGEST_LINE:
            byte = link.recv(1)
            if not byte:
                return None
            data += byte
        link.settimeout(None)
        return json.loads(data)
    except (OSError, ValueError):
        return None


def _say(peers: Peers, message: dict[str, Any]) -> None:
    for link, _ in peers.values():
        with contextlib.suppress(OSError):
            link.sendall((json.dumps(message) + "\n").encode())
