"""Exact search over one island (with jokers: over the whole hand): all combos, and the best.

Both take the lowest card kind left and decide, for every copy, whether a meld or the dump takes it. All lower kinds are
gone by then, so each meld is found exactly once, at its lowest card.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator

from envs.errors import unknown
from envs.hand_evaluator.combo import (
    JOKER,
    MAX_JOKERS,
    RANKS,
    SUITS,
    Combo,
    Meld,
    Options,
    card_of,
    lowest,
    make_combo,
    unpack,
)

LEVELS = ("any", "no_meld_left", "maximal", "merged")
"""L0 any division; L1 whose dump holds no meld; L2 and no dump card extends a meld; L3 and no two runs make one."""
_SHORT = 5
"""Any longer run is runs of three to five."""
_LOW_COLUMN = (1 << 2 * SUITS) - 1
_ONCE = _LOW_COLUMN // 3
"""The lower bit of each suit in a column."""


def check_level(level: str) -> int:
    """Returns the number of a level.

    Raises:
      InputError: no such level.
    """
    if level not in LEVELS:
        raise unknown("level", level, LEVELS)
    return LEVELS.index(level)


def melds_at_lowest(code: int, jokers: int, options: Options, longest: int = RANKS) -> list[Meld]:
    """Lists the melds that hold the lowest card of a hand.

    Args:
      code: packed hand, > 0.
      jokers: jokers at hand.
      options: whether the ace may follow the king.
      longest: cards of the longest run listed.
    """
    kind = lowest(code)
    if jokers:
        return _wild_runs(code, kind, jokers, options) + _sets(code, kind, jokers)
    return _runs(code, kind, options, longest) + _sets(code, kind, 0)


def _runs(code: int, kind: int, options: Options, longest: int) -> list[Meld]:
    found = []
    mask, ids, above = 0, [], kind
    while above < SUITS * RANKS and code >> 2 * above & 3 and len(ids) < longest:
        mask, ids, above = mask | 1 << 2 * above, [*ids, card_of(above)], above + SUITS
        if len(ids) >= 3:
            found.append(Meld(mask, 0, tuple(ids), True))
    if kind < SUITS and options.ace_high:
        mask, ids, below = 1 << 2 * kind, [card_of(kind)], kind + SUITS * (RANKS - 1)
        while below >= SUITS and code >> 2 * below & 3 and len(ids) < longest:
            mask, ids, below = mask | 1 << 2 * below, [card_of(below), *ids], below - SUITS
            if len(ids) >= 3:
                found.append(Meld(mask, 0, tuple(ids), True))
    return found


def _sets(code: int, kind: int, jokers: int) -> list[Meld]:
    column = code >> 2 * (kind - kind % SUITS) & _LOW_COLUMN
    return _sets_at(kind, (column | column >> 1) & _ONCE, jokers)


@functools.cache
def _sets_at(kind: int, column: int, jokers: int) -> list[Meld]:
    """Lists the sets of a kind and later suits of its rank; bit 2 * suit of `column` says whether one is held."""
    suits = [suit for suit in range(kind % SUITS + 1, SUITS) if column >> 2 * suit & 1]
    found = []
    for more in range(len(suits) + 1):
        for others in itertools.combinations(suits, more):
            kinds = [kind, *(kind - kind % SUITS + suit for suit in others)]
            mask, ids = sum(1 << 2 * k for k in kinds), tuple(map(card_of, kinds))
            for wild in range(max(0, 2 - more), min(jokers, 3 - more) + 1):
                found.append(Meld(mask, wild, ids + (JOKER,) * wild, False))
    return found


def _wild_runs(code: int, kind: int, jokers: int, options: Options) -> list[Meld]:
    """Lists the runs through the lowest card in which jokers may stand anywhere, for cards held as well."""
    rank, suit = divmod(kind, SUITS)
    top = RANKS if options.ace_high else RANKS - 1
    homes = [0, RANKS] if rank == 0 and options.ace_high else [rank]
    found = []
    for home in homes:
        for low in range(max(0, home - RANKS + 1), home + 1):
            for high in range(max(home, low + 2), min(top, low + RANKS - 1) + 1):
                places = {place: SUITS * (place % RANKS) + suit for place in range(low, high + 1)}
                held = [place for place, k in places.items() if place != home and code >> 2 * k & 3]
                missing = high - low - len(held)
                for spared in range(jokers - missing + 1):
                    for gaps in itertools.combinations(held, spared):
                        natural = {home, *held} - set(gaps)
                        ids = tuple(card_of(k) if place in natural else JOKER for place, k in places.items())
                        mask = sum(1 << 2 * places[place] for place in natural)
                        found.append(Meld(mask, missing + spared, ids, True))
    return found


def all_combos(code: int, jokers: int, options: Options, level: int) -> Iterator[Combo]:
    """Yields the combos of a level, each once, in an order that depends on the hand alone.

    Args:
      code, jokers: the hand.
      options: of the table.
      level: index in LEVELS.
    """
    for melds, dump, left in _divide(code, jokers, options, level, 0, None):
        if fits(melds, dump, left, options, level):
            yield make_combo(melds, unpack(dump, left), options)


def _divide(
    code: int, jokers: int, options: Options, level: int, dump: int, last: Meld | None
) -> Iterator[tuple[list[Meld], int, int]]:
    """Yields (melds, packed dump, jokers left); of two melds at one card the second is not before `last`."""
    if not code:
        yield [], dump, jokers
        return
    kind = lowest(code)
    for meld in melds_at_lowest(code, jokers, options):
        if last is None or lowest(last.mask) != kind or meld >= last:
            for melds, rest, left in _divide(code - meld.mask, jokers - meld.jokers, options, level, dump, meld):
                yield [meld, *melds], rest, left
    copies = code & 3 << 2 * kind
    dump |= copies
    if level == 0 or not _closes_meld(dump, kind):
        yield from _divide(code - copies, jokers, options, level, dump, None)


def _closes_meld(dump: int, kind: int) -> bool:
    """Returns whether the dump holds a meld of three whose highest card is `kind`."""
    if kind >= 2 * SUITS and all(dump >> 2 * (kind - step * SUITS) & 3 for step in range(3)):
        return True
    column = dump >> 2 * (kind - kind % SUITS) & _LOW_COLUMN
    return sum(1 for suit in range(kind % SUITS + 1) if column >> 2 * suit & 3) >= 3


def fits(melds: list[Meld], dump: int, jokers: int, options: Options, level: int) -> bool:
    """Returns whether a division is of a level: its dump and the jokers left hold no meld, extend none, and so on."""
    if level >= 1 and _holds_meld(dump, jokers, options):
        return False
    spans = [_span(meld) for meld in melds if meld.is_run] if level >= 2 else []
    if level >= 2 and (
        any(_run_extends(span, dump, jokers, options) for span in spans)
        or any(_set_extends(meld, dump, jokers) for meld in melds if not meld.is_run)
    ):
        return False
    return level < 3 or not any(
        a[0] == b[0] and a[2] + 1 == b[1] and b[2] - a[1] < RANKS for a, b in itertools.permutations(spans, 2)
    )


def _holds_meld(code: int, jokers: int, options: Options) -> bool:
    while code:
        if melds_at_lowest(code, jokers, options, longest=3):
            return True
        code -= code & 3 << 2 * lowest(code)
    return False


def _span(run: Meld) -> tuple[int, int, int]:
    """Returns a run's suit and its first and last place, 0 to 13, the ace after the king at 13."""
    index, card = next((i, card) for i, card in enumerate(run.cards) if card != JOKER)
    suit, rank = divmod(card, RANKS)
    place = RANKS if rank == 0 and index else rank
    return suit, place - index, place - index + len(run.cards) - 1


