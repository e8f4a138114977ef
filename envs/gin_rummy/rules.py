"""The rules that differ between gin rummy games, as one record, and its presets."""

from __future__ import annotations

import dataclasses

from envs.cards import NUM_RANKS, NUM_SUITS
from envs.errors import InputError

_MOST_CARDS_IN_HAND = 10
"""The meld kernel is exact up to eleven cards: a hand and the card drawn."""


@dataclasses.dataclass(frozen=True)
class GinRules:
    """Rules of one gin rummy game; the defaults are the common ones.

    Attributes:
      num_ranks, num_suits: the deck, ranks from the ace up.
      hand_size: cards dealt to each player.
      knock_limit: the most deadwood a knocker may keep.
      gin_bonus, undercut_bonus: points.
      undercut_on_tie: whether equal deadwood is an undercut (else it scores nothing).
      first_offer: whether the upcard is offered to player 0, then player 1, before the first draw.
      stock_floor: a plain discard that leaves this many cards or fewer in the stock ends the hand as a draw.
      max_actions: the hand is a draw after this many actions, passes included.
    """

    num_ranks: int = NUM_RANKS
    num_suits: int = NUM_SUITS
    hand_size: int = 10
    knock_limit: int = 10
    gin_bonus: int = 25
    undercut_bonus: int = 25
    undercut_on_tie: bool = True
    first_offer: bool = True
    stock_floor: int = 2
    max_actions: int = 80

    @property
    def num_cards(self) -> int:
        """Cards in the deck."""
        return self.num_ranks * self.num_suits

    @property
    def dealt(self) -> int:
        """Cards that have left the stock when play begins: two hands and the upcard."""
        return 2 * self.hand_size + 1

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
          InputError: a rule out of range.
        """
        bounds = {
            "num_ranks": (3, NUM_RANKS),
            "num_suits": (1, NUM_SUITS),
            "hand_size": (2, _MOST_CARDS_IN_HAND),
            "knock_limit": (0, 98),
            "gin_bonus": (0, 1000),
            "undercut_bonus": (0, 1000),
            "max_actions": (2, 250),
        }
        for name, (low, high) in bounds.items():
            if not low <= getattr(self, name) <= high:
                raise InputError(f"rule {name}={getattr(self, name)} is out of range; it must be in [{low}, {high}]")
        spare = self.num_cards - self.dealt - 1
        if spare < 0:
            raise InputError(
                f"rules num_ranks={self.num_ranks}, num_suits={self.num_suits}, hand_size={self.hand_size} do not fit: "
                f"{self.num_cards} cards, of which a deal and one stock card take {self.dealt + 1}"
            )
        if not 0 <= self.stock_floor <= spare:
            raise InputError(f"rule stock_floor={self.stock_floor} is out of range; it must be in [0, {spare}]")


PRESETS = {"dream": GinRules(gin_bonus=50, undercut_bonus=50)}
"""Named rule sets; a game names the one it starts from."""
