"""Card games as pure JAX functions behind one interface."""

from envs.checks import check_game
from envs.errors import InputError
from envs.game import CardFeatures, EnumerableGame, EventLog, Game, LogSlot, OpponentIds, Policy
from envs.players import HostPlayer, bot_names, is_foreign, make_assistant, make_bot, make_host_player
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
    "OpponentIds",
    "Policy",
    "bot_names",
    "check_game",
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
