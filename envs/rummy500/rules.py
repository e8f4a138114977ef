"""The rules of rummy 500 that a table may set, and its points.

Source: the scope document's sections 2.1 to 2.7; where it contradicts itself or is silent, the option's default is what
its worked example plays.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from envs import cards
from envs.errors import InputError, unknown

REWARDS = ("zero_sum", "points")
ACES = ("both", "high", "low")
LOW_ACE, HIGH_ACE = 1, 15
HAND_VALUES = np.tile(np.where(np.arange(cards.NUM_RANKS) == 0, HIGH_ACE, cards.VALUES), cards.NUM_SUITS)
"""int[52]: points of a card left in hand, and of one laid but for a low ace."""


@dataclasses.dataclass(frozen=True)
class RummyRules:
    """Rules of rummy 500.

    Attributes:
      num_players: 2 to 6.
      hand_size: cards dealt to each player.
      random_first: whether the first player is chosen at random; else it is player 0, as always with `from_deck`.
      ace_in_runs: "both" A-2-3 and Q-K-A, never K-A-2; or only "high", or only "low".
      take_needs_hand_card: whether the cards first laid of a new meld always hold one that was in hand before cards
        were taken from the pile, of a longer run the first three; else they must only where the discard that follows
        empties the hand.
      reshuffle: whether an empty stock is refilled with the shuffled pile, except its newest card; else, and if the
        pile has no other card, drawing from the empty stock ends the round.
      max_turns: the round ends after this many discards.
      rewards: "zero_sum", the player's score minus the mean of the others'; or "points", the player's score; / 100.
    """

    num_players: int = 3
    hand_size: int = 7
    random_first: bool = True
    ace_in_runs: str = "both"
    take_needs_hand_card: bool = False
    reshuffle: bool = False
    max_turns: int = 200
    rewards: str = "zero_sum"

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
          InputError: a rule out of range.
        """
        for name, low, high in (("num_players", 2, 6), ("hand_size", 3, 13), ("max_turns", 1, 200)):
            value = getattr(self, name)
            if not low <= value <= high:
                raise InputError(f"rule {name}={value} is not valid; it must be {low} to {high}")
        if self.dealt > cards.NUM_CARDS:
            raise InputError(
                f"num_players={self.num_players} with hand_size={self.hand_size} needs {self.dealt} cards; there are 52"
            )
        if self.rewards not in REWARDS:
            raise unknown("rewards", self.rewards, REWARDS)
        if self.ace_in_runs not in ACES:
            raise unknown("ace_in_runs", self.ace_in_runs, ACES)

    @property
    def dealt(self) -> int:
        """Cards that have left the stock when play begins: the hands and the upcard."""
        return self.num_players * self.hand_size + 1

    @property
    def ace_slots(self) -> tuple[bool, bool]:
        """Whether an ace may stand below the two, and above the king."""
        return self.ace_in_runs != "high", self.ace_in_runs != "low"

    def draw_ends(self, stock: int, pile: int) -> bool:
        """Returns whether drawing from the stock ends the round, with so many cards in it and in the pile."""
        return stock == 0 and not (self.reshuffle and pile > 1)
