"""Melds, deadwood and layoffs of gin rummy by trying everything, in plain Python: the oracle of `envs.gin_rummy`.

Written from the rules alone; shares no code and no idea with the JAX kernel. A hand is an int whose bit
`num_ranks * suit + rank` is set for each card held.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Iterator

import numpy as np

Arrangement = tuple[int, ...]
"""Melds laid side by side, as card masks."""


def mask_of(cards: Iterable[int]) -> int:
    """Returns the bits of the given card ids."""
    return sum(1 << int(card) for card in cards)


def cards_of(mask: int) -> list[int]:
    """Lists the card ids of a mask, ascending."""
    return [card for card in range(52) if mask >> card & 1]


@dataclasses.dataclass(frozen=True)
class Deck:
    """A deck's melds and card values.

    Attributes:
      num_ranks, num_suits: ranks from the ace up; suits S, H, D, C.
    """

    num_ranks: int = 13
    num_suits: int = 4

    def card(self, rank: int, suit: int) -> int:
        """Returns a card's id."""
        return self.num_ranks * suit + rank

    @functools.cached_property
    def values(self) -> list[int]:
        """Points of each card."""
        return [min(card % self.num_ranks + 1, 10) for card in range(self.num_ranks * self.num_suits)]

    @functools.cached_property
    def sets(self) -> list[int]:
        """Sets in the order of their ids: by rank, without S, H, D, C in turn, then all four."""
        found = []
        for rank in range(self.num_ranks):
            whole = [self.card(rank, suit) for suit in range(self.num_suits)]
            if self.num_suits == 4:
                found += [mask_of(c for c in whole if c != missing) for missing in whole]
            if self.num_suits >= 3:
                found.append(mask_of(whole))
        return found

    def runs(self, lengths: Iterable[int]) -> list[int]:
        """Runs in the order of their ids: by length, suit and lowest card."""
        return [
            mask_of(self.card(low + i, suit) for i in range(length))
            for length in lengths
            for suit in range(self.num_suits)
            for low in range(self.num_ranks - length + 1)
        ]

    @functools.cached_property
    def layable(self) -> list[int]:
        """The melds a knocker lays, by id: sets, then runs of three, four and five."""
        return self.sets + self.runs((3, 4, 5))

    @functools.cached_property
    def all_melds(self) -> list[int]:
        """Every meld there is, runs of any length included."""
        return self.sets + self.runs(range(3, self.num_ranks + 1))

    @functools.cached_property
    def _points(self) -> dict[int, int]:
        return {meld: sum(self.values[card] for card in cards_of(meld)) for meld in self.all_melds}

    def points(self, mask: int) -> int:
        """Returns the points of the cards in a mask."""
        return self._points.get(mask) or sum(self.values[card] for card in cards_of(mask))

    def unions(self, hand: int) -> dict[int, int]:
        """Maps the cards covered by each collection of disjoint melds of a hand to their points."""
        return self.unions_of([meld for meld in self.all_melds if meld & hand == meld])

    def unions_of(self, melds: list[int]) -> dict[int, int]:
        """Maps the cards covered by each disjoint collection of the given melds to their points."""
        found = {0: 0}
        for meld in melds:
            found |= {used | meld: points + self._points[meld] for used, points in found.items() if not used & meld}
        return found

    def deadwood(self, hand: int) -> int:
        """Returns the least points left outside melds."""
        return self.points(hand) - max(self.unions(hand).values())

    def after_discard(self, hand: int) -> dict[int, int]:
        """Maps each card of a hand to the deadwood its discard leaves."""
        return self.after_of(hand, self.unions(hand))

    def after_of(self, hand: int, unions: dict[int, int]) -> dict[int, int]:
        """Returns `after_discard` of a hand whose `unions` are given."""
        total, held = self.points(hand), cards_of(hand)
        return {
            card: total - self.values[card] - max(p for used, p in unions.items() if not used >> card & 1)
            for card in held
        }

    def arrangements(self, hand: int) -> Iterator[Arrangement]:
        """Yields every collection of disjoint layable melds of a hand, each in ascending id."""
        melds = [meld for meld in self.layable if meld & hand == meld]
        stack: list[tuple[Arrangement, int, int]] = [((), 0, 0)]
        while stack:
            laid, used, start = stack.pop()
            yield laid
            stack += [((*laid, m), used | m, i + 1) for i, m in enumerate(melds[start:], start) if not m & used]

    def laid(self, hand: int) -> Arrangement:
        """Returns what a knocker lays: least deadwood, then most cards in sets, then the first list of ids."""
        ids, sets = self._ids, set(self.sets)

        def order(melds: Arrangement) -> tuple[int, int, list[int]]:
            in_sets = sum(meld.bit_count() for meld in melds if meld in sets)
            return -sum(map(self.points, melds)), -in_sets, [ids[meld] for meld in melds]

        return min(self.arrangements(hand), key=order)

    @functools.cached_property
    def _ids(self) -> dict[int, int]:
        return {meld: n for n, meld in enumerate(self.layable)}

    def fits(self, card: int, meld: int) -> bool:
        """Returns whether a card may be laid off on a meld."""
        bigger = meld | 1 << card
        return bigger != meld and bigger in self._points

    def least_after_layoffs(self, melds: Arrangement, cards: int) -> int:
        """Returns the least points left of loose cards over every order of laying them off on the melds."""
        seen, stack, least = set(), [(melds, cards)], self.points(cards)
        while stack:
            laid, left = stack.pop()
            if (laid, left) in seen:
                continue
            seen.add((laid, left))
            least = min(least, self.points(left))
            for card in cards_of(left):
                for i, meld in enumerate(laid):
                    if self.fits(card, meld):
                        stack.append(((*laid[:i], meld | 1 << card, *laid[i + 1 :]), left & ~(1 << card)))
        return least

    def defence(self, knocker: int, defender: int) -> int:
        """Returns the defender's least deadwood over all own melds and all layoffs on what the knocker lays."""
        laid = self.laid(knocker)
        return min(self.least_after_layoffs(laid, defender & ~used) for used in self.unions(defender))


FULL = Deck()
"""The deck of 52."""


def _held_melds(hands: np.ndarray) -> Iterator[list[int]]:
    """Yields the melds each hand, bool[N, 52], contains: the containment test is one NumPy comparison."""
    masks = hands.astype(np.uint64) @ (np.uint64(1) << np.arange(52, dtype=np.uint64))
    melds = np.array(FULL.all_melds, np.uint64)
    for block in np.array_split(masks, max(1, len(masks) // 4096)):
        lane, which = np.nonzero((block[:, None] & melds) == melds)
        ends = np.searchsorted(lane, np.arange(len(block) + 1))
        for start, end in itertools.pairwise(ends):
            yield [FULL.all_melds[n] for n in which[start:end]]


def many_deadwoods(hands: np.ndarray) -> np.ndarray:
    """Returns the deadwood of each hand: int[N], from bool[N, 52]."""
    best = [max(FULL.unions_of(melds).values()) if melds else 0 for melds in _held_melds(hands)]
    return hands @ np.array(FULL.values) - np.array(best)


def many_after_discards(hands: np.ndarray, not_held: int) -> np.ndarray:
    """Returns the deadwood each discard leaves: int[N, 52], `not_held` where the card is not in bool[N, 52]."""
    out = np.full(hands.shape, not_held)
    for row, hand, melds in zip(out, hands, _held_melds(hands), strict=True):
        after = FULL.after_of(mask_of(np.flatnonzero(hand)), FULL.unions_of(melds))
        row[list(after)] = list(after.values())
    return out
