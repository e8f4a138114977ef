"""The document's shaped reward, R = -w_n cards in hand + w_p points laid + w_w [won], for every player.

Source: the scope document's equation (1). It does not say when R is paid; here each step pays what R gained by it, and
the win with the last one, so that a round's sum is R at its end less R at the deal.
"""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
from jax import Array

from envs.cards import NUM_CARDS
from envs.errors import InputError, shown
from envs.rummy500.game import Rummy500
from envs.rummy500.rules import HAND_VALUES
from envs.rummy500.state import RummyState, sizes

_MOST = float(np.finfo(np.float32).max)
"""Rewards are float32."""


def check_weight(name: str, value: float) -> None:
    """Raises InputError unless a weight is a finite number."""
    if not abs(value) <= _MOST:
        raise InputError(f"rule {name}={shown(value)} is not valid; it must be a finite number")


@dataclasses.dataclass(frozen=True)
class ShapedRummy500(Rummy500):
    """Rummy 500 with the shaped reward instead of the score; not zero-sum.

    Attributes:
      card_weight: w_n, for each card in hand.
      point_weight: w_p, for each point laid.
      win_weight: w_w, for the highest score; equals share it.
      every_step: whether steps pay what R gained by them; else all of R is paid at the end.
    """

    card_weight: float = 0.01
    point_weight: float = 0.01
    win_weight: float = 1.0
    every_step: bool = True
    reward_scale = 1.0
    zero_sum = False

    def __post_init__(self) -> None:
        """Checks the weights.

        Raises:
          InputError: one is not finite.
        """
        for name in ("card_weight", "point_weight", "win_weight"):
            check_weight(name, getattr(self, name))

    @property
    def pays_at_end(self) -> bool:
        """Whether all of R is paid with the last step."""
        return not self.every_step

    @property
    def worst_reward(self) -> float:
        """The deck in hand and nothing laid, or the worst of what the weights' signs make of it.

        A round's sum is -w_n (cards held at the end - cards counted at the deal) + w_p points + w_w share of the win,
        the cards dealt being counted where every step pays; cards are 0 to 52, points 0 to the deck's, a share 0 to 1.
        """
        counted = self.rules.hand_size if self.every_step else 0
        in_hand = max(self.card_weight * (NUM_CARDS - counted), -self.card_weight * counted)
        laid, won = -self.point_weight * float(HAND_VALUES.sum()), -self.win_weight
        return -(in_hand + max(laid, 0.0) + max(won, 0.0))

    def step(self, state: RummyState, action: Array) -> tuple[RummyState, Array, Array]:
        """Plays an action; rewards float32[P] as the class says."""
        new, _, done = super().step(state, action)
        was_over = state.current_player < 0
        scores = self.scores(new)
        best = scores == jnp.max(scores)
        won = jnp.where(done, self.win_weight * best / jnp.sum(best), 0)
        if self.every_step:
            paid = self._standing(new) - self._standing(state) + won
        else:
            paid = jnp.where(done, self._standing(new) + won, 0)
        return new, jnp.where(was_over, 0, paid).astype(jnp.float32), done

    def _standing(self, state: RummyState) -> Array:
        """Returns -w_n cards + w_p points: float32[P]."""
        held = sizes(state, self.num_players)
        return np.float32(self.point_weight) * state.points - np.float32(self.card_weight) * held
