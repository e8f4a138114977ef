"""Levels for people: a game's players from weak to strong, by points per hand against one field."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

import envs
from envs import Game, InputError, Policy
from envs.random_play import uniform


class Level(NamedTuple):
    """A player, and the share of its moves that are made at random instead.

    Attributes:
      player: by name.
      mistakes: 0 to 1.
    """

    player: str
    mistakes: float = 0.0


LEVELS = {
    "gin_rummy": (
        Level("random"), Level("greedy", 0.4), Level("greedy", 0.15), Level("greedy"), Level("lookahead"),
        Level("camper"), Level("marjj"), Level("gin_rummy/strong"), Level("gin_rummy/points"),
    ),
}  # fmt: skip
"""Game -> its levels by its default rules, the weakest first; measured by experiments/gin_levels.py."""
_NAME = re.compile(r"level:(\d+)")


def names(game: Game) -> list[str]:
    """Returns the levels of a game by name, "level:1" the weakest."""
    return [f"level:{n + 1}" for n in range(len(_levels(game)))]


def is_level(reference: str) -> bool:
    """Returns whether a text names a level."""
    return reference.startswith("level:")


def level(reference: str, game: Game) -> Level:
    """Returns a level by its name.

    Raises:
      InputError: the game has no such level.
    """
    known = _levels(game)
    found = _NAME.fullmatch(reference)
    if found is None or not 1 <= int(found[1]) <= len(known):
        one_of = f"it must be level:1 to level:{len(known)}" if known else f"{game.name} by these rules has none"
        raise InputError(f"unknown level {reference!r}; {one_of}")
    return known[int(found[1]) - 1]


def player_of(reference: str, game: Game) -> str:
    """Returns the player that a level without mistakes is, by name; any other reference as it is."""
    found = level(reference, game) if is_level(reference) else Level(reference)
    return reference if found.mistakes else found.player


def _levels(game: Game) -> tuple[Level, ...]:
    return LEVELS[game.name] if game.name in LEVELS and game == envs.make(game.name) else ()


def with_mistakes(policy: Policy, share: float) -> Policy:
    """Returns a player that makes a share of its moves at random."""
    return Policy(_mistaken, (policy, jnp.float32(share)), policy.game) if share else policy


def _mistaken(params: tuple[Policy, Array], view: Any, legal: Array) -> Array:
    policy, share = params
    return (1 - share) * policy(view, legal) + share * uniform(legal)
