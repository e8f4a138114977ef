"""Players that need no training, built by name."""

from __future__ import annotations

import importlib
from typing import Any

from envs.errors import InputError, unknown
from envs.game import Game, Policy

_EVERYWHERE: dict[str, str] = {"random": "envs.random_play:random_policy"}
"""Name -> "module:function", players of every game; the function takes the player's options and returns the Policy."""
_RULE_BOTS = (
    "greedy",
    "heuristic",
    "aggressive_knock",
    "meld_builder",
    "early_knock",
    "defensive",
    "eaai_simple",
    "camper",
)
_OF_GAME: dict[str, dict[str, str]] = {
    "gin_rummy_openspiel": {"simple_bot": "envs.gin_rummy.simple_bot:make"},
    "rummy500": {"greedy": "envs.rummy500.bots:greedy_policy"},
    "gin_rummy": {
        "simple_bot": "envs.gin_rummy.simple_bot:make",
        **{name: f"envs.gin_rummy.bots:{name}" for name in _RULE_BOTS},
    },
}
"""The same for the players of one game; those in _FOR_ITS_RULES are given the game first."""
_FOR_ITS_RULES = ("simple_bot",)


def _players(game: Game) -> dict[str, str]:
    return _EVERYWHERE | _OF_GAME.get(game.name, {})


def bot_names(game: Game) -> list[str]:
    """Returns the names `make_bot` knows for a game."""
    return sorted(_players(game))


def make_bot(name: str, game: Game, **options: Any) -> Policy:
    """Builds a rule-based player of a game.

    Args:
      name: one of bot_names(game).
      game: what it plays.
      **options: the player's own.
    Raises:
      InputError: no player of that name plays the game, or an unknown option.
    """
    if name not in bot_names(game):
        raise unknown(f"player of {game.name}", name, bot_names(game))
    module, function = _players(game)[name].split(":")
    maker = getattr(importlib.import_module(module), function)
    try:
        return maker(game, **options) if name in _FOR_ITS_RULES else maker(**options)
    except TypeError as error:
        raise InputError(f"player {name!r} does not take {', '.join(options)}") from error
