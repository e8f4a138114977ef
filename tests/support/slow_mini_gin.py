"""The game `mini_gin_rummy` in plain Python, branching at every draw: the oracle of `envs.gin_rummy.mini.game`."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence

import numpy as np
import slow_gin
import slow_melds
from slow_gin import DISCARD, FIRST_CARD, OVER, STOCK


@dataclasses.dataclass(frozen=True)
class Rules(slow_gin.Rules):
    """The rules a game may vary; the defaults are those of the preset 4x2."""

    num_ranks: int = 4
    num_suits: int = 2
    hand_size: int = 3
    knock_limit: int = 5
    gin_bonus: int = 25
    undercut_bonus: int = 25
    undercut_on_tie: bool = False
    stock_floor: int = 0
    max_turns: int = 2
    one_knock: bool = True
    max_actions: int = 6


PRESETS = {
    "4x2": Rules(),
    "3x3": Rules(num_ranks=3, num_suits=3),
    "5x2": Rules(num_ranks=5, hand_size=4, knock_limit=3),
    "3x4": Rules(num_ranks=3, num_suits=4, hand_size=4, knock_limit=3),
}


class Hand(slow_gin.Hand):
    """One hand in play, as slow_gin.Hand; the order of the stock means nothing to `branches`."""

    rules: Rules

    def __init__(self, deck: Sequence[int], rules: Rules) -> None:
        """Deals a deck."""
        super().__init__(deck, rules)
        self.turns = 0

    def legal(self) -> np.ndarray:
        """Returns bool[actions]."""
        mask, n = super().legal(), self.rules.num_cards
        if not self.rules.one_knock:
            return mask
        can_knock = self.phase == DISCARD and min(self.all_discards().values()) <= self.rules.knock_limit
        return np.append(mask[: FIRST_CARD + n], can_knock)

    def all_discards(self) -> dict[int, int]:
        """Maps every card in hand, also one taken in this turn, to the deadwood it leaves."""
        return self.deck.after_discard(slow_melds.mask_of(self.hands[self.to_act]))

    def branches(self, action: int) -> dict[int | None, Hand]:
        """Returns what a legal action leads to, by the card drawn from the stock."""
        if action != STOCK:
            return {None: self._after(action)}
        found = {}
        for card in self.stock:
            before = self._copy()
            before.stock.remove(card)
            before.stock.insert(0, card)
            found[card] = before._after(action)
        return found

    def _after(self, action: int) -> Hand:
        new, first_knock = self._copy(), FIRST_CARD + self.rules.num_cards
        if self.rules.one_knock and action == first_knock:
            left = self.all_discards()
            action = first_knock + min(left, key=lambda card: (left[card], card))
        new.play(action)
        return new

    def _copy(self) -> Hand:
        new = copy.copy(self)
        new.hands = [set(hand) for hand in self.hands]
        new.taken_cards = [set(cards) for cards in self.taken_cards]
        new.pile, new.stock, new.events = list(self.pile), list(self.stock), list(self.events)
        return new

    def _discard(self, player: int, card: int, *, knocks: bool) -> None:
        super()._discard(player, card, knocks=knocks)
        self.turns += 1
        if self.phase != OVER and self.turns == self.rules.max_turns:
            self._end("turns")

    def _scalars(self, player: int) -> list[float]:
        scalars = super()._scalars(player)
        if self.rules.one_knock and self.to_act == player and self.phase == DISCARD:
            least = min(self.all_discards().values())
            scalars[-2:] = [float(least <= self.rules.knock_limit), float(least == 0)]
        return scalars

    def knowledge(self, player: int) -> tuple:
        """Returns all that a player has seen: its seat and cards, and each event, the other's draws without card."""
        events = tuple(
            (actor, kind, card if kind != slow_gin.EVENT_STOCK or actor == player else None)
            for actor, kind, card in self.events
        )
        return player, tuple(sorted(self.hands[player])), events, self.to_act
