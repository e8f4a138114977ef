"""Phantom tic-tac-toe: the game `phantom_ttt`, as OpenSpiel plays and encodes it with obstype=reveal-nothing.

Action r * 3 + c tries cell (r, c), by the rules of phantom games (envs/phantom/core.py). Three in a row win; a full
board without them is a draw.

Observation, float32[108], OpenSpiel's information-state tensor; only the player's own knowledge of the board:

| index | content |
|---|---|
| 0:9 | cells in which the player knows of no stone |
| 9:18 | stones of player 1, as known |
| 18:27 | stones of player 0, as known |
| 27:108 | the player's tries in order, each a one-hot of its cell |
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
from jax import Array

from envs.phantom import boards
from envs.phantom.core import PhantomGame, PhantomView, WalkableGame, built
from envs.phantom.rules import PhantomRules
from envs.rules import build_rules

_LINES = boards.rows_of_three()


@dataclasses.dataclass(frozen=True)
class PhantomTicTacToe(PhantomGame):
    """Phantom tic-tac-toe; rules and encoding as the module says."""

    rules: PhantomRules = PhantomRules()
    name = "phantom_ttt"
    version = "1"
    observation_size = 108
    columns = 3
    winning = (_LINES, _LINES)

    def encode(self, view: PhantomView) -> Array:
        """Returns the observation vector: float32[108], indices as in the module's table."""
        first, second = self.known_board(view)
        board = jnp.concatenate([~first & ~second, second, first]).astype(jnp.float32)
        return jnp.concatenate([board, self.tries_in_order(view)])


class SmallPhantomTicTacToe(PhantomTicTacToe, WalkableGame):
    """The same with an opening that leaves few histories."""


def make(**rules: Any) -> PhantomGame:
    """Builds `phantom_ttt`.

    Args:
      **rules: fields of PhantomRules.
    Raises:
      InputError: an unknown rule or a value that is not valid.
    """
    return built(PhantomTicTacToe, SmallPhantomTicTacToe, build_rules(PhantomRules, PhantomRules(), rules))
