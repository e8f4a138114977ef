"""Levels for people: a game's players from weak to strong, by points per hand against one field."""

from __future__ import annotations

import re

import envs
from envs import Game, InputError

LEVELS = {
    "gin_rummy": ("random", "meld_builder", "early_knock", "greedy", "lookahead", "gin_rummy/strong"),
}
"""Game -> its players by its default rules, the weakest first; measured by experiments/gin_levels.py."""
_NAME = re.compile(r"level:(\d+)")


def names(game: Game) -> list[str]:
    """Returns the levels of a game by name, "level:1" the weakest."""
    return [f"level:{n + 1}" for n in range(len(_players(game)))]


def is_level(reference: str) -> bool:
    """Returns whether a text names a level."""
    return reference.startswith("level:")


def player_at(reference: str, game: Game) -> str:
    """Returns the player of a level.

    Raises:
      InputError: the game has no such level.
    """
    known = _players(game)
    found = _NAME.fullmatch(reference)
    if found is None or not 1 <= int(found[1]) <= len(known):
        one_of = f"it must be level:1 to level:{len(known)}" if known else f"{game.name} by these rules has none"
        raise InputError(f"unknown level {reference!r}; {one_of}")
    return known[int(found[1]) - 1]


def _players(game: Game) -> tuple[str, ...]:
    return LEVELS[game.name] if game.name in LEVELS and game == envs.make(game.name) else ()
