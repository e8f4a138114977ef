"""Messages between the processes of one run: lines of JSON over sockets, the first process in the middle.

Each process has a socket to the first, and a thread that reads it. A process that is killed closes its sockets, so that
the others end within seconds with a line of their own, wherever their main threads are: a collective operation with a
process that is gone may never return. A machine that vanishes is noticed by TCP's keepalive.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

_GRACE_SECONDS = 3.0
"""What a process has to end with an error of its own, after another has left with one."""
_PROBES = 3
"""Unanswered keepalive probes after which a machine counts as gone."""


class Link:
    """A process's connection to the others of its run.

    Attributes:
      index, count: of this process, and how many there are.
      signal: that another process has received; None for none.
      advice: what to do where a process is lost; may look at files.
    """

    def __init__(self, index: int, count: int, peers: Mapping[int, tuple[socket.socket, str]], silence: int) -> None:
        """Starts reading.

        Args:
          index, count: as above.
          peers: connected socket and name by index: all others in the first process, the first in all others.
          silence: seconds after which a machine that does not answer is gone.
        """
        self.index, self.count, self.signal = index, count, None
        self.advice: Callable[[], str] = lambda: "start all of them again"
        self._values: queue.Queue[list[Any]] = queue.Queue()
        self._answers = {peer: queue.Queue() for peer in peers}
        self._sockets = {peer: link for peer, (link, _) in peers.items()}
        self._names = {peer: f"host {peer} of {count} ({name})" for peer, (_, name) in peers.items()}
        self._lock, self._ending = threading.Lock(), False
        self._threads = [
            threading.Thread(target=self._read, args=(peer, link), name=f"host {peer}", daemon=True)
            for peer, link in self._sockets.items()
        ]
        for link in self._sockets.values():
            keep_alive(link, silence)
        for thread in self._threads:
            thread.start()

    def of_the_first(self, what: str, value: Any) -> Any:
        """Returns the first process's value; see dream.compiled.agreement."""
        if self.index == 0:
            self._send({"value": [what, value]})
            return value
        named, value = self._values.get()
        if named != what:
            raise RuntimeError(f"host 0 is at {named!r}, host {self.index} at {what!r}: they have diverged")
        return value

    def gathered(self, value: Any) -> dict[int, Any]:
        """Returns the values of all other processes by index in the first process, {} in the others."""
        if self.index == 0:
            return {peer: answers.get() for peer, answers in self._answers.items()}
        self._send({"answer": value})
        return {}

    def name(self, peer: int) -> str:
        """Returns a process in words."""
        return self._names[peer]

    def pass_on(self, number: int) -> None:
        """Has the first process know of a signal."""
        self._send({"signal": number})

    def leave(self, line: str, code: int) -> None:
        """Has the others know that this process ends by an error or a signal, with this exit code."""
        if self._begin_to_end():
            self._send({"leaves": line, "code": code})

    def close(self) -> None:
        """Ends the connection in good order."""
        if self._begin_to_end():
            self._send({"ends": True})

    def wait_for_loss(self, seconds: float) -> None:
        """Waits so long; where a process is lost meanwhile, this one ends with the line about it."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self._ending:
                threading.Event().wait()
            time.sleep(0.05)

    def wait_for_ends(self, seconds: float) -> None:
        """Waits at most so long until all others have ended; those that outlive JAX's service are ended by it."""
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0.0))

    def _begin_to_end(self) -> bool:
        with self._lock:
            first, self._ending = not self._ending, True
        return first

    def _send(self, message: dict[str, Any]) -> None:
        """Sends a line to every peer; one that is gone is noticed by the thread that reads it."""
        data = (json.dumps(message) + "\n").encode()
        for link in self._sockets.values():
            with contextlib.suppress(OSError):
                link.sendall(data)

    def _read(self, peer: int, link: socket.socket) -> None:
        """Takes in what a peer says, until it ends."""
        with contextlib.suppress(OSError, ValueError), link, link.makefile("r", encoding="utf-8") as lines:
            for line in lines:
                message = json.loads(line)
                if "value" in message:
                    self._values.put(message["value"])
                elif "answer" in message:
                    self._answers[peer].put(message["answer"])
                elif "signal" in message:
                    self.signal = message["signal"]
                elif "leaves" in message:
                    self._lose(f"{self._names[peer]} has left: {message['leaves']}", message["code"], _GRACE_SECONDS)
                elif "ends" in message:
                    return
        self._lose(f"{self._names[peer]} is gone", 1, 0.0)

    def _lose(self, line: str, code: int, grace: float) -> None:
        """Ends this process because of another; does nothing where it is ending on its own."""
        time.sleep(grace)
        if not self._begin_to_end():
            return
        self._send({"leaves": line, "code": code})
        try:
            advice = self.advice()
        except Exception as error:
            advice = f"{type(error).__name__}: {error}"
        end_process(f"error: {line}; {advice}", code)


def end_process(line: str, code: int) -> NoReturn:
    """Ends the process at once with a line on stderr; an exception would wait for a call that may never return."""
    with contextlib.suppress(OSError):
        os.write(2, f"{line}\n".encode())
    os._exit(code)


def keep_alive(link: socket.socket, silence: int) -> None:
    """Has a connection end where the other machine has not answered for so many seconds."""
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    each = max(silence // (_PROBES + 1), 1)
    options = {"TCP_KEEPIDLE": each, "TCP_KEEPINTVL": each, "TCP_KEEPCNT": _PROBES, "TCP_USER_TIMEOUT": 1000 * silence}
    for name, value in options.items():
        if hasattr(socket, name):  # not on every system
            link.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
