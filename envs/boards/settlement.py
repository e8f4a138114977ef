"""A hand of gin rummy grouped for the eye, and a knock settled move by move (host side, small hands).

The games compute only what a knock is worth. Here the same is spelled out: which melds both lay, which cards the
defender lays off and where, and the sum.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from envs import cards
from envs.cards import NUM_SUITS, VALUES
from envs.gin_rummy.core.rules import GinRules

Meld = tuple[int, ...]


def named(ids: Iterable[int], ranks: int) -> list[str]:
    """Returns cards by name."""
    return [cards.card_name(int(card), ranks) for card in ids]


def grouped(hand: Sequence[int], ranks: int) -> dict[str, Any]:
    """Returns a hand's melds and what is not in them, in points; with a card drawn that card counts too."""
    melds, left = arranged(tuple(sorted(hand)), ranks)
    return {"melds": [named(meld, ranks) for meld in melds], "unmatched": points(left, ranks)}


def points(ids: Iterable[int], ranks: int) -> int:
    """Returns the points of cards."""
    return int(sum(VALUES[card % ranks] for card in ids))


def deadwood(hand: Sequence[int], ranks: int) -> int:
    """Returns the points outside the best melds."""
    return points(arranged(tuple(sorted(hand)), ranks)[1], ranks)


def possible_melds(hand: Sequence[int], ranks: int) -> list[Meld]:
    """Lists the melds in a hand in the order of their ids: sets by rank, then runs by length, suit and low card."""
    held, found = set(hand), []
    for rank in range(ranks):
        same = [ranks * suit + rank for suit in range(NUM_SUITS) if ranks * suit + rank in held]
        if len(same) >= 3:
            triples = [tuple(c for c in same if c != out) for out in same] if len(same) == 4 else []
            found += [*triples, tuple(same)]
    for length in range(3, 6):
        for suit, low in itertools.product(range(NUM_SUITS), range(ranks - length + 1)):
            run = tuple(ranks * suit + low + step for step in range(length))
            if held.issuperset(run):
                found.append(run)
    return found


def _choices(hand: tuple[int, ...], ranks: int) -> list[tuple[Meld, ...]]:
    """Lists every choice of disjoint melds of a hand, in ascending order of their ids."""
    melds = possible_melds(hand, ranks)
    found: list[tuple[Meld, ...]] = [()]
    for meld in melds:
        found += [(*chosen, meld) for chosen in found if not any(set(meld) & set(other) for other in chosen)]
    return found


@functools.lru_cache(maxsize=1 << 15)
def arranged(hand: tuple[int, ...], ranks: int) -> tuple[tuple[Meld, ...], tuple[int, ...]]:
    """Returns the melds a hand lays and the cards left: least deadwood; ties: most cards in sets, then lowest ids."""
    ids = {meld: n for n, meld in enumerate(possible_melds(hand, ranks))}

    def order(chosen: tuple[Meld, ...]) -> tuple[int, int, list[int]]:
        in_sets = sum(len(meld) for meld in chosen if _is_set(meld, ranks))
        return -sum(points(meld, ranks) for meld in chosen), -in_sets, [ids[meld] for meld in chosen]

    best = min(_choices(hand, ranks), key=order)
    laid = set(itertools.chain(*best))
    return best, tuple(card for card in hand if card not in laid)


def _is_set(meld: Meld, ranks: int) -> bool:
    return meld[0] % ranks == meld[1] % ranks


def laid_off(left: Sequence[int], melds: Sequence[Meld], ranks: int) -> list[tuple[int, int]]:
    """Returns the cards that can be laid off on melds: (card, the meld's place), runs first, in the order laid.

    A card that fits a run goes there: it may open the way for the next, and a set takes it in no case better.
    """
    rest, piles, found = set(left), [list(meld) for meld in melds], []
    runs_first = sorted(range(len(melds)), key=lambda n: _is_set(melds[n], ranks))
    while True:
        fits = [(card, n) for n in runs_first for card in sorted(rest) if _fits(card, piles[n], ranks)]
        if not fits:
            return found
        step = fits[0]
        rest.discard(step[0])
        piles[step[1]] = sorted([*piles[step[1]], step[0]])
        found.append(step)


