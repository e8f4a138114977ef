"""The document's shaped reward, R = -w_n cards in hand + w_p points laid + w_w [won], for every player.

Source: the scope document's equation (1). It does not say when R is paid; here each step pays what R gained by it, and
the win with the last one, so that a round's sum is R at its end less R at the deal.
"""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
from jax import Array

from envs.rummy500.game import Rummy500
from envs.rummy500.state import RummyState, sizes


@dataclasses.dataclass(frozen=True)
class ShapedRummy500(Rummy500):
    """Rummy 500 with the shaped reward instead of the score; not zero-sum.

    Attributes:
      card_weight: w_n, for each card in hand.
      point_weight: w_p, for each point laid.
      win_weight: w_w, for the highest score; ties share it.
      every_step: whether steps pay what R gained by them; else all of R is paid at the end.
    """

    card_weight: float = 0.01
    point_weight: float = 0.01
    win_weight: float = 1.0
    every_step: bool = True
    reward_scale = 1.0

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
