"""VR-DeepDCFR+: discounted cumulative regrets bootstrapped from the last network, sampled with a learned baseline.

With D(t) = (t - 1)^alpha / ((t - 1)^alpha + discount_offset), a network is fitted only to iteration t's samples, of

    R_t(I, a) = D(t) max(R_{t-1}(I, a), 0) + r_t(I, a),

R_{t-1} being the prediction of the last network. Samples are weighted neither by reach nor by t; in the average policy
iteration t has weight t^power.
Source: Xu et al. 2026, "VR-DeepPDCFR+"; values of its published configuration. Deviations: the fit continues from the
last network, which retains what no new sample covers; the parameters of the last step are kept, not those with the
lowest minibatch loss; gradients are clipped to a norm of 1; outputs do not start at zero.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import jax.numpy as jnp
from jax import Array

from dream.algorithms.deep import learner
from dream.algorithms.deep.history_values import HistoryValueConfig
from dream.algorithms.deep.regret_networks import FitConfig, HeadConfig
from dream.algorithms.deep.samplers import WeightConfig
from dream.algorithms.deep.settings import AverageConfig, HistoryConfig, MemoryConfig
from dream.algorithms.types import Algorithm, Resources
from dream.config.settings import number
from envs import Game

_MAX_POWER = 1e30
"""Upper bound of (t - 1)^alpha, so that it stays finite in float32."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class VrDcfrPlusConfig(HistoryConfig):
    """Settings of VR-DeepDCFR+; conf/algo/vr_dcfr_plus.yaml says what each does."""

    fits_one_iteration: ClassVar[bool] = True
    """Regret networks are fitted to the samples of one iteration, which all have the same policy."""

    name: str = "vr_dcfr_plus"
    traversals: int = number(10_000, 1)
    exploration: float = number(0.6, 0, 1, above=True)
    discount_power: float = number(2.0, 0)
    discount_offset: float = number(1.5, 0)
    regrets: HeadConfig = HeadConfig(head="plain")
    fit: FitConfig = FitConfig(steps=750, reinitialise=False)
    memory: MemoryConfig = MemoryConfig(capacity=150_000)
    weights: WeightConfig = WeightConfig(power=0.0, importance=False)
    average: AverageConfig = AverageConfig(power=2.0, importance=False, capacity=500_000, fit=FitConfig(steps=5000))
    values: HistoryValueConfig = HistoryValueConfig(
        steps=1000, batch_size=2048, capacity=1_000_000, reinitialise=True, sync_every=50, policy="current"
    )


def make(config: VrDcfrPlusConfig, network: Any, game: Game, resources: Resources) -> Algorithm:
    """Builds VR-DeepDCFR+; raises InputError where settings, network and game do not fit."""

    def discounted(regrets: Array, iteration: Array) -> Array:
        done = jnp.minimum(iteration.astype(jnp.float32) ** config.discount_power, _MAX_POWER)
        return done / (done + config.discount_offset) * jnp.maximum(regrets, 0.0)

    return learner.make(config, network, game, resources, cumulative_target=discounted)
