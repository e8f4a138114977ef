"""A learned best response: PPO trained against a frozen policy, a lower bound on how much the policy can lose.

Several are trained from different seeds, and other players may join them; the one that earns most on
deals kept for the choice is measured on fresh mirrored deals. A training may start from a player
(dream/evaluation/headstart.py). Its points per hand, b, bound the policy's exploitability
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
from dream.algorithms.types import Algorithm, Value
from dream.config import settings
from dream.config.settings import number
from dream.evaluation.control import Controlled, controlled_match
from dream.evaluation.headstart import AdvisedGame, advised, on_advice, unadvised_value, unaware
from dream.evaluation.matches import match
from dream.evaluation.validity import refuse_unopposed
from dream.networks import make_network
from dream.rollout.opponents import Mixture
from envs import EnumerableGame, Game, InputError, Policy, check_plays
from envs.errors import unknown

_CHOICE, _FINAL, _CONTROL, _CHECK = range(4)
"""What deals are for: the choice, the two measurements, and the look at the policy before anything is trained."""
_DEALS_SEED = 1_000_003
_CHECKED_GAMES = 128
POLICY = "policy"
"""The frozen policy itself as the player to start from."""
_UNUSED = ("opponents", "shares", "opponent_id_prob", "pool_every", "pool_size", "average_tau")
"""Settings of PPO that say whom it meets, or keep another policy than the current one."""
_SIZES = {True: (100, 32768, 8192, 2e-3), False: (300, 512, 1024, 1e-3)}
"""Whether a game is enumerable -> iterations, games of each, batch size and step size where none are given.

Small differences between actions take many games, and games that can be enumerated are short."""


@dataclasses.dataclass(frozen=True)
class BestResponseConfig:
    """Settings of the learned best response.

    Attributes:
      iterations: of PPO, each over algo.episodes_per_iteration games; None: by the kind of game.
      seeds: one training each.
      players: rule-based players by name, or paths of runs, that join the trained ones in the choice.
      start: one more of them, which the trainings start from; POLICY for the frozen policy; None for none.
      start_exploration: share of uniform play in what they start from.
      card_scorer_width: of the network's layers that all cards share, on games that describe cards; None for none.
      choice_games: rounds on which the best of them is chosen.
      games: rounds on which it is measured.
      control_games: further rounds on which its own value serves as control variate; 0 for none.
      algo: settings of PPO, without those of whom it meets. Sizes that are None or not given are by the kind of game.
      network: the answering network's node.
    """

    iterations: int | None = number(None, 1)
    seeds: tuple[int, ...] = number((0, 1, 2), 0, 2**32 - 1)
    players: tuple[str, ...] = ()
    start: str | None = POLICY
    start_exploration: float = number(0.1, 0, 1, above=True)
    card_scorer_width: int | None = number(64, 1)
    choice_games: int = number(2048, 4)
    games: int = number(10000, 4)
    control_games: int = number(4096, 0)
    algo: dict[str, Any] = dataclasses.field(default_factory=dict)
    network: dict[str, Any] = dataclasses.field(default_factory=dict)

    def sized(self, game: Game) -> BestResponseConfig:
        """Returns the settings with every size that was left open."""
        iterations, games, batch, step = _SIZES[isinstance(game, EnumerableGame)]
        iterations = self.iterations or iterations
        algo = {name: value for name, value in self.algo.items() if value is not None}
        decay = algo.get("learning_rate_decay") or {"start": 1.0, "end": 0.05}
        algo["learning_rate_decay"] = {**decay, "transition_steps": decay.get("transition_steps") or iterations}
        sizes = {"episodes_per_iteration": games, "batch_size": batch, "learning_rate": step}
        network = dict(self.network)
        if game.card_features is not None and network.get("name", "dueling") == "dueling":
            network.setdefault("card_scorer_width", self.card_scorer_width)
        return dataclasses.replace(self, iterations=iterations, algo={**sizes, **algo}, network=network)


class Learned(NamedTuple):
    """A learned best response.

    Attributes:
      policy: the best one.
      chosen: "seed <its training's>", or its name among the other players.
      earned: by the same names, points per hand on the deals of the choice.
      report: its match against the frozen policy on fresh deals, as `match` gives it.
      curves: by seed, what each iteration's training games earned, in rewards times game.reward_scale.
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
      players: by name, those of config.players and config.start.
      progress: called with seed, iteration and what the iteration's training games earned, as in `curves`.
    Raises:
      InputError: a game that is not zero-sum and for two, a wrong setting of PPO or the network, or a policy that gives
        no distribution over the legal actions.
      FloatingPointError: a training diverged.
    """
    refuse_unopposed(game, "a learned best response")
    config, answers = config.sized(game), dict(players or {})
    start = start_of(config, policy, answers)
    learner = make_learner(game, policy, config, start)
    match(game, policy, policy, games=_CHECKED_GAMES, seed=_deals(_CHECK))
    curves, values = {}, {}
    for seed in config.seeds:
        state, curve, name = learner.init(jax.random.key(seed)), [], f"seed {seed}"
        for iteration in range(config.iterations):
            if learner.with_share is not None:
                state = learner.with_share(state, iteration / config.iterations)
            state, metrics = learner.iterate(state)
            if not np.isfinite(metrics["loss"]):
                raise FloatingPointError(
                    f"best response, {name}, iteration {iteration + 1}: the loss is {metrics['loss']}; "
                    "lower best_response.algo.learning_rate"
                )
            curve.append(metrics["learner_reward"] * game.reward_scale)
            progress(seed, iteration + 1, curve[-1])
        curves[seed], answers[name], values[name] = curve, *_answer(game, learner, state, config, start)
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


def start_of(config: BestResponseConfig, policy: Policy, players: dict[str, Policy]) -> Policy | None:
    """Returns the player that trainings start from, if any.

    Raises:
      InputError: it is not among the players.
    """
    if config.start in (None, POLICY):
        return policy if config.start else None
    if config.start not in players:
        raise unknown("best_response.start", config.start, [POLICY, *players])
    return players[config.start]


def _answer(
    game: Game, learner: Algorithm, state: Any, config: BestResponseConfig, start: Policy | None
) -> tuple[Policy, Value]:
    """Returns what was learned, as a policy and a value on the game's own views."""
    policy, value = learner.policies(state)["current"], learner.value(state)
    if start is None:
        return policy, value
    value = unadvised_value(make_network(config.network, game), value)
    return advised(policy, start, config.start_exploration), value


