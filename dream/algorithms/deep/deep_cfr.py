"""Deep CFR: external sampling, regret networks refitted to a reservoir, a separate network for the average policy.

Source: Brown, Lerer, Gross and Sandholm 2019, "Deep counterfactual regret minimization". Deviations: targets are
divided by their typical size, to which regret matching is invariant; the average network is trained with
cross-entropy, whose minimum is the same weighted mean as that of squared errors.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from dream.algorithms.deep import learner
from dream.algorithms.deep.regret_networks import FitConfig, HeadConfig
from dream.algorithms.deep.samplers import WeightConfig
from dream.algorithms.deep.settings import AverageConfig, DeepConfig, MemoryConfig
from dream.algorithms.types import Algorithm, Resources
from dream.config.settings import number
from envs import Game


@dataclasses.dataclass(frozen=True, kw_only=True)
class DeepCfrConfig(DeepConfig):
    """Settings of Deep CFR; conf/algo/deep_cfr.yaml says what each does."""

    name: str = "deep_cfr"
    traversals: int = number(1500, 1)
    regrets: HeadConfig = HeadConfig(head="plain")
    fit: FitConfig = FitConfig(steps=750)
    memory: MemoryConfig = MemoryConfig(capacity=1_000_000)
    weights: WeightConfig = WeightConfig(importance=False)
    average: AverageConfig = AverageConfig(
        source="network", importance=False, capacity=1_000_000, fit=FitConfig(steps=5000)
    )


def make(config: DeepCfrConfig, network: Any, game: Game, resources: Resources) -> Algorithm:
    """Builds Deep CFR; raises InputError where the game is not for two or has no tree."""
    return learner.make(config, network, game, resources)
