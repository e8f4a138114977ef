"""Measuring strength: matches with intervals, exact exploitability, and lower bounds where it is out of reach."""

from dream.evaluation.best_response import BestResponseConfig, learn_best_response
from dream.evaluation.local import LocalConfig, local_best_response
from dream.evaluation.matches import match
from dream.evaluation.report import MatchReport
from dream.evaluation.statistics import Interval
from dream.game_tree import nash_conv, tabulate

__all__ = [
    "BestResponseConfig",
    "Interval",
    "LocalConfig",
    "MatchReport",
    "learn_best_response",
    "local_best_response",
    "match",
    "nash_conv",
    "tabulate",
]
