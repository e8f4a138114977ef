"""ESCHER: regrets read off a learned history value function, without importance weights.

The updated player draws its own actions from a fixed policy, uniform here, so that how often an information set is met
through its own actions is the same in all iterations: a factor of its regrets that regret matching ignores.

    r(I, a) = q(h, a) - sum over b of policy(b) q(h, b),  weight t^power.

Whatever q is off by goes into the regrets: nothing corrects it, unless algo.correction says so (dream.py). It is
refitted every iteration to the newest games, at h' by today's policies.
Source: McAleer, Farina, Lanctot and Sandholm 2023, "ESCHER: eschewing importance sampling in games by computing a
history value function to estimate regret". Deviations: the value learns from the regret games, off policy, by expected
SARSA instead of from games and returns of its own, after an iteration's regrets and not before, so that the first are
read off a value that knows nothing; the average is exact on games with a tree.
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
