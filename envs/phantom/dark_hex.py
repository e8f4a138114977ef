"""Dark Hex: the game `dark_hex`, as OpenSpiel plays and encodes it with obstype=reveal-nothing.

Action r * n + c tries cell (r, c) of the n x n board, by the rules of phantom games (envs/phantom/core.py). Cell (r, c)
is adjacent to (r, c +- 1), (r +- 1, c), (r - 1, c + 1) and (r + 1, c - 1); player 0 connects the first row to the last,
player 1 the first column to the last. There are no draws.

Observation, float32[9 m + m^2] for m = n^2 cells, OpenSpiel's information-state tensor; only the player's knowledge:

| index | content |
|---|---|
| 9 c + 3, 9 c + 4, 9 c + 5 | cell c: a stone of player 1, nothing known, a stone of player 0 |
| 9 m: | the player's tries in order, each a one-hot of its cell |

The other six numbers of a cell are 0. OpenSpiel uses some of them once the game is over, when nobody is to act.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
from jax import Array

from envs.phantom import boards
from envs.phantom.core import PhantomGame, PhantomView, WalkableGame, built
from envs.phantom.rules import HexRules
from envs.rules import build_rules

_STATES = 9
"""Numbers per cell in OpenSpiel's tensor; three of them are used."""
_BEFORE, _BEHIND = 3, 3
"""Of these, the unused ones before and behind the three."""


@dataclasses.dataclass(frozen=True)
class DarkHex(PhantomGame):
    """Dark Hex; rules and encoding as the module says."""

    rules: HexRules = HexRules()
    name = "dark_hex"
    version = "1"
    slanted = True

    @property
    def observation_size(self) -> int:
        """9 numbers per cell, and as many tries as cells."""
        return self.rules.cells * (_STATES + self.rules.cells)

    @property
    def columns(self) -> int:
        """Columns of the board."""
        return self.rules.board_size

    @property
    def winning(self) -> tuple[boards.Cells, boards.Cells]:
        """The shortest chains: from top to bottom for player 0, from left to right for player 1."""
        return boards.hex_chains(self.rules.board_size)

    def encode(self, view: PhantomView) -> Array:
        """Returns the observation vector, indices as in the module's table."""
        first, second = self.known_board(view)
        known = jnp.stack([second, ~first & ~second, first], axis=1)
        board = jnp.pad(known, ((0, 0), (_BEFORE, _BEHIND))).reshape(-1).astype(jnp.float32)
        return jnp.concatenate([board, self.tries_in_order(view)])


class SmallDarkHex(DarkHex, WalkableGame):
    """The same on a board, or with an opening, that leaves few histories."""


def make(**rules: Any) -> PhantomGame:
    """Builds `dark_hex`.

    Args:
      **rules: fields of HexRules.
    Raises:
      InputError: an unknown rule or a value that is not valid.
    """
    return built(DarkHex, SmallDarkHex, build_rules(HexRules, HexRules(), rules))
