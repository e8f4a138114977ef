"""The one exception for input that is wrong: its text is the line a user reads."""

from __future__ import annotations

import contextlib
import difflib
import math
import numbers
import operator
from collections.abc import Iterable, Iterator
from typing import Any

_MOST_SHOWN = 40
"""Names in a message; of more than these only the nearest are shown."""


class InputError(ValueError):
    """Wrong input: one line that says what is wrong, where, and what would be right."""


def shown(value: object, most: int = 80) -> str:
    """Returns a value out of a file for a message: one line of ASCII, escaped, cut to a length.

    Args:
      value: text as it is, anything else by its repr.
      most: characters.
    """
    if isinstance(value, int) and value.bit_length() > 256:
        return f"a whole number of {value.bit_length()} bits"
    text = value if isinstance(value, str) else repr(value)
    short = text[:most].encode("unicode_escape", "backslashreplace").decode("ascii")[:most]
    return short if len(text) <= most and len(short) < most else f"{short}..."


def a_kind(kind: type) -> str:
    """Returns a type's name with its article, such as "an int"."""
    return f"{'an' if kind.__name__[0].lower() in 'aeiou' else 'a'} {kind.__name__}"


def whole_number(name: str, given: Any, rule: str) -> int:
    """Returns a value as a whole number; raises InputError, with the rule for it, where it is none, as 1.0 and "1"."""
    try:
        return operator.index(given)
    except TypeError:
        raise InputError(f"{name}={shown(repr(given))} is not valid; it must be a whole number, {rule}") from None


def finite_number(name: str, given: Any, low: float = -math.inf, high: float = math.inf) -> float:
    """Returns a value as a float; raises InputError unless it is a finite number from `low` to `high`."""
    if isinstance(given, numbers.Real) and math.isfinite(given) and low <= given <= high:
        return float(given)
    bounds = f", {low:g} to {high:g}" if math.isfinite(low) else ""
    raise InputError(f"{name}={shown(repr(given))} is not valid; it must be a finite number{bounds}")


@contextlib.contextmanager
def naming(setting: str) -> Iterator[None]:
    """Puts the name of a setting before what is said of its value."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{setting}: {error}") from error


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """Returns "did you mean '<name>'? " of the known name that begins so, or else is the nearest; "" where none is."""
    choices = sorted(known)
    longer = [choice for choice in choices if given and choice.startswith(str(given))]
    near = difflib.get_close_matches(str(given), longer or choices, n=1, cutoff=0.0 if longer else 0.6)
    return f"did you mean {near[0]!r}? " if near else ""


def unknown(what: str, given: object, known: Iterable[str]) -> InputError:
    """Builds the error for a name that is not among `known`, with one that begins so or else the nearest match first.

    Args:
      what: what the name stands for, e.g. "game".
      given: the name that was given.
      known: the names that would be right.
    Returns:
      An InputError, to be raised by the caller.
    """
    choices = sorted(known)
    hint = did_you_mean(given, choices)
    if len(choices) > _MOST_SHOWN:
        closest = difflib.get_close_matches(str(given), choices, n=_MOST_SHOWN, cutoff=0.0)
        return InputError(f"unknown {what} {given!r}; {hint}the nearest of {len(choices)}: {', '.join(closest)}")
    if not choices:
        return InputError(f"unknown {what} {given!r}; there are none here")
    return InputError(f"unknown {what} {given!r}; {hint}known: {', '.join(choices)}")


_MAKERS = {"game": "envs.make('kuhn_poker')", "player": "envs.make_bot('random', game)"}


def refuse_name(value: object, what: str) -> None:
    """Raises InputError where plain data, as a name, stands for a `game` or a `player`; it says how one is had."""
    if value is None or isinstance(value, str | bytes | int | float) or type(value) in (list, tuple, dict, set):
        raise InputError(f"{value!r} is not a {what}; give one, as {_MAKERS[what]}")
