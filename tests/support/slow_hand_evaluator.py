"""Combos of small hands by brute force, straight from the definitions: every way to cut a hand into piles."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

JOKER = 52
LEVELS = ("any", "no_meld_left", "maximal", "merged")
Meld = tuple[str, tuple[int, ...]]
Division = tuple[tuple[Meld, ...], tuple[int, ...]]


def places_of(run: tuple[int, ...]) -> tuple[int, int, int]:
    """Returns (suit, first, last place) of a run, its ace at 0 or 13 by where it stands."""
    for first in range(14):
        suits = {card // 13 for card in run if card != JOKER}
        wanted = [(first + i) % 13 for i in range(len(run))]
        if all(card in (JOKER, 13 * min(suits) + rank) for card, rank in zip(run, wanted, strict=True)):
            return min(suits), first, first + len(run) - 1
    raise AssertionError(run)


def melds_of(pile: tuple[int, ...], ace_high: bool) -> Iterator[Meld]:
    """Yields the melds a pile makes as a whole; with jokers there may be several."""
    natural, jokers, size = [card for card in pile if card != JOKER], pile.count(JOKER), len(pile)
    if size < 3 or not natural or len(set(natural)) < len(natural):
        return
    if size <= 4 and len({card % 13 for card in natural}) == 1:
        yield "set", (*sorted(natural), *[JOKER] * jokers)
    if len({card // 13 for card in natural}) == 1 and size <= 13:
        suit = natural[0] // 13
        for first in range(13 + ace_high + 1 - size):
            row = [13 * suit + (first + i) % 13 for i in range(size)]
            if set(natural) <= set(row):
                yield "run", tuple(card if card in natural else JOKER for card in row)


def divisions(hand: list[int], ace_high: bool) -> set[Division]:
    """Returns every division of a hand, order and copies apart."""
    hand = sorted(hand)
    if not hand or hand[0] == JOKER:
        return {((), tuple(hand))}
    first, rest = hand[0], hand[1:]
    found = {(melds, tuple(sorted((first, *dump)))) for melds, dump in divisions(rest, ace_high)}
    for size in range(2, len(rest) + 1):
        for chosen in set(itertools.combinations(range(len(rest)), size)):
            pile = (first, *(rest[i] for i in chosen))
            for meld in melds_of(pile, ace_high):
                left = [card for i, card in enumerate(rest) if i not in chosen]
                found |= {(tuple(sorted((meld, *melds))), dump) for melds, dump in divisions(left, ace_high)}
    return found


def level_of(division: Division, ace_high: bool) -> int:
    """Returns the highest level a division is of, 0 to 3."""
    melds, dump = division
    piles = (pile for size in (3, 4) for pile in itertools.combinations(dump, size))
    if any(True for pile in piles for _ in melds_of(pile, ace_high)):
        return 0
    if any(_extends(meld, card, ace_high) for meld in melds for card in dump):
        return 1
    spans = [places_of(cards) for kind, cards in melds if kind == "run"]
    joined = any(a[0] == b[0] and a[2] + 1 == b[1] and b[2] - a[1] < 13 for a, b in itertools.permutations(spans, 2))
    return 2 if joined else 3


def _extends(meld: Meld, card: int, ace_high: bool) -> bool:
    kind, cards = meld
    if kind == "set":
        return any(made == "set" for made, _ in melds_of((*cards, card), ace_high))
    longer = [(card, *cards), (*cards, card)]
    return any(("run", row) in list(melds_of(row, ace_high)) for row in longer)
