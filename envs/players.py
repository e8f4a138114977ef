"""Players that need no training, built by name."""

from __future__ import annotations

import importlib

from envs.errors import unknown
from envs.game import Game, Policy

_REGISTRY: dict[str, str] = {"random": "envs.random_play:random_policy"}
"""Name -> "module:function"; the function returns the Policy."""


def bot_names(game: Game) -> list[str]:
    """Returns the names `make_bot` knows for a game."""
    return sorted(_REGISTRY)


def make_bot(name: str, game: Game) -> Policy:
    """Builds a rule-based player of a game.

    Raises:
      InputError: no player of that name plays the game.
    """
    if name not in bot_names(game):
        raise unknown(f"player of {game.name}", name, bot_names(game))
    module, function = _REGISTRY[name].split(":")
    return getattr(importlib.import_module(module), function)()
