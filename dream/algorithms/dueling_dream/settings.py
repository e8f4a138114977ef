"""Settings of the dueling DREAM agent, and the check of those that depend on each other."""

from __future__ import annotations

import dataclasses

from dream.algorithms.average_policy import AverageConfig
from dream.algorithms.deep.history_values import HistoryValueConfig
from dream.config.settings import choice, number
from dream.equations import schedules
from dream.equations.reward_shaping import ShapingConfig
from dream.equations.schedules import Schedule
from dream.rollout.opponents import PAST_SELF, SELF
from envs import InputError


@dataclasses.dataclass(frozen=True)
class MirrorConfig:
    """Settings of mirror descent.

    Attributes:
      eta: step, in 1 / the learner's unit, over iterations.
      alpha: pull towards uniform play, in the learner's unit, over iterations.
    """

    eta: Schedule = schedules.constant(1.0)
    alpha: Schedule = schedules.constant(0.05)


@dataclasses.dataclass(frozen=True)
class DuelingDreamConfig:
    """Settings of the dueling DREAM agent; conf/algo/dueling_dream.yaml says what each does."""

    name: str = "dueling_dream"
    episodes_per_iteration: int = number(8192, 1)
    num_envs: int | None = number(None, 1)
    opponents: tuple[str, ...] = (SELF,)
    shares: tuple[float, ...] | None = number(None, 0)
    batch_size: int = number(2048, 1)
    epochs: int = number(40, 1)
    epoch_unit: str = choice("minibatches", "minibatches", "passes")
    learning_rate: float = number(2e-3, 0, above=True)
    learning_rate_decay: Schedule = number(schedules.constant(1.0), 0)
    discount: float = number(0.99, 0, 1)
    gae_lambda: float = number(1.0, 0, 1)
    temperature: Schedule = Schedule(2.0, 0.1, 400)
    uniform_iterations: int = number(20, 0)
    play_temperature: float | None = number(None, 0, above=True)
    exploration: float = number(0.0, 0, 1)
    explorers: str = choice("all", "all", "one")
    correct_exploration: bool = False
    tau: float = number(0.1, 0, 1, above=True)
    target_update_period: int = number(5, 1)
    unit: str = choice("points", "points", "reward")
    advantage_clip: float = number(10.0, 0, above=True)
    max_grad_norm: float = number(1.0, 0, above=True)
    l2: float = number(1e-5, 0)
    initial_scale: float = number(0.01, 0)
    value_weight: float = number(0.5, 0)
    untaken_weight: float = number(1.0, 0)
    advantage: str = choice("sampled", "sampled", "expected_sarsa")
    critic: HistoryValueConfig = HistoryValueConfig(steps=32, batch_size=512, capacity=20_000, policy="current")
    correction_clip: float = number(0.0, 0)
    actor: str = choice("target", "target", "online")
    baseline: str = choice("value", "value", "policy")
    accumulate: str = choice("none", "none", "mirror_descent")
    mirror: MirrorConfig = MirrorConfig()
    average: AverageConfig = AverageConfig()
    shaping: ShapingConfig = ShapingConfig(form="literal")

    @property
    def accumulates(self) -> bool:
        """Whether a head of the network holds the policy."""
        return self.accumulate != "none"


def check(config: DuelingDreamConfig) -> None:
    """Raises InputError where settings contradict each other."""
    for name in ("start", "end"):
        if not getattr(config.temperature, name) > 0:
            raise InputError(f"algo.temperature.{name}={getattr(config.temperature, name)} must be more than 0")
    for name in ("eta", "alpha"):
        schedule = getattr(config.mirror, name)
        if config.accumulates and min(schedule.start, schedule.end) < 0:
            raise InputError(f"algo.mirror.{name}={dataclasses.asdict(schedule)} must not go below 0")
    if PAST_SELF in config.opponents:
        raise InputError(f"algo.opponents has {PAST_SELF}, which algo=dueling_dream does not keep; algo=ppo does")