def _fits(card: int, pile: list[int], ranks: int) -> bool:
    if _is_set(tuple(pile), ranks):
        return card % ranks == pile[0] % ranks
    low, high = pile[0] - 1, pile[-1] + 1
    return (card == low and pile[0] % ranks > 0) or (card == high and high % ranks > 0)


def answer(rules: GinRules, knocker: tuple[Meld, ...], hand: tuple[int, ...]) -> tuple[tuple[Meld, ...], list, list]:
    """Returns a defender's melds, layoffs and the cards left: the least points, as the rules let it choose."""
    ranks = rules.num_ranks
    choices = _choices(hand, ranks)
    if rules.layoff != "exact":
        least = min(points(set(hand) - set(itertools.chain(*chosen)), ranks) for chosen in choices)
        choices = [c for c in choices if points(set(hand) - set(itertools.chain(*c)), ranks) == least]
    best = None
    for chosen in choices:
        left = [card for card in hand if card not in set(itertools.chain(*chosen))]
        off = laid_off(left, knocker, ranks)
        kept = [card for card in left if card not in {card for card, _ in off}]
        score = points(kept, ranks), len(off)
        if best is None or score < best[0]:
            best = score, chosen, off, kept
    return best[1:]


def of_round(rules: GinRules, hands: Sequence[Sequence[int]], knocker: int, discard: int) -> dict[str, Any]:
    """Spells out how a finished round is scored.

    Args:
      rules: of the game.
      hands: the card ids of both, the knocker's after its discard.
      knocker: seat, -1 where nobody knocked.
      discard: the card the knocker discarded; with it melded too, gin is big gin where that is played.
    Returns:
      `ending`, and where somebody knocked `knocker`, `winner`, `laid` (melds and cards left by seat), `layoffs` (card
      and the place of the knocker's meld), `terms` (kind and points, which sum to `total`).
    """
    if knocker < 0:
        return {"ending": "tie"}
    ranks, other = rules.num_ranks, 1 - knocker
    melds, left = arranged(tuple(sorted(hands[knocker])), ranks)
    own = points(left, ranks)
    defender = tuple(sorted(hands[other]))
    if own == 0:
        theirs, rest = arranged(defender, ranks)
        off: list[tuple[int, int]] = []
    else:
        theirs, off, rest = answer(rules, melds, defender)
    against = points(rest, ranks)
    laid = {knocker: (melds, left), other: (theirs, rest)}
    is_big = bool(rules.big_gin_bonus) and deadwood([*hands[knocker], discard], ranks) == 0
    return {
        "knocker": knocker,
        "laid": [{"melds": [named(m, ranks) for m in laid[s][0]], "left": named(laid[s][1], ranks),
                  "points": points(laid[s][1], ranks)} for s in range(2)],
        "layoffs": [{"card": cards.card_name(card, ranks), "meld": n} for card, n in off],
        **_sum(rules, own, against, knocker, is_big),
    }  # fmt: skip


def _sum(rules: GinRules, own: int, against: int, knocker: int, is_big: bool) -> dict[str, Any]:
    """Returns how a round ended, who won it and the sum that says how much."""
    if own == 0:
        bonus = ("big_gin_bonus", rules.big_gin_bonus) if is_big else ("gin_bonus", rules.gin_bonus)
        terms = [("deadwood", against), bonus]
        return {"ending": "gin", "winner": knocker, **sum_of(terms)}
    margin = against - own
    if margin > 0:
        return {"ending": "knock", "winner": knocker, **sum_of([("deadwood", against), ("own_deadwood", -own)])}
    if margin == 0 and not rules.undercut_on_tie:
        return {"ending": "knock", "winner": None, **sum_of([("deadwood", against), ("own_deadwood", -own)])}
    terms = [("deadwood", own), ("own_deadwood", -against), ("undercut_bonus", rules.undercut_bonus)]
    return {"ending": "undercut", "winner": 1 - knocker, **sum_of(terms)}


def sum_of(terms: list[tuple[str, int]]) -> dict[str, Any]:
    """Returns `terms` (kind and points) and their `total`."""
    kept = [{"kind": kind, "points": value} for kind, value in terms]
    return {"terms": kept, "total": sum(value for _, value in terms)}
