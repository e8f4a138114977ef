"""Deals as the numbers of a deck, checked on the host."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax import Array

from envs.batching import QUICK
from envs.errors import InputError


def check_deck(deal: Sequence[int | float], size: int) -> np.ndarray:
    """Returns a deck as int32[size].

    Raises:
      InputError: it is not each of the cards once.
    """
    whole = len(deal) == size and all(type(x) is int or isinstance(x, np.integer) for x in deal)
    if not whole or sorted(deal) != list(range(size)):
        raise InputError(f"the deck is not each of the cards 0 to {size - 1} once")
    return np.array(deal, np.int32)


def whole_deck(first: Sequence[int], size: int) -> tuple[int, ...]:
    """Returns a deck that begins with these cards; those that are no cards, and the rest, are the others ascending."""
    known = [int(card) for card in first]
    others = iter(sorted(set(range(size)) - set(known)))
    return (*(card if 0 <= card < size else next(others) for card in known), *others)


@functools.partial(jax.jit, static_argnums=0, compiler_options=QUICK)
def dealt(game: Any, deck: Array) -> Any:
    """Returns game.from_deck(deck), compiled."""
    return game.from_deck(deck)
