"""Single deep CFR with outcome sampling: DREAM without its baseline, with the full variance of the estimates.

Source: Steinberger, Lerer and Brown 2020, "DREAM", section 6 ("OS-SD-CFR").
"""

from __future__ import annotations

import dataclasses
from typing import Any

from dream.algorithms.deep import learner
from dream.algorithms.deep.settings import OutcomeConfig
from dream.algorithms.types import Algorithm, Resources
from envs import Game


@dataclasses.dataclass(frozen=True, kw_only=True)
class OsSdCfrConfig(OutcomeConfig):
    """Settings of OS-SD-CFR; conf/algo/os_sd_cfr.yaml says what each does."""

    name: str = "os_sd_cfr"


def make(config: OsSdCfrConfig, network: Any, game: Game, resources: Resources) -> Algorithm:
    """Builds OS-SD-CFR; raises InputError where settings, network and game do not fit."""
    return learner.make(config, network, game, resources)
