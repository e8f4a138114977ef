"""The article's procedure: mark control points, choose a place for each, read the melds off rows and columns.

Every cell held gets flags: 1 it is in a run, 2 in a second run, 4 in a set, 8 in a second set. A cell with more flags
than copies is a control point; each choice of as many flags as copies, for all control points at once, gives a combo.
Rows then make their runs from cells flagged 1, in a second pass from those flagged 2; columns make sets likewise.

It is kept as `method="article"`, with what it needs to run at all, and falls short of the exact search in this:
the article tests `bits | 1 == 0`, which is never true, and means `(bits & 1) == 0`; a cell with one copy is never
marked for a second run, so that two runs which share doubled cells are found in one way only, and on its own example
(2H 3H 4H 4H 5H 5H 6H 3C 3C 3D 3D 4D) the best combo, 2H-5H with 4H-6H, is missed; a failed run leaves stubs, equal
combos come many times, and those that are not maximal are not recognised. A filter corrects the last three here.

`method="control_points"` repairs the flags: 2 for every run cell of a row with a doubled cell, 8 for every cell of a
rank with at least six cards, so that the choices cover all merged combos.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from envs.hand_evaluator.combo import JOKER, RANKS, SUITS, Combo, Meld, Options, card_of, make_combo, unpack
from envs.hand_evaluator.search import fits

RUN, SECOND_RUN, SET, SECOND_SET = 1, 2, 4, 8


def flag_map(code: int, repaired: bool = False) -> dict[int, int]:
    """Returns the flags of every kind held: kind -> bits.

    Args:
      code: packed hand.
      repaired: whether second runs and sets are marked on every cell that may belong to one.
    """
    flags = {kind: 0 for kind in range(SUITS * RANKS) if _copies(code, kind)}
    for row in _rows(code):
        doubled = any(_copies(code, kind) == 2 for kind in row)
        for kind in row:
            second = doubled if repaired else _copies(code, kind) == 2
            flags[kind] |= RUN | (SECOND_RUN if second else 0)
    for column in _columns(code):
        full = sum(_copies(code, kind) for kind in column) >= 6
        for kind in column:
            second = full and (repaired or _copies(code, kind) == 2)
            flags[kind] |= SET | (SECOND_SET if second else 0)
    return flags


def knows(hand: Iterable[int], ace_high: bool) -> bool:
    """Returns whether the article's procedures know a hand: no jokers, and the ace low."""
    return not ace_high and JOKER not in set(hand)


def lines(code: int) -> tuple[list[list[int]], list[list[int]]]:
    """Returns a packed hand's horizontal and vertical lines, each the kinds in it."""
    return _rows(code), _columns(code)


def control_points(code: int) -> list[int]:
    """Returns the ids of the cards with more flags than copies, by rank, then suit."""
    return [card_of(kind) for kind, bits in flag_map(code).items() if bits.bit_count() > _copies(code, kind)]


def combos(code: int, jokers: int, options: Options, level: int, *, method: str) -> Iterator[Combo]:
    """Yields the combos the procedure finds that are of a level, each once.

    Args:
      code: packed hand.
      jokers: 0; the procedure knows none.
      options: without the ace after the king.
      level: index in search.LEVELS.
      method: "article" or "control_points".
    """
    flags = flag_map(code, method == "control_points")
    places = [_placements(bits, _copies(code, kind)) for kind, bits in flags.items()]
    seen = set()
    for choice in itertools.product(*places):
        melds = _read_melds(code, dict(zip(flags, choice, strict=True)))
        dump = code - sum(meld.mask for meld in melds)
        if not fits(melds, dump, 0, options, level):
            continue
        combo = make_combo(melds, unpack(dump), options)
        if combo not in seen:
            seen.add(combo)
            yield combo


def _copies(code: int, kind: int) -> int:
    return code >> 2 * kind & 3


def _placements(bits: int, copies: int) -> list[int]:
    """Returns the ways to choose as many flags as there are copies."""
    single = [1 << b for b in range(4) if bits >> b & 1]
    return [sum(chosen) for chosen in itertools.combinations(single, min(copies, len(single)))]


def _stretches(kinds: list[int], code: int) -> list[list[int]]:
    """Splits the cells of a row where none is held."""
    groups = itertools.groupby(kinds, lambda kind: _copies(code, kind) > 0)
    return [list(group) for held, group in groups if held]


def _rows(code: int) -> list[list[int]]:
    """Returns the horizontal lines of three cells or more."""
    rows = [list(range(suit, SUITS * RANKS, SUITS)) for suit in range(SUITS)]
    return [line for row in rows for line in _stretches(row, code) if len(line) >= 3]


def _columns(code: int) -> list[list[int]]:
    """Returns the ranks held in three suits or more."""
    columns = [[kind for kind in range(SUITS * r, SUITS * r + SUITS) if _copies(code, kind)] for r in range(RANKS)]
    return [column for column in columns if len(column) >= 3]


def _read_melds(code: int, bits: dict[int, int]) -> list[Meld]:
    """Makes the melds of one choice, two passes over every line."""
    found = []
    for row in _rows(code):
        for flag in (RUN, SECOND_RUN):
            marked = itertools.groupby(row, lambda kind, flag=flag: bits[kind] & flag != 0)
            found += [_meld(list(cells), True) for is_marked, cells in marked if is_marked]
    for column in _columns(code):
        found += [_meld([kind for kind in column if bits[kind] & flag], False) for flag in (SET, SECOND_SET)]
    return [meld for meld in found if len(meld.cards) >= 3]


def _meld(kinds: list[int], is_run: bool) -> Meld:
    return Meld(sum(1 << 2 * kind for kind in kinds), 0, tuple(map(card_of, kinds)), is_run)
