"""A limit on the work that reading a foreign file may cost: counted, and timed where counting falls short."""

from __future__ import annotations

import time
from typing import Any

MAX_WORK = 4_000_000
"""Units: elements that are hashed, compared or copied."""
MAX_SECONDS = 4.0
"""Of this thread's processor time, so that a busy machine refuses nothing."""
MAX_PARTS = 64
"""Of a tuple that is a key."""
_CROWDED = 8
"""Elements of a container that one more key may have to be compared with, for one unit."""
_LOOK = 1024
"""Units between two looks at the clock."""


class RefusedError(Exception):
    """What is wrong with a file, without its name."""


class Work:
    """What one file may still cost."""

    def __init__(self) -> None:
        """The whole limit, from now on."""
        self.left, self.end, self.next_look = MAX_WORK, time.thread_time() + MAX_SECONDS, MAX_WORK - _LOOK

    def spend(self, units: int) -> None:
        """Takes units off; raises RefusedError where there are none left, or no time."""
        self.left -= units
        if self.left < 0:
            raise RefusedError(f"takes more than {MAX_WORK:,} steps of hashing and copying to read")
        if self.left < self.next_look:
            self.next_look = self.left - _LOOK
            self.look()

    def look(self) -> None:
        """Raises RefusedError where the time is spent."""
        if time.thread_time() > self.end:
            raise RefusedError(f"takes more than {MAX_SECONDS:g} seconds to read")

    def key(self, value: Any, crowd: int) -> Any:
        """Returns a key that is plain, once its cost is paid.

        A text's hash is salted, so that it meets few others; numbers and tuples of them can be made to meet all.

        Args:
          value: text, bytes, a number, None, or a tuple of those.
          crowd: how many keys are there.
        Raises:
          RefusedError: another kind of key, too long a tuple, or no work left.
        """
        parts = value if isinstance(value, tuple) else (value,)
        if len(parts) > MAX_PARTS:
            raise RefusedError(f"has a key of {len(parts)} parts")
        units = 0
        for part in parts:
            if not isinstance(part, str | int | float | bytes | type(None)):
                raise RefusedError("has a key that is no text or number")
            units += 1 + (len(part) // 64 if isinstance(part, str | bytes) else 0)
        self.spend(units if isinstance(value, str | bytes) else units * (1 + crowd // _CROWDED))
        return value
