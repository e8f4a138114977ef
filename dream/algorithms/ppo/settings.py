"""Settings of PPO, and the check of those that depend on each other."""

from __future__ import annotations

import dataclasses

from dream.algorithms.critic import check_critic
from dream.algorithms.deep.history_values import HistoryValueConfig
from dream.config.settings import choice, number
from dream.equations import schedules
from dream.equations.reward_shaping import ShapingConfig, check_tie_penalty, check_win_bonus
from dream.equations.schedules import Schedule
from dream.rollout.opponents import SELF, Mixture
from dream.rollout.self_play import num_envs_for
from envs import Game, InputError
from envs.checks import check_two_player_zero_sum


@dataclasses.dataclass(frozen=True)
class PpoConfig:
    """Settings of PPO; conf/algo/ppo.yaml says what each does.

    With `rollout_length` an iteration plays that many decisions of the learner in each of `num_envs` games against
    fixed players; `moves_per_step` and `keep_inputs` apply there alone. Without it an iteration plays
    `episodes_per_iteration` whole games.
    """

    name: str = "ppo"
    episodes_per_iteration: int = number(1024, 1)
    num_envs: int | None = number(None, 1)
    rollout_length: int | None = number(None, 1)
    moves_per_step: int = number(10, 1)
    keep_inputs: bool = False
    assistant: str | None = None
    opponents: tuple[str, ...] = (SELF,)
    shares: tuple[float, ...] | None = number(None, 0)
    start_from: str | None = None
    pool_every: int = number(50, 1)
    pool_size: int = number(8, 1)
    opponent_id_prob: float = number(0.0, 0, 1)
    batch_size: int = number(2048, 1)
    epochs: int = number(4, 1)
    learning_rate: float = number(2.5e-4, 0, above=True)
    learning_rate_decay: Schedule = number(schedules.constant(1.0), 0)
    discount: float = number(1.0, 0, 1)
    gae_lambda: float = number(0.95, 0, 1)
    gae_over: str = choice("own", "own", "all")
    advantage: str = choice("gae", "gae", "expected_sarsa")
    advantage_unit: str = choice("batch", "batch", "reward")
    objective: str = choice("sampled", "sampled", "all_actions")
    correction_clip: float = number(1.0, 0)
    exploration: float = number(0.0, 0, 1)
    optimism: float = number(0.0, 0)
    slow_tau: float = number(0.1, 0, 1, above=True)
    average_tau: float | None = number(None, 0, 1, above=True)
    critic: HistoryValueConfig = HistoryValueConfig(steps=32, batch_size=512, capacity=20_000, policy="current")
    clip_epsilon: float = number(0.2, 0, above=True)
    entropy_weight: float = number(0.01, 0)
    entropy_decay: Schedule = number(schedules.constant(1.0), 0)
    value_weight: float = number(0.5, 0)
    value_loss: str = choice("absolute", "absolute", "relative", "clipped")
    auxiliary_weight: float = number(0.1, 0)
    max_grad_norm: float = number(0.5, 0, above=True)
    adam_epsilon: float = number(1e-8, 0, above=True)
    play_temperature: float | None = number(None, 0, above=True)
    shaping: ShapingConfig = ShapingConfig(scale=schedules.constant(0.0), tie_penalty=0.0)


def checked_num_envs(config: PpoConfig, game: Game, mixture: Mixture) -> int:
    """Returns the games in play at once, of settings that agree with each other.

    Raises:
      InputError: more num_envs than games, rollout_length against itself, keep_inputs without it, an objective over all
        actions without a critic, exploration or optimism without such an objective, optimism without a slow copy, a
        bonus for wins that rewards do not tell, a clipped value loss or GAE over all decisions where there is no such
        thing, or opponents that the game's observation cannot name, or that are the learner alone.
    """
    if config.rollout_length is not None and mixture.probabilities[0] > 0:
        raise InputError(
            f"algo.rollout_length={config.rollout_length} needs fixed players; algo.opponents must not hold {SELF!r}"
        )
    if config.keep_inputs and config.rollout_length is None:
        raise InputError("algo.keep_inputs=true needs algo.rollout_length; with whole games it must be false")
    if config.objective != "sampled" and config.advantage != "expected_sarsa":
        raise InputError(
            f"algo.objective={config.objective} needs a critic of all actions; algo.advantage={config.advantage} must "
            "be expected_sarsa"
        )
    check_win_bonus(config.shaping, game)
    check_tie_penalty(config.shaping, game)
    _check_gae(config, game, mixture)
    for name in ("exploration", "optimism"):
        value = getattr(config, name)
        if value and config.objective == "sampled":
            raise InputError(
                f"algo.{name}={value} needs an objective over all actions; with algo.objective=sampled it must be 0"
            )
    if config.optimism and config.slow_tau == 1:
        raise InputError(
            "algo.slow_tau=1.0 leaves nothing to be optimistic about; with algo.optimism it must be below 1"
        )
    if config.advantage == "expected_sarsa":
        check_critic(
            config.critic, config.shaping, game, mixture, config.discount,
            {
                "algo.rollout_length must be null": config.rollout_length is not None,
                "algo.assistant must be null": config.assistant is not None,
                "with algo.optimism algo.critic.reinitialise must be false": bool(
                    config.optimism and config.critic.reinitialise
                ),
            },
        )  # fmt: skip
    _check_names(game, mixture)
    if config.rollout_length is None:
        return num_envs_for(config.num_envs, config.episodes_per_iteration)
    return config.num_envs or config.episodes_per_iteration


def _check_gae(config: PpoConfig, game: Game, mixture: Mixture) -> None:
    """Raises InputError where values are asked for that there are not, of others or of before the fit."""
    if config.value_loss == "clipped" and config.advantage != "gae":
        raise InputError(
            f"algo.value_loss=clipped needs the network's own values; algo.advantage={config.advantage} must be gae"
        )
    if config.gae_over == "own":
        return
    where = "algo.gae_over=all needs the value of every decision in a game for two"
    if config.advantage != "gae":
        raise InputError(f"{where}; algo.advantage={config.advantage} must be gae")
    if mixture.probabilities[0] < 1 or config.assistant is not None:
        raise InputError(f"{where}; algo.opponents must be [{SELF}] and algo.assistant null")
    check_two_player_zero_sum(game, "algo.gae_over=all", "use algo.gae_over=own")
    shaping = config.shaping
    if shaping.scale.start or shaping.scale.end or shaping.tie_penalty:
        raise InputError(
            "algo.gae_over=all takes a player's rewards for minus the other's; algo.shaping.scale and "
            "algo.shaping.tie_penalty must be 0"
        )


def _check_names(game: Game, mixture: Mixture) -> None:
    """Raises InputError where the observation is to name opponents, and there are none or more than it can."""
    kinds, count = game.opponent_ids.kinds if game.opponent_ids else 0, len(mixture.players)
    if not mixture.opponent_id_prob or 0 < count <= kinds:
        return
    why = f"{game.name} can name {kinds} opponents, and there are {count}"
    if not count:
        why = f"algo.opponents has nobody to name but {SELF!r}"
    raise InputError(f"algo.opponent_id_prob={mixture.opponent_id_prob} is not valid: {why}; it must be 0")
