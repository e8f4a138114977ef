"""Values that the processes of one run take from the first, so that no clock or signal parts their ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_of_the_first: Callable[[str, Any], Any] | None = None


def agreed(what: str, value: T) -> T:
    """Returns the first process's value; with one process the value itself.

    Every process calls it at the same points, as it does what it computes.

    Args:
      what: a name of the value, the same in every process.
      value: this process's: a number, a truth value, text, None, or lists and dictionaries of these.
    """
    return value if _of_the_first is None else _of_the_first(what, value)


def agree_by(of_the_first: Callable[[str, Any], Any] | None) -> None:
    """Says how processes agree; None where there is one."""
    global _of_the_first
    _of_the_first = of_the_first
