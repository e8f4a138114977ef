"""Rummy 500 for two to six players."""

from envs.rummy500.game import Rummy500, make
from envs.rummy500.rules import RummyRules
from envs.rummy500.shaped import ShapedRummy500

__all__ = ["Rummy500", "RummyRules", "ShapedRummy500", "make"]
