"""The one exception for input that is wrong: its text is the line a user reads."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Wrong input: one line that says what is wrong, where, and what would be right."""


def unknown(what: str, given: object, known: Iterable[str]) -> InputError:
    """Builds the error for a name that is not among `known`, with the nearest match first.

    Args:
      what: what the name stands for, e.g. "game".
      given: the name that was given.
      known: the names that would be right.
    Returns:
      An InputError, to be raised by the caller.
    """
    choices = sorted(known)
    near = difflib.get_close_matches(str(given), choices, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return InputError(f"unknown {what} {given!r}; {hint}known: {', '.join(choices) or 'none'}")
