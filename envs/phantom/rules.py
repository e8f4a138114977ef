"""The rules of phantom games."""

from __future__ import annotations

import dataclasses

from envs.errors import InputError
from envs.rules import check_bounds

VERSIONS = ("classical", "abrupt")
_WALKABLE = 6
"""Cells that each player may still choose among, at most, for the tree of all histories to be small."""


@dataclasses.dataclass(frozen=True)
class PhantomRules:
    """What can be set in every phantom game.

    Attributes:
      version: "classical": a player keeps the turn after a failed try; "abrupt": the turn passes after every try.
      opening: cells each player must try first, in order: digits, player 0's, a slash, player 1's; "" for none.
    """

    version: str = "classical"
    opening: str = ""

    cells = 9

    def __post_init__(self) -> None:
        """Checks the rules; raises InputError where one is out of range."""
        if self.version not in VERSIONS:
            raise InputError(f"rule version={self.version!r} is not valid; it must be one of {', '.join(VERSIONS)}")
        parts = self.opening.split("/") if self.opening else ["", ""]
        cells = "".join(map(str, range(self.cells)))
        if len(parts) != 2 or any(set(part) - set(cells) or len(set(part)) < len(part) for part in parts):
            raise InputError(
                f"rule opening={self.opening!r} is not valid; it must be cells of player 0, a slash and cells of "
                f"player 1, digits of {cells[0]} to {cells[-1]} without repetition, such as 04/8"
            )

    @property
    def forced(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The first cells that each player must try."""
        first, second = self.opening.split("/") if self.opening else ("", "")
        return tuple(map(int, first)), tuple(map(int, second))

    @property
    def walkable(self) -> bool:
        """Whether all histories are few enough to be listed."""
        return all(self.cells - len(cells) <= _WALKABLE for cells in self.forced)


@dataclasses.dataclass(frozen=True)
class HexRules(PhantomRules):
    """Dark Hex: as PhantomRules.

    Attributes:
      board_size: rows and columns, 2 or 3.
    """

    board_size: int = 3

    def __post_init__(self) -> None:
        """Checks the rules; raises InputError where one is out of range."""
        check_bounds(self, {"board_size": (2, 3)})
        super().__post_init__()

    @property
    def cells(self) -> int:
        """Cells of the board."""
        return self.board_size**2
