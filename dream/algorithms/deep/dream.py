"""DREAM: outcome sampling whose variance is reduced by a learned history value function, which sees both hands.

Samples are corrected by the value at own and opponent's decisions (dream/equations/estimators.py) and weighted by
t / (product of xi(a) |A| over the own decisions before). The value is learned after each iteration and never refitted
from scratch; regret networks are, from a reservoir.

Corrections divide by what the own actions were sampled with, and multiply along a game. For long games
algo.correction bounds them (estimators.traced_values); regrets read off the value alone, ESCHER's, are its other end.
Source: Steinberger, Lerer and Brown 2020, "DREAM: deep regret minimization with advantage baselines and model-free
learning". Deviations: a batch's weights are divided by the memory's mean weight; targets by their typical size.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from dream.algorithms.deep import learner
from dream.algorithms.deep.settings import HistoryConfig
from dream.algorithms.types import Algorithm, Resources
from envs import Game


@dataclasses.dataclass(frozen=True, kw_only=True)
class DreamConfig(HistoryConfig):
    """Settings of DREAM; conf/algo/dream.yaml says what each does."""

    name: str = "dream"


def make(config: DreamConfig, network: Any, game: Game, resources: Resources) -> Algorithm:
    """Builds DREAM; raises InputError where settings, network and game do not fit."""
    return learner.make(config, network, game, resources)
