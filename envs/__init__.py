"""Card games as pure JAX functions behind one interface."""

from envs.errors import InputError
from envs.game import EnumerableGame, Game, LogSlot, Policy, make, names
from envs.players import bot_names, make_bot

__all__ = ["EnumerableGame", "Game", "InputError", "LogSlot", "Policy", "bot_names", "make", "make_bot", "names"]
