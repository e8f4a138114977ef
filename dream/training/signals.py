"""Leaving cleanly on Ctrl-C and SIGTERM."""

from __future__ import annotations

import os
import signal
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """Remembers a signal, so that work can be brought to its end and saved.

    Before `protect` a signal ends the process at once, as there is nothing to save; after it the first signal is only
    remembered, and the second ends the process without saving. At once means without Python's cleaning up: an
    exception raised from a handler would be swallowed wherever the interpreter happens to be in a callback.
    """

    def __init__(self) -> None:
        """Takes the signals over."""
        self.received: int | None = None
        self._protected = False
        for number in _SIGNALS:
            signal.signal(number, self._handle)

    def protect(self, protected: bool = True) -> None:
        """Says whether there is work to be saved from now on."""
        self._protected = protected

    @property
    def exit_code(self) -> int:
        """0, or 128 + the signal received."""
        return 0 if self.received is None else 128 + self.received

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None or not self._protected:
            os._exit(128 + number)
        self.received = number
        name = signal.Signals(number).name
        # print may not be entered twice, and a handler may come in the middle of one.
        os.write(2, f"\n{name}: finishing the iteration and saving; a second one leaves at once\n".encode())
