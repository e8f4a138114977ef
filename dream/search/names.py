"""Search players by name: `search:<policy>[:<worlds>]`."""

from __future__ import annotations

from typing import NamedTuple

from envs import InputError

PREFIX = "search:"
_MOST_DIGITS = 18
"""Of a number of worlds: Python itself refuses to read one of thousands."""


class SearchName(NamedTuple):
    """What a name says: the policy's own reference, and the worlds, None for the usual number."""

    policy: str
    worlds: int | None


def is_search(reference: str) -> bool:
    """Returns whether a reference names a search player."""
    return reference.startswith(PREFIX)


def parse(reference: str) -> SearchName:
    """Reads a name; what follows the last colon is a number of worlds if it consists of digits.

    Raises:
      InputError: no policy in it, or a number of too many digits.
    """
    inner = reference.removeprefix(PREFIX)
    before, colon, last = inner.rpartition(":")
    if colon and last.isdecimal() and len(last) > _MOST_DIGITS:
        raise InputError(f"search.worlds={last[:_MOST_DIGITS]}... is out of range; it has {len(last)} digits")
    policy, worlds = (before, int(last)) if colon and last.isdecimal() else (inner, None)
    if not policy:
        raise InputError(f"player {reference!r} names no policy; it must be {PREFIX}<run, file or player>[:<worlds>]")
    return SearchName(policy, worlds)


def policy_in(reference: str) -> str:
    """Returns the reference of the policy that a search player searches with; another reference as it is."""
    return parse(reference).policy if is_search(reference) else reference
