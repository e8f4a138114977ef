"""Training rewards: what is added to a game's own rewards, never mixed into a reported result."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
from jax import Array

from dream.config.settings import choice, number
from dream.equations import schedules
from dream.equations.schedules import Schedule
from envs import Game, InputError
from envs.totals import tied

FORMS = ("potential", "literal")


@dataclasses.dataclass(frozen=True)
class ShapingConfig:
    """What is added to the game's rewards in training.

    Attributes:
      form: see `shaping_reward`.
      scale: raw points paid for each point of potential, e.g. for each point of deadwood shed.
      tie_penalty: raw points each player gets where a game ends in a tie.
      win_bonus: raw points a winner gets, and a loser loses, on top of the game's own.
      win_bonus_after: iterations before there is that bonus.
    """

    form: str = choice("potential", *FORMS)
    scale: Schedule = schedules.constant(0.5)
    tie_penalty: float = number(-5.0)
    win_bonus: float = number(0.0, 0)
    win_bonus_after: int = number(0, 0)


@dataclasses.dataclass(frozen=True)
class Shaping:
    """What is added in one iteration.

    Attributes:
      form, tie_penalty: as of ShapingConfig.
      scale: float32, of the shaping.
      win_bonus: float32, raw points; a number where it is always there.
    """

    form: str
    scale: Array
    tie_penalty: float
    win_bonus: Array | float


def shaping_at(config: ShapingConfig, iteration: Array, share: Any = ()) -> Shaping:
    """Returns what is added in one iteration, counted from 0; `share` as of `schedules.at`."""
    bonus = config.win_bonus
    if config.win_bonus_after:
        bonus = jnp.where(iteration >= config.win_bonus_after, bonus, 0.0)
    return Shaping(config.form, schedules.at(config.scale, iteration, share), config.tie_penalty, bonus)


def shaping_reward(
    before: Array, after: Array, done: Array, *, scale: Array, discount: Array | float, form: str
) -> Array:
    """Returns the shaping of one transition, from the potential before and after it.

    potential: scale * (discount * Phi(s') - Phi(s)), Phi = 0 once the game is over. Leaves optimal policies as they are
      (Ng, Harada, Russell 1999, theorem 1), and adds to a full discounted return exactly -scale * Phi(s): the return
      learns nothing new from it unless it is bootstrapped on the way.
    literal: scale * (Phi(s') - Phi(s)), the last potential kept: pays the total change of the potential over the game,
      and so changes what is optimal.

    Args:
      before, after: float32[...] potentials.
      done: bool[...], whether the transition ended the game.
      scale: float32.
      discount: of the return the shaping is for.
      form: one of FORMS.
    Returns:
      float32[...].
    Source: the DREAM document, section 3, "Per-step shaping reward proportional to deadwood reduction"; the potential
      form is this project's.
    """
    if form == "literal":
        return scale * (after - before)
    return scale * (discount * jnp.where(done, 0.0, after) - before)


def tie_penalty(rewards: Array, done: Array, penalty: float) -> Array:
    """Returns `penalty` for every player where a game ended and none earned more than every other, else 0.

    Args:
      rewards: float32[..., P], what the game has paid, all of it at the end.
      done: bool[...].
      penalty: in units of reward, normally negative.
    Returns:
      float32[..., P].
    """
    return jnp.where((done & tied(rewards))[..., None], penalty, jnp.zeros_like(rewards))


def win_bonus(rewards: Array, done: Array, bonus: Array | float) -> Array:
    """Returns `bonus` for every player who has earned something at the end of a game, -bonus for a loser, else 0.

    Args:
      rewards: float32[...], what the game has paid, all of it at the end.
      done: bool[...], whether it ended the game; of the same shape or one that broadcasts.
      bonus: in units of reward.
    Returns:
      float32[...].
    """
    return jnp.where(done, bonus * jnp.sign(rewards), 0.0)


def check_win_bonus(config: ShapingConfig, game: Game) -> None:
    """Raises InputError unless a positive sum of rewards identifies the winner: two players, zero-sum."""
    if config.win_bonus and (game.num_players != 2 or not game.zero_sum):
        what = f"{game.num_players} players" if game.num_players != 2 else "rewards that are not zero-sum"
        raise InputError(
            f"algo.shaping.win_bonus={config.win_bonus:g} is for two-player zero-sum games; {game.name} here has "
            f"{what}, so it must be 0"
        )


def check_tie_penalty(config: ShapingConfig, game: Game) -> None:
    """Raises InputError for a penalty in points where rewards are not points: not zero-sum and without a scale."""
    if config.tie_penalty and game.unit == "points" and game.reward_scale == 1 and not game.zero_sum:
        raise InputError(
            f"algo.shaping.tie_penalty={config.tie_penalty:g} is in points; the rewards of {game.name} here are not, "
            "so it must be 0"
        )


def training_rewards(
    shaping: Shaping,
    rewards: Array,
    potentials: Array,
    done: Array,
    *,
    unit: float,
    discount: float,
    paid: Array | None = None,
) -> Array:
    """Returns the game's rewards with shaping, tie penalty and win bonus added: float32[..., P].

    Args:
      shaping: of the iteration.
      rewards: float32[..., P], the game's own.
      potentials: float32[..., 2, P], the game's potential before and after each transition.
      done: bool[...], whether it ended the game.
      unit: raw points in a reward of 1, Game.reward_scale.
      discount: of the return they are for.
      paid: float32[..., P], what the game has paid up to and with each transition; None: it pays at its end alone.
    """
    paid = rewards if paid is None else paid
    added = tie_penalty(paid, done, shaping.tie_penalty / unit)
    total = rewards + added + win_bonus(paid, done[..., None], shaping.win_bonus / unit)
    before, after, form = potentials[..., 0, :], potentials[..., 1, :], shaping.form
    return total + shaping_reward(before, after, done[..., None], scale=shaping.scale, discount=discount, form=form)
