"""Rummy 500 for two to six players."""

from envs.rummy500.game import Rummy500
from envs.rummy500.match import MatchRummy500
from envs.rummy500.rules import RummyRules
from envs.rummy500.shaped import ShapedRummy500
from envs.rummy500.variants import make

__all__ = ["MatchRummy500", "Rummy500", "RummyRules", "ShapedRummy500", "make"]
