"""JAX's traces of games, forgotten where they are of what a game no longer does."""

from __future__ import annotations

import jax

from envs.game import Game
from envs.registry import is_own
from envs.source_key import source_key

_TRACED: dict[tuple[type, Game], str] = {}
"""By class and game, the source key of what JAX has traced."""


def forget_other_traces(game: Game) -> str:
    """Makes JAX trace anew where it may hold traces of an equal game that did something else; returns the source key.

    Equal games share traces, and a name that is bound anew leaves a game equal. Of a game from elsewhere that is met
    for the first time nobody knows what it did when it was played before.
    """
    key = source_key(game)
    if _TRACED.get((type(game), game), key if is_own(game) else None) != key:
        jax.clear_caches()
    _TRACED[type(game), game] = key
    return key
