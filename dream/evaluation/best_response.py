"""A learned best response: PPO trained against a frozen policy, a lower bound on how much the policy can lose.

Several are trained from different seeds, and other players may join them; the one that earns most on
deals kept for the choice is measured on fresh mirrored deals. Its points per hand, b, bound the policy's exploitability
(NashConv / 2) from below: with both seats played equally often, no answer to the policy earns less than the best one,
and the game's values cancel. The same method shows how far below it is on games where exploitability is exact.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from dream.algorithms import ppo
from dream.algorithms.types import Algorithm
from dream.config import settings
from dream.config.settings import number
from dream.evaluation.control import Controlled, controlled_match
from dream.evaluation.matches import match
from dream.rollout.opponents import Mixture
from envs import Game, Policy, check_plays

_CHOICE, _FINAL, _CONTROL, _CHECK = range(4)
"""What deals are for: the choice, the two measurements, and the look at the policy before anything is trained."""
_DEALS_SEED = 1_000_003
_CHECKED_GAMES = 128


@dataclasses.dataclass(frozen=True)
class BestResponseConfig:
    """Settings of the learned best response.

    Attributes:
      iterations: of PPO, each over algo.episodes_per_iteration games.
      seeds: one training each.
      players: rule-based players by name, or paths of runs, that join the trained ones in the choice.
      choice_games: rounds on which the best of them is chosen.
      games: rounds on which it is measured.
      control_games: further rounds on which its own value serves as control variate; 0 for none.
      algo: settings of PPO; `opponents` is not used.
      network: the answering network's node.
    """

    iterations: int = number(300, 1)
    seeds: tuple[int, ...] = number((0, 1, 2), 0, 2**32 - 1)
    players: tuple[str, ...] = ()
    choice_games: int = number(2048, 4)
    games: int = number(10000, 4)
    control_games: int = number(4096, 0)
    algo: dict[str, Any] = dataclasses.field(default_factory=dict)
    network: dict[str, Any] = dataclasses.field(default_factory=dict)


class Learned(NamedTuple):
    """A learned best response.

    Attributes:
      policy: the best one.
      chosen: "seed <its training's>", or its name among the other players.
      earned: by the same names, points per hand on the deals of the choice.
      report: its match against the frozen policy on fresh deals, as `match` gives it.
      curves: by seed, points per hand of each iteration's training games.
      control: a match with its value as control variate, on other fresh deals; None where none was asked for, or
        where the best one has no value.
    """

    policy: Policy
    chosen: str
    earned: dict[str, float]
    report: dict[str, Any]
    curves: dict[int, list[float]]
    control: Controlled | None


def learn_best_response(
    game: Game,
    policy: Policy,
    config: BestResponseConfig,
    players: dict[str, Policy] | None = None,
    progress: Callable[[int, int, float], None] = lambda seed, iteration, points: None,
) -> Learned:
    """Trains best responses to a frozen policy and measures the best.

    Args:
      game: with two players.
      policy: frozen.
      config: budget, seeds and settings.
      players: by name, those of config.players.
      progress: called with seed, iteration and points per hand of the iteration's training games.
    Raises:
      InputError: a wrong setting of PPO or the network, or a policy that gives no distribution over the legal actions.
      FloatingPointError: a training diverged.
    """
    learner = make_learner(game, policy, config)
    match(game, policy, policy, games=_CHECKED_GAMES, seed=_deals(_CHECK))
    curves, values, answers = {}, {}, dict(players or {})
    for seed in config.seeds:
        state, curve, name = learner.init(jax.random.key(seed)), [], f"seed {seed}"
        for iteration in range(config.iterations):
            state, metrics = learner.iterate(state)
            if not np.isfinite(metrics["loss"]):
                raise FloatingPointError(
                    f"best response, {name}, iteration {iteration + 1}: the loss is {metrics['loss']}; "
                    "lower best_response.algo.learning_rate"
                )
            curve.append(metrics["learner_reward"] * game.reward_scale)
            progress(seed, iteration + 1, curve[-1])
        curves[seed], answers[name], values[name] = curve, learner.policies(state)["current"], learner.value(state)
    earned = {
        name: match(game, answer, policy, games=config.choice_games, seed=_deals(_CHOICE))["points_per_hand"].mean
        for name, answer in answers.items()
    }
    best = max(earned, key=lambda name: earned[name])
    report = match(game, answers[best], policy, games=config.games, seed=_deals(_FINAL))
    control = None
    if config.control_games and best in values:
        deals = {"games": config.control_games, "seed": _deals(_CONTROL)}
        control = controlled_match(game, answers[best], policy, values[best], **deals)
    return Learned(answers[best], best, earned, report, curves, control)


def _deals(purpose: int) -> jax.Array:
    """Returns the key of deals for one purpose, apart from those of all others and of every seed that can be given."""
    return jax.random.fold_in(jax.random.key(_DEALS_SEED), purpose)


def make_learner(game: Game, policy: Policy, config: BestResponseConfig) -> Algorithm:
    """Builds the PPO learner that sits opposite the frozen policy in every game.

    Raises:
      InputError: a wrong setting of PPO or the network, or a policy of another game.
    """
    check_plays(policy, game)
    checked = settings.read(ppo.PpoConfig, {**config.algo, "name": "ppo"}, "best_response.algo")
    return ppo.make_against(checked, config.network, game, Mixture((policy,), np.array([0.0, 1.0], np.float32)))
