"""Settings that the deep regret minimisers share; conf/algo says what each value is in each algorithm."""

from __future__ import annotations

import dataclasses

from dream.algorithms.deep.history_values import HistoryValueConfig
from dream.algorithms.deep.regret_networks import FitConfig, HeadConfig
from dream.algorithms.deep.samplers import CorrectionConfig, WeightConfig
from dream.algorithms.types import needs_tree, needs_two_players
from dream.buffers.reservoir import KINDS, MOST_POWER
from dream.config.settings import choice, number
from dream.equations import schedules
from dream.equations.reward_shaping import ShapingConfig
from dream.rollout.self_play import num_envs_for
from envs import EnumerableGame, Game, InputError


@dataclasses.dataclass(frozen=True)
class MemoryConfig:
    """Samples of regrets kept for each player.

    Attributes:
      kind: "reservoir": a uniform sample of all so far; "fifo": the newest; "infoset_sums": all, as sums by
        information set, on games with a tree, every set being in every batch of the fit.
      capacity: how many the first two keep.
    """

    kind: str = choice("reservoir", *KINDS, "infoset_sums")
    capacity: int = number(2_000_000, 1)


@dataclasses.dataclass(frozen=True)
class AverageConfig:
    """The average policy.

    Attributes:
      source: "exact_mixture": that of all policies so far, weighted by own reach, which is what sampling one of them
        before each game plays; on games with a tree. "network": one fitted to sampled decisions. "auto": the first
        where the game has a tree.
      power: iteration t counts t^power.
      importance: of the network: whether a decision counts 1 / (product of xi(a) |A| over the updated player's earlier
        decisions), without which the average leans towards iterations in which that player met it more often.
      clip: the most that factor may be; null for no bound.
      every: iterations between fits of the network; a run's last iteration has one too.
      capacity: decisions kept for it, for each player.
      fit: how it is fitted.
    """

    source: str = choice("auto", "auto", "exact_mixture", "network")
    power: float = number(1.0, 0, MOST_POWER)
    importance: bool = True
    clip: float | None = number(None, 0, above=True)
    every: int = number(20, 1)
    capacity: int = number(2_000_000, 1)
    fit: FitConfig = FitConfig(steps=4000)

    @property
    def weights(self) -> WeightConfig:
        """Of the decisions that the network is fitted to."""
        return WeightConfig(self.power, self.importance, self.clip)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DeepConfig:
    """Settings of all deep regret minimisers.

    Attributes:
      traversals: for each player and iteration.
      regrets: how a player's regret network becomes a policy.
      fit: how it is fitted.
      memory: what it is fitted to.
      weights: of the samples of regrets.
      average: the average policy.
    """

    name: str
    traversals: int = number(900, 1)
    regrets: HeadConfig = HeadConfig()
    fit: FitConfig = FitConfig()
    memory: MemoryConfig = MemoryConfig()
    weights: WeightConfig = WeightConfig()
    average: AverageConfig = AverageConfig()


@dataclasses.dataclass(frozen=True, kw_only=True)
class OutcomeConfig(DeepConfig):
    """Settings of those that sample one trajectory per traversal.

    Attributes:
      exploration: share of uniform play in what the updated player's actions are sampled from.
      num_envs: games played at once.
      shaping: of the rewards learned from.
    """

    exploration: float = number(0.5, 0, 1, above=True)
    num_envs: int | None = number(None, 1)
    shaping: ShapingConfig = ShapingConfig(scale=schedules.constant(0.0), tie_penalty=0.0)

    @property
    def is_shaped(self) -> bool:
        """Whether anything is learned from but the game's own rewards."""
        return bool(self.shaping.scale.start or self.shaping.scale.end or self.shaping.win_bonus)


@dataclasses.dataclass(frozen=True, kw_only=True)
class HistoryConfig(OutcomeConfig):
    """Settings of those that learn a history value function.

    Attributes:
      values: how it is learned.
      correction: of it, by the games sampled.
    """

    values: HistoryValueConfig = HistoryValueConfig()
    correction: CorrectionConfig = CorrectionConfig()


def chance_in_baseline(config: DeepConfig) -> bool:
    """Returns whether the baseline covers chance by enumeration."""
    return isinstance(config, HistoryConfig) and config.values.chance == "exact"


def correction(config: DeepConfig) -> CorrectionConfig:
    """Returns how sampled games correct the value function; in full where there is none."""
    return config.correction if isinstance(config, HistoryConfig) else CorrectionConfig()


def check(config: DeepConfig, game: Game) -> None:
    """Raises InputError where settings and game do not fit.

    Args:
      config: of the learner.
      game: what it plays.
    """
    needs_two_players(config.name, game)
    if not isinstance(config, OutcomeConfig):
        needs_tree(config.name, game)
        for part in ("weights", "average"):
            if getattr(config, part).importance or getattr(config, part).clip is not None:
                raise InputError(
                    f"algo.{part}.importance and algo.{part}.clip have no effect with {config.name}, which follows all "
                    "actions; use false and null"
                )
    else:
        num_envs_for(config.num_envs, config.traversals, "traversals")
        if config.shaping.tie_penalty:
            setting = f"algo.shaping.tie_penalty={config.shaping.tie_penalty}"
            raise InputError(f"{setting} is not zero-sum, which regrets need; it must be 0")
        if config.is_shaped and chance_in_baseline(config):
            raise InputError("algo.shaping cannot be combined with algo.values.chance=exact; use sampled")
    if chance_in_baseline(config) and correction(config).is_none:
        raise InputError(
            "algo.values.chance=exact has no effect with algo.correction.clip=0, which corrects nothing; use sampled"
        )
    if isinstance(game, EnumerableGame):
        return
    for name, value, on_a_tree, other in (
        ("average.source", config.average.source, "exact_mixture", "network"),
        ("memory.kind", config.memory.kind, "infoset_sums", "reservoir"),
        ("values.chance", "exact" if chance_in_baseline(config) else None, "exact", "sampled"),
    ):
        if value == on_a_tree:
            raise InputError(f"algo.{name}={value} needs an enumerable game, which {game.name} is not; use {other}")
