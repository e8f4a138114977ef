"""Card games as pure JAX functions behind one interface."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from envs.errors import InputError

if TYPE_CHECKING:
    from envs.game import EnumerableGame, Game, LogSlot, Policy, make, names
    from envs.players import HostPlayer, bot_names, is_foreign, make_assistant, make_bot, make_host_player

__all__ = [
    "EnumerableGame",
    "Game",
    "HostPlayer",
    "InputError",
    "LogSlot",
    "Policy",
    "bot_names",
    "is_foreign",
    "make",
    "make_assistant",
    "make_bot",
    "make_host_player",
    "names",
]

_HOMES = {
    **dict.fromkeys(("EnumerableGame", "Game", "LogSlot", "Policy", "make", "names"), "envs.game"),
    **dict.fromkeys(
        ("HostPlayer", "bot_names", "is_foreign", "make_assistant", "make_bot", "make_host_player"), "envs.players"
    ),
}
"""Name -> the module that defines it, imported with JAX when it is first asked for: `--help` needs neither."""


def __getattr__(name: str) -> Any:
    """Imports what is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'envs' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
