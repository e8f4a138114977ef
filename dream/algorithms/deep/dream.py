"""DREAM: outcome sampling whose variance is reduced by a learned history value function, which sees both hands.

The value serves as a baseline at the player's own and the opponent's decisions (dream/equations/estimators.py); samples
are weighted by t / (product of xi(a) |A| over the player's own earlier decisions). The value function is trained after
each iteration and never refitted from scratch; regret networks are refitted from scratch, to a reservoir.

Corrections divide by the probability with which own actions were sampled, and these factors multiply along a game. For
long games algo.correction bounds them (estimators.traced_values); its other end, regrets from the value alone, is
ESCHER.
Source: Steinberger, Lerer and Brown 2020, "DREAM: deep regret minimization with advantage baselines and model-free
learning". Deviations: the weights of a batch are divided by the mean weight in memory; targets by their typical size.
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