def _run_extends(span: tuple[int, int, int], dump: int, jokers: int, options: Options) -> bool:
    suit, low, high = span
    if high - low + 1 == RANKS:
        return False
    top = RANKS if options.ace_high else RANKS - 1
    ends = [place for place in (low - 1, high + 1) if 0 <= place <= top]
    return any(jokers or dump >> 2 * (SUITS * (place % RANKS) + suit) & 3 for place in ends)


def _set_extends(meld: Meld, dump: int, jokers: int) -> bool:
    if len(meld.cards) == SUITS:
        return False
    first = SUITS * (meld.cards[0] % RANKS)
    suits = {card // RANKS for card in meld.cards if card != JOKER}
    return bool(jokers) or any(dump >> 2 * (first + suit) & 3 for suit in range(SUITS) if suit not in suits)


Memo = dict[tuple[int, int], tuple[int, Meld | None]]
"""What the search for the best combo has found, by packed hand and jokers: the worth of the melds, and the first."""
_SOLVED: Memo = {(0, jokers): (0, None) for jokers in range(MAX_JOKERS + 1)}


@functools.lru_cache(maxsize=16)
def _worth(values: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(256 * value + 1 for value in values)


class _Best:
    """The search for the best combo: f(hand) by its lowest card, remembered by what is left of the hand.

    A hand's worth is 256 * points + cards melded, at most; a run of six or more is runs of three to five, except where
    a part would be jokers alone.
    """

    def __init__(self, options: Options, memo: Memo) -> None:
        self.options = options
        self.memo = memo
        self.worth = _worth(options.values)
        self.joker_worth = 256 * options.joker_value + 1

    def total(self, code: int, jokers: int) -> int:
        """Returns the worth of a whole hand."""
        return jokers * self.joker_worth + sum(self.worth[card % RANKS] for card in unpack(code))

    def solve(self, code: int, jokers: int, total: int) -> int:
        """Returns the most that melds can be worth, in a hand of worth `total`."""
        known = self.memo.get((code, jokers))
        if known:
            return known[0]
        best, choice = 0, None
        for meld in melds_at_lowest(code, jokers, self.options, _SHORT):
            gain = meld.jokers * self.joker_worth
            for card in meld.cards:
                if card != JOKER:
                    gain += self.worth[card % RANKS]
            gain += self.solve(code - meld.mask, jokers - meld.jokers, total - gain)
            if gain > best:
                best, choice = gain, meld
                if best == total:
                    break
        kind = lowest(code)
        copies = code >> 2 * kind & 3
        left = total - copies * self.worth[kind // SUITS]
        if left > best:
            rest = self.solve(code - (copies << 2 * kind), jokers, left)
            if rest > best:
                best, choice = rest, None
        self.memo[code, jokers] = best, choice
        return best

    def melds(self, code: int, jokers: int) -> tuple[list[Meld], int, int]:
        """Returns the melds of the best division, its packed dump and jokers left."""
        found, dump = [], 0
        while code:
            if (code, jokers) not in self.memo:
                self.solve(code, jokers, self.total(code, jokers))
            meld = self.memo[code, jokers][1]
            if meld is None:
                copies = code & 3 << 2 * lowest(code)
                code, dump = code - copies, dump | copies
            else:
                found.append(meld)
                code, jokers = code - meld.mask, jokers - meld.jokers
        return found, dump, jokers


def new_memo() -> Memo:
    """Returns the memo of a hand that shares no cards with another; for hands of the same options."""
    return _SOLVED.copy()


def best_combo(code: int, jokers: int, options: Options, memo: Memo) -> Combo:
    """Returns the combo of least dump points, then fewest dump cards; runs that follow each other are one.

    Args:
      code, jokers: the hand.
      options: of the table.
      memo: of hands of the same options; grows.
    """
    if not _holds_meld(code, jokers, options):
        return make_combo([], unpack(code, jokers), options)
    search = _Best(options, memo)
    melds, dump, left = search.melds(code, jokers)
    return make_combo(_merged(melds), unpack(dump, left), options)


def _merged(melds: list[Meld]) -> list[Meld]:
    """Joins runs end to end while a pair makes one run."""
    done = [meld for meld in melds if not meld.is_run]
    runs = sorted((meld for meld in melds if meld.is_run), key=_span)
    while runs:
        run = runs.pop(0)
        suit, low, high = _span(run)
        for other in runs:
            theirs = _span(other)
            if theirs[:2] == (suit, high + 1) and theirs[2] - low < RANKS:
                runs.remove(other)
                both = Meld(run.mask + other.mask, run.jokers + other.jokers, run.cards + other.cards, True)
                runs.insert(0, both)
                break
        else:
            done.append(run)
    return done


_ONE_EACH = sum(1 << 2 * kind for kind in range(SUITS * RANKS))
"""The lower bit of every kind."""
_FIRSTS = sum(1 << 2 * SUITS * rank for rank in range(RANKS))
"""The lower bit of the first kind of every column."""


def islands_of(code: int, ace_high: bool) -> list[int]:
    """Splits a hand into islands, packed, by lowest card."""
    held = (code | code >> 1) & _ONE_EACH
    wrap = 2 * SUITS * (RANKS - 1)
    found = []
    while held:
        island, before = held & -held, 0
        while island != before:
            before = island
            # The multiplication fills a column of which any kind is held; nothing is carried into the next.
            columns = (island | island >> 2 | island >> 4 | island >> 6) & _FIRSTS
            near = columns * _ONCE | island << 2 * SUITS | island >> 2 * SUITS
            if ace_high:
                near |= island << wrap | island >> wrap
            island = (island | near) & held
        found.append(code & 3 * island)
        held ^= island
    return found
