"""Games whose observation tells the phase and that have something to predict: for networks with a head for each."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
from dream_support import CoinGame, CoinState, CoinView
from jax import Array


@dataclasses.dataclass(frozen=True)
class PhasedCoin(CoinGame):
    """The coin game whose observation ends with a one-hot of the moves made; what is to be predicted is the coin."""

    observation_size = 20
    phase_offset = 17

    def encode(self, view: CoinView) -> Array:
        """Returns the coin game's observation and a one-hot of the number of moves, zeros from 3 on."""
        phase = jnp.sum(view.moves > 0) == np.arange(3)
        return jnp.concatenate([super().encode(view), phase.astype(jnp.float32)])

    def auxiliary(self, state: CoinState, player: Array) -> Array:
        """Returns the coin, which player 1 does not see."""
        return state.coin.astype(jnp.float32)
