"""Training rewards: what is added to a game's own rewards, never mixed into a reported result."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import jax.numpy as jnp
from jax import Array

from dream import schedules
from dream.schedules import Schedule
from dream.settings import choice, number

if TYPE_CHECKING:
    from dream.selfplay import Decision
    from envs import Game

FORMS = ("potential", "literal")


@dataclasses.dataclass(frozen=True)
class ShapingConfig:
    """What is added to the game's rewards in training.

    Attributes:
      form: see `shaping_reward`.
      scale: raw points paid for each point of potential, e.g. for each point of deadwood shed.
      draw_penalty: raw points each player gets where a game ends without a winner.
      win_bonus: raw points a winner gets, and a loser loses, beside those of the game.
    """

    form: str = choice("potential", *FORMS)
    scale: Schedule = schedules.constant(0.5)
    draw_penalty: float = number(-5.0)
    win_bonus: float = number(0.0, 0)


def shaping_reward(before: Array, after: Array, done: Array, *, scale: Array, discount: float, form: str) -> Array:
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


def draw_penalty(rewards: Array, done: Array, penalty: float) -> Array:
    """Returns `penalty` for every player where a game ended without a winner, else 0.

    Args:
      rewards: float32[..., P] the game's own rewards of the transition.
      done: bool[...].
      penalty: in units of reward, normally negative.
    Returns:
      float32[..., P].
    """
    drawn = done & jnp.all(rewards == 0, axis=-1)
    return jnp.where(drawn[..., None], penalty, jnp.zeros_like(rewards))


def win_bonus(rewards: Array, done: Array, bonus: float) -> Array:
    """Returns `bonus` for every player whom the end of a game pays, -bonus for every one it costs, else 0.

    Args:
      rewards: float32[...] the game's own rewards of the transition.
      done: bool[...], whether it ended the game; of the same shape or one that broadcasts.
      bonus: in units of reward.
    Returns:
      float32[...].
    """
    return jnp.where(done, bonus * jnp.sign(rewards), 0.0)


def training_rewards(game: Game, config: ShapingConfig, played: Decision, *, scale: Array, discount: float) -> Array:
    """Returns the game's rewards with shaping, draw penalty and win bonus added: float32[..., P].

    Args:
      game: tells what a reward of 1 is in raw points.
      config: form and penalty.
      played: transitions, leading axes [...].
      scale: the shaping's, now.
      discount: of the return they are for.
    """
    rewards = played.rewards + draw_penalty(played.rewards, played.done, config.draw_penalty / game.reward_scale)
    rewards += win_bonus(played.rewards, played.done[..., None], config.win_bonus / game.reward_scale)
    before, after = played.potentials[..., 0, :], played.potentials[..., 1, :]
    return rewards + shaping_reward(
        before, after, played.done[..., None], scale=scale, discount=discount, form=config.form
    )
