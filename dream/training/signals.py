"""Leaving cleanly on Ctrl-C, SIGTERM and a lost terminal, also in the middle of one long compiled call."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_UNLESS_IGNORED = (signal.SIGHUP,)
"""Sent where a terminal is closed; ignored under nohup, which stays so."""
_WHERE_HANDLED = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU)
"""Taken over too where somebody handles them: submitit does with the signal that a scheduler sends before the end."""
_STREAMS = (1, 2)
"""Standard output and standard error."""
PATIENCE_SECONDS, GRACE_SECONDS = 4.0, 10.0
"""What an iteration has to come to its end after the first signal, before it is left between two calls; and what a call
under way has, before the process is left in the middle of it."""


class StopRequest:
    """Takes signals over, so that work is brought to its end and saved, or left where that takes too long.

    Before `protect` a signal ends the process at once, as there is nothing to save. After it the first signal sets
    `received`, which the work looks at between calls. A call (see `call`) that is not over after a grace of some
    seconds is left: what was finished before it is saved, and the process ends. A second signal ends it at once.

    Where a signal had a handler of somebody else's before, such as submitit's, which puts its job in the queue again,
    that is called when all is saved. Schedulers send several such signals: a second one takes the place of the first.

    Python runs signal handlers in the main thread between two bytecodes, thus never inside a long compiled call. So
    the signal's number goes through a pipe to a thread (signal.set_wakeup_fd), which acts on its own. At once means
    os._exit: an exception in the main thread would wait for the same call to end.
    """

    _newest: StopRequest | None = None

    def __init__(self, grace: float = GRACE_SECONDS, *, listen: bool = True) -> None:
        """Takes the signals over from whoever had them.

        Args:
          grace: seconds that a call under way has after the first signal.
          listen: False leaves signals alone, for work inside someone else's program; True is for the main thread only.
        """
        self.received: int | None = None
        self._grace, self._protected, self._farewell = grace, False, ""
        self._seen: float | None = None
        self._rescue: Callable[[], str] | None = None
        self._earlier: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self._release: Callable[[], None] = lambda: None
        self._lock, self._leaving = threading.Lock(), False
        if listen:
            self._listen()

    @classmethod
    def current(cls) -> StopRequest:
        """Returns the one that has the signals of this process, or takes them over, as in a worker of a launcher."""
        return cls._newest or cls()

    def _listen(self) -> None:
        self._pipe, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)
        signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        taken = (*_SIGNALS, *(number for number in _UNLESS_IGNORED if signal.getsignal(number) != signal.SIG_IGN))
        for number in (*taken, *_WHERE_HANDLED):
            if (earlier := _handler_of_others(number)) is not None:
                self._earlier[number] = earlier
            if earlier is not None or number in taken:
                signal.signal(number, self._handle)
        if StopRequest._newest is not None:
            os.close(StopRequest._newest._write_end)
        StopRequest._newest = self
        threading.Thread(target=self._watch, name="signals", daemon=True).start()

    def protect(self, protected: bool = True, farewell: str = "") -> None:
        """Says whether there is work to be saved from now on.

        Args:
          protected: whether the first signal waits for it.
          farewell: the line that a signal prints as it ends the process at once.
        """
        self._protected, self._farewell = protected, farewell

    @contextlib.contextmanager
    def holding(self, release: Callable[[], None]) -> Iterator[None]:
        """Marks work that holds what others wait for; inside other such work, both are given back.

        Args:
          release: gives it back, in another thread, where the process is ended at once.
        """
        earlier = self._release

        def both() -> None:
            try:
                release()
            finally:
                earlier()

        self._release = both
        try:
            yield
        finally:
            self._release = earlier

    @contextlib.contextmanager
    def call(self, rescue: Callable[[], str]) -> Iterator[None]:
        """Marks a call that may be long.

        Args:
          rescue: saves what was finished before the call and returns a line about it; it runs in another thread where
            the call is left.
        """
        with self._lock:
            self._rescue = rescue
        try:
            yield
        finally:
            with self._lock:
                self._rescue = None
                leaving = self._leaving
            if leaving:  # what the call has returned comes too late: the state from before it is being saved
                threading.Event().wait()

    def hand_on(self) -> None:
        """Calls the handler that the received signal had before, which may end the process or raise; all is saved."""
        if (earlier := self._earlier.get(self.received)) is None:
            return
        self._leaving = True
        try:
            earlier(self.received, None)
        finally:
            self._leaving = False

    @property
    def exit_code(self) -> int:
        """0, or 128 + the signal received."""
        return 0 if self.received is None else 128 + self.received

    @property
    def is_overdue(self) -> bool:
        """Whether a signal was received and what is under way should be left; the time runs from the first look."""
        if self.received is None:
            return False
        self._seen = self._seen or time.monotonic()
        return time.monotonic() - self._seen > min(PATIENCE_SECONDS, self._grace / 2)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        """Does nothing: the signal has been through the pipe already."""

    def _watch(self) -> None:
        """Waits for signals, after the first for the end of the grace, and for the end of the terminal."""
        deadline, poll = None, select.poll()
        poll.register(self._pipe, select.POLLIN)
        for stream in _STREAMS:
            if os.isatty(stream):
                poll.register(stream, 0)  # a closed one is reported all the same
        while True:
            wait = None if deadline is None else 1000 * max(deadline - time.monotonic(), 0.0)
            ready = [at for at, _ in poll.poll(wait)]
            for stream in set(ready) & set(_STREAMS):
                poll.unregister(stream)
                _drop(stream)
            if not ready:
                deadline = None if self._left_call() else time.monotonic() + 0.1
            if self._pipe not in ready:
                continue
            arrived = os.read(self._pipe, 64)
            if not arrived:  # another StopRequest has the signals now
                os.close(self._pipe)
                return
            for number in arrived:
                if signal.getsignal(number) == self._handle:
                    self._take(number)
                    deadline = deadline or time.monotonic() + self._grace

    def _take(self, number: int) -> None:
        """Ends the process on a second signal, or on the first where there is nothing to save."""
        first, is_chained = self.received is None, number in self._earlier
        if is_chained and self._leaving:
            return
        waits = self._protected if first else is_chained
        if not waits:
            self._leave(number, self._farewell if first else "")
        self.received = number
        if first:
            then = "then its earlier handler is called" if is_chained else "a second signal leaves at once"
            name = signal.Signals(number).name
            _say(f"\n{name}: finishing the iteration and saving, for which it has {self._grace:.0f} s; {then}")

    def _left_call(self) -> bool:
        """Begins to leave the call under way; returns False where there is none, or none any more."""
        with self._lock:
            if self._rescue is None:
                return False
            self._leaving, rescue = True, self._rescue
        threading.Thread(target=self._save_and_leave, args=(rescue,), name="rescue", daemon=True).start()
        return True

    def _save_and_leave(self, rescue: Callable[[], str]) -> None:
        try:
            line = rescue()
        except Exception as error:
            text = (str(error).splitlines() or [""])[0]
            line = f"what was finished before it could not be saved ({type(error).__name__}: {text})"
        self._leave(self.received, f"left in the middle of an iteration; {line}")

    def _leave(self, number: int, line: str) -> None:
        """Ends the process at once, with a last line, what it holds given back, and the terminal's cursor back."""
        if line:
            _say(line)
        with contextlib.suppress(Exception):
            self._release()
        code = self._code(number)
        with contextlib.suppress(OSError, ValueError, AttributeError):
            if sys.stdout.isatty():
                os.write(1, b"\x1b[?25h\n")
        os._exit(code)

    def _code(self, number: int) -> int:
        """Returns the exit code that the signal's earlier handler asks for, else 128 + the signal."""
        try:
            self._earlier.get(number, lambda number, frame: None)(number, None)
        except SystemExit as left:
            return left.code & 0xFF if isinstance(left.code, int) else int(left.code is not None)
        except Exception as error:
            _say(f"{type(error).__name__}: {error}")
        return 128 + number


def _handler_of_others(number: int) -> Callable[[int, FrameType | None], Any] | None:
    """Returns the handler that a signal has, or had before the newest StopRequest; None where it is Python's own."""
    installed, newest = signal.getsignal(number), StopRequest._newest
    if newest is not None and installed == newest._handle:
        return newest._earlier.get(number)
    return installed if callable(installed) and installed is not signal.default_int_handler else None


def _drop(stream: int) -> None:
    """Points a standard stream at nothing: its terminal is closed, and whatever is printed would fail."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream)
    os.close(nothing)


def _say(line: str) -> None:
    """Writes a line to stderr as it is: print may be under way in the main thread."""
    with contextlib.suppress(OSError):
        os.write(2, f"{line}\n".encode())
