"""Measuring strength."""

from dream.evaluation.matches import match
from dream.evaluation.statistics import Interval

__all__ = ["Interval", "match"]
