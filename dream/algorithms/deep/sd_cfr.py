"""Single deep CFR: Deep CFR without the average network; the average policy is the mixture of all iterations' policies.

Source: Steinberger 2019, "Single deep counterfactual regret minimization"; sizes of fit and memory as in the
comparison of Steinberger, Lerer and Brown 2020, which refits from fresh parameters.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from dream.algorithms.deep import learner
from dream.algorithms.deep.samplers import WeightConfig
from dream.algorithms.deep.settings import AverageConfig, DeepConfig
from dream.algorithms.types import Algorithm, Resources
from dream.config.settings import number
from envs import Game


@dataclasses.dataclass(frozen=True, kw_only=True)
class SdCfrConfig(DeepConfig):
    """Settings of SD-CFR; conf/algo/sd_cfr.yaml says what each does."""

    name: str = "sd_cfr"
    traversals: int = number(346, 1)
    weights: WeightConfig = WeightConfig(importance=False)
    average: AverageConfig = AverageConfig(importance=False)


def make(config: SdCfrConfig, network: Any, game: Game, resources: Resources) -> Algorithm:
    """Builds SD-CFR; raises InputError where the game is not for two or has no tree."""
    return learner.make(config, network, game, resources)
