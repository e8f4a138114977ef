"""Card games as pure JAX functions behind one interface."""

from envs.errors import InputError
from envs.game import EnumerableGame, Game, LogSlot, Policy, make, names
from envs.players import (
    HostPlayer,
    bot_names,
    check_plays,
    is_foreign,
    make_assistant,
    make_bot,
    make_host_player,
)

__all__ = [
    "EnumerableGame",
    "Game",
    "HostPlayer",
    "InputError",
    "LogSlot",
    "Policy",
    "bot_names",
    "check_plays",
    "is_foreign",
    "make",
    "make_assistant",
    "make_bot",
    "make_host_player",
    "names",
]