def make_learner(game: Game, policy: Policy, config: BestResponseConfig, start: Policy | None = None) -> Algorithm:
    """Builds the PPO learner that sits opposite the frozen policy in every game.

    Args:
      game: with two players.
      policy: frozen.
      config: its settings, sized or not.
      start: the player that the learner starts from.
    Raises:
      InputError: a wrong setting of PPO or the network, or a policy of another game.
    """
    check_plays(policy, game)
    _refuse_unused(config.algo)
    config, opposite = config.sized(game), np.array([0.0, 1.0], np.float32)
    checked = settings.read(ppo.PpoConfig, {**config.algo, "name": "ppo"}, "best_response.algo")
    if start is None:
        return ppo.make_against(checked, config.network, game, Mixture((policy,), opposite))
    check_plays(start, game)
    network = on_advice(make_network(config.network, game), game.num_actions)
    hinted = AdvisedGame(game, start, config.start_exploration)
    return ppo.make_against(checked, network, hinted, Mixture((unaware(policy),), opposite))


def _differs(given: Any, usual: Any) -> bool:
    return list(given) != list(usual) if isinstance(usual, tuple) else given != usual


def _refuse_unused(algo: dict[str, Any]) -> None:
    """Raises InputError for settings that would decide nothing."""
    usual = ppo.PpoConfig()
    unused = [name for name in _UNUSED if algo.get(name) is not None and _differs(algo[name], getattr(usual, name))]
    if algo.get("name", "ppo") != "ppo":
        unused = ["name"]
    if unused:
        raise InputError(
            f"best_response.algo.{unused[0]}={algo[unused[0]]} has no effect: a best response is the current policy of "
            "PPO against the fixed policy alone; leave it out"
        )
