"""DREAM: outcome sampling whose variance a learned value of histories, which sees both hands, takes out.

Samples are corrected by the value at own and opponent's decisions (dream/estimators.py) and weighted by
t / (product of xi(a) |A| over the own decisions before). The value is learned after each iteration and never refitted
from scratch; regret networks are, from a reservoir.
Source: Steinberger, Lerer and Brown 2020, "DREAM: deep regret minimization with advantage baselines and model-free
learning". Deviations: a batch's weights are divided by the memory's mean weight; targets by their typical size.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from dream.algorithms import Algorithm, deep
from dream.algorithms.deep_settings import HistoryConfig
from envs import Game


@dataclasses.dataclass(frozen=True, kw_only=True)
class DreamVrConfig(HistoryConfig):
    """Settings of DREAM; conf/algo/dream_vr.yaml says what each does."""

    name: str = "dream_vr"


def make(config: DreamVrConfig, network: Any, game: Game) -> Algorithm:
    """Builds DREAM; raises InputError where settings, network and game do not fit."""
    return deep.make(config, network, game)
