"""What a deep regret minimiser is made of: every choice in which the algorithms differ, in one place.

    algorithm      sampling   regrets estimated by            network fitted to               average (no tree / tree)
    deep_cfr       external   all own actions followed        all samples                     network
    sd_cfr         external   all own actions followed        all samples                     - / exact mixture
    os_sd_cfr      outcome    importance sampling             all samples                     network / exact mixture
    dream          outcome    the same, value as a baseline   all samples                     network / exact mixture
    escher         outcome    the value alone                 all samples                     network / exact mixture
    vr_dcfr_plus   outcome    value as a baseline             cumulative, newest samples      network / exact mixture

The last two columns are their settings' defaults (memory.kind, average.source). dream and escher are the ends of one
scale, algo.correction: trace 1 without a clip, and clip 0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from jax import Array

from dream.algorithms.deep.samplers import CorrectionConfig
from dream.algorithms.deep.settings import (
    AverageConfig,
    DeepConfig,
    HistoryConfig,
    MemoryConfig,
    OutcomeConfig,
    chance_in_baseline,
    check,
    correction,
)
from envs import EnumerableGame, Game

CumulativeTarget = Callable[[Array, Array], Array]
"""(cumulative regrets float32[..., A] so far, iteration int32) -> what this iteration's regrets are added to."""


@dataclasses.dataclass(frozen=True)
class Recipe:
    """The choices of one learner.

    Attributes:
      outcome_sampling: one trajectory per traversal on any game; else external sampling on the game's tree.
      history_values: whether a history value function is learned.
      correction: how far sampled games correct it.
      chance_in_baseline: whether that baseline covers chance, by enumeration.
      cumulative_target: what this iteration's regrets are added to before the fit, which is then to this iteration's
        samples alone; None to fit single iterations' regrets, to all samples kept.
      infoset_sums: whether samples are kept as sums by information set; else as rows, in a buffer of `row_buffer`.
      row_buffer: "reservoir" or "fifo".
      exact_average: whether the average is the exact mixture of all policies; else a network fitted to samples.
    """

    outcome_sampling: bool
    history_values: bool
    correction: CorrectionConfig
    chance_in_baseline: bool
    cumulative_target: CumulativeTarget | None
    infoset_sums: bool
    row_buffer: str
    exact_average: bool


def make_recipe(
    config: DeepConfig,
    game: Game,
    *,
    cumulative_target: CumulativeTarget | None = None,
) -> Recipe:
    """Returns the choices that an algorithm's kind of configuration and its settings stand for.

    Args:
      config: an OutcomeConfig samples outcomes, a HistoryConfig with a history value function, any other external
        sampling.
      game: for two players.
      cumulative_target: as in Recipe; it belongs to the algorithm and is no setting.
    Raises:
      InputError: settings and game that do not fit.
    """
    check(config, game)
    return Recipe(
        outcome_sampling=isinstance(config, OutcomeConfig),
        history_values=isinstance(config, HistoryConfig),
        correction=correction(config),
        chance_in_baseline=chance_in_baseline(config),
        cumulative_target=cumulative_target,
        infoset_sums=config.memory.kind == "infoset_sums",
        row_buffer=_row_buffer(config.memory),
        exact_average=_is_exact(config.average, game),
    )


def _row_buffer(memory: MemoryConfig) -> str:
    return "reservoir" if memory.kind == "infoset_sums" else memory.kind


def _is_exact(average: AverageConfig, game: Game) -> bool:
    return average.source == "exact_mixture" or (average.source == "auto" and isinstance(game, EnumerableGame))
