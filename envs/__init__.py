"""Card games as pure JAX functions behind one interface."""

from envs.errors import InputError
from envs.game import Game, LogSlot, Policy, make, names

__all__ = ["Game", "InputError", "Policy", "LogSlot", "make", "names"]
