"""ESCHER: regrets computed from a learned history value function, without importance weights.

The updated player samples its own actions from a fixed policy, here uniform, so that its own reach of an information
set is the same in all iterations: a factor of the regrets to which regret matching is invariant.

    r(I, a) = q(h, a) - sum over b of policy(b) q(h, b),  weight t^power.

The error of q enters the regrets: nothing corrects it, unless algo.correction is set (dream.py). q is refitted in every
iteration to the newest games, with the current policies at h'.
Source: McAleer, Farina, Lanctot and Sandholm 2023, "ESCHER: eschewing importance sampling in games by computing a
history value function to estimate regret". Deviations: the value is learned from the games sampled for regrets, off
policy, by expected SARSA, instead of from the returns of separate games; it is fitted after the regrets of an iteration
and not before, so that the first regrets come from an untrained value; the average is exact on games with a tree.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from dream.algorithms.deep import learner
from dream.algorithms.deep.history_values import HistoryValueConfig
from dream.algorithms.deep.regret_networks import FitConfig
from dream.algorithms.deep.samplers import CorrectionConfig, WeightConfig
from dream.algorithms.deep.settings import HistoryConfig, MemoryConfig
from dream.algorithms.types import Algorithm, Resources
from dream.config.settings import number
from envs import Game


@dataclasses.dataclass(frozen=True, kw_only=True)
class EscherConfig(HistoryConfig):
    """Settings of ESCHER; conf/algo/escher.yaml says what each does."""

    name: str = "escher"
    traversals: int = number(1000, 1)
    exploration: float = number(1.0, 0, 1, above=True)
    fit: FitConfig = FitConfig(steps=5000)
    memory: MemoryConfig = MemoryConfig(capacity=1_000_000)
    weights: WeightConfig = WeightConfig(importance=False)
    values: HistoryValueConfig = HistoryValueConfig(steps=5000, batch_size=2048, policy="current")
    correction: CorrectionConfig = CorrectionConfig(trace=0.0, clip=0.0)


def make(config: EscherConfig, network: Any, game: Game, resources: Resources) -> Algorithm:
    """Builds ESCHER; raises InputError where settings, network and game do not fit."""
    return learner.make(config, network, game, resources)
