"""Single deep CFR with outcome sampling: DREAM without its baseline, and so with all the variance of its estimates.

Source: Steinberger, Lerer and Brown 2020, "DREAM", section 6 ("OS-SD-CFR").
"""

from __future__ import annotations

import dataclasses
from typing import Any

from dream.algorithms import Algorithm, deep
from dream.algorithms.deep_settings import OutcomeConfig
from envs import Game


@dataclasses.dataclass(frozen=True, kw_only=True)
class OsSdCfrConfig(OutcomeConfig):
    """Settings of OS-SD-CFR; conf/algo/os_sd_cfr.yaml says what each does."""

    name: str = "os_sd_cfr"


def make(config: OsSdCfrConfig, network: Any, game: Game) -> Algorithm:
    """Builds OS-SD-CFR; raises InputError where settings, network and game do not fit."""
    return deep.make(config, network, game)
