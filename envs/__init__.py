"""Card games as pure JAX functions behind one interface."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from envs.errors import InputError

if TYPE_CHECKING:
    from envs.checks import check_game, check_once
    from envs.game import CardFeatures, EnumerableGame, EventLog, Game, LogSlot, OpponentIds, Policy
    from envs.match_rules import MatchRules
    from envs.players import (
        HostPlayer,
        bot_names,
        check_plays,
        is_foreign,
        make_assistant,
        make_bot,
        make_host_player,
    )
    from envs.random_play import uniform_policy
    from envs.registry import is_own, make, names, register

__all__ = [
    "CardFeatures",
    "EnumerableGame",
    "EventLog",
    "Game",
    "HostPlayer",
    "InputError",
    "LogSlot",
    "MatchRules",
    "OpponentIds",
    "Policy",
    "bot_names",
    "check_game",
    "check_once",
    "check_plays",
    "is_foreign",
    "is_own",
    "make",
    "make_assistant",
    "make_bot",
    "make_host_player",
    "names",
    "register",
    "uniform_policy",
]

_NAMES = {
    "envs.checks": ("check_game", "check_once"),
    "envs.game": ("CardFeatures", "EnumerableGame", "EventLog", "Game", "LogSlot", "OpponentIds", "Policy"),
    "envs.match_rules": ("MatchRules",),
    "envs.players": (
        "HostPlayer",
        "bot_names",
        "check_plays",
        "is_foreign",
        "make_assistant",
        "make_bot",
        "make_host_player",
    ),
    "envs.random_play": ("uniform_policy",),
    "envs.registry": ("is_own", "make", "names", "register"),
}
_HOMES = {name: module for module, names_there in _NAMES.items() for name in names_there}
"""Name -> the module that defines it, imported (with JAX) on first use: `--help` needs neither."""


def __getattr__(name: str) -> Any:
    """Imports a public name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'envs' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
