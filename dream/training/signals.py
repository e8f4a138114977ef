"""Leaving cleanly on Ctrl-C and SIGTERM, also in the middle of one long compiled call."""

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

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
PATIENCE_SECONDS, GRACE_SECONDS = 4.0, 10.0
"""What an iteration has to come to its end after the first signal, before it is left between two calls; and what a call
under way has, before the process is left in the middle of it."""


class StopRequest:
    """Takes signals over, so that work is brought to its end and saved, or left where that takes too long.

    Before `protect` a signal ends the process at once, as there is nothing to save. After it the first signal sets
    `received`, which the work looks at between calls. A call (see `call`) that is not over after a grace of some
    seconds is left: what was finished before it is saved, and the process ends. A second signal ends it at once.

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
        for number in _SIGNALS:
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
        """Waits for signals, and after the first for the end of the grace."""
        deadline = None
        while True:
            wait = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            if not select.select([self._pipe], [], [], wait)[0]:
                deadline = None if self._left_call() else time.monotonic() + 0.1
                continue
            arrived = os.read(self._pipe, 64)
            if not arrived:  # another StopRequest has the signals now
                os.close(self._pipe)
                return
            for number in arrived:
                if number in _SIGNALS and signal.getsignal(number) == self._handle:
                    self._take(number)
                    deadline = time.monotonic() + self._grace

    def _take(self, number: int) -> None:
        """Ends the process on a second signal, or on the first where there is nothing to save."""
        if self.received is not None or not self._protected:
            _leave(number, "" if self.received is not None else self._farewell)
        self.received = number
        _say(
            f"\n{signal.Signals(number).name}: finishing the iteration and saving, for which it has "
            f"{self._grace:.0f} s; a second signal leaves at once"
        )

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
        _leave(self.received, f"left in the middle of an iteration; {line}")


def _say(line: str) -> None:
    """Writes a line to stderr as it is: print may be under way in the main thread."""
    with contextlib.suppress(OSError):
        os.write(2, f"{line}\n".encode())


def _leave(number: int, line: str) -> None:
    """Ends the process at once, with a last line and the terminal's cursor back."""
    if line:
        _say(line)
    with contextlib.suppress(OSError, ValueError, AttributeError):
        if sys.stdout.isatty():
            os.write(1, b"\x1b[?25h\n")
    os._exit(128 + number)
