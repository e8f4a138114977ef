"""Phantom games on five cells, with winning sets of different sizes for each player, and draws."""

from __future__ import annotations

import dataclasses

from jax import Array

from envs.phantom.core import PhantomView, WalkableGame
from envs.phantom.rules import PhantomRules


@dataclasses.dataclass(frozen=True)
class FiveRules(PhantomRules):
    """Five cells."""

    cells = 5


@dataclasses.dataclass(frozen=True)
class FiveCells(WalkableGame):
    """Player 0 needs cells 0-1-2, 2-3 or 1-3-4; player 1 needs 0-3, 1-2-4 or 0-2-4."""

    rules: FiveRules = FiveRules()
    name = "five_cells"
    version = "1"
    columns = 5
    observation_size = 25
    winning = ((0b00111, 0b01100, 0b11010), (0b01001, 0b10110, 0b10101))

    def encode(self, view: PhantomView) -> Array:
        """Returns the tries alone."""
        return self.tries_in_order(view)


@dataclasses.dataclass(frozen=True)
class LoneCells(FiveCells):
    """Player 0 also wins with cell 0 alone, player 1 with cell 4 alone."""

    name = "lone_cells"
    winning = ((0b00001, 0b01100, 0b11010), (0b01001, 0b10000, 0b00110))
