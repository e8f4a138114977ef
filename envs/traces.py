"""Clears JAX's traces of a game when its source has changed."""

from __future__ import annotations

import jax

from envs.game import Game
from envs.registry import is_own
from envs.source_key import source_key

_TRACED: dict[tuple[type, Game], str] = {}
"""(class, game) -> the source key of what JAX has traced."""


def forget_other_traces(game: Game) -> str:
    """Clears JAX's traces if they may be of an equal game with other source; returns the source key of the game.

    Equal games share traces, and redefining a name leaves a game equal. For a third-party game that is seen for the
    first time, its source at the time of earlier traces is unknown.
    """
    key = source_key(game)
    if _TRACED.get((type(game), game), key if is_own(game) else None) != key:
        jax.clear_caches()
    _TRACED[type(game), game] = key
    return key
