"""What the evaluator works on and what it returns: packed hands, melds, options and combos.

A hand is packed into one integer: two bits a card kind hold its copies, the kinds in order of rank, then suit, so that
kind 4 * rank + suit has bits 2 * kind and 2 * kind + 1. Taking a meld out is then one subtraction.
"""

from __future__ import annotations

import numbers
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from envs import cards
from envs.errors import InputError, shown

JOKER = cards.NUM_CARDS
"""The id of a joker; the cards' own ids are those of `envs.cards`."""
JOKER_NAME = "*"
MAX_COPIES = 2
MAX_JOKERS = 4
MAX_VALUE = 10**6
"""Dump points of a card; two decks of such cards fit 32 bits."""
SUITS, RANKS = cards.NUM_SUITS, cards.NUM_RANKS


_SUIT_SIGNS = {sign: n for n, signs in enumerate(("S♠♤", "H♥♡", "D♦♢", "C♣♧")) for sign in signs}
_RANK, _SUIT = f"1[0-3]|[1-9{cards.RANKS}]", "".join(_SUIT_SIGNS)
_CARD = re.compile(f"[\\s|,;]+|(?P<rank>{_RANK})(?P<suit>[{_SUIT}])\ufe0f?|(?P<joker>\\*|joker)", re.IGNORECASE)
"""A card, or what stands between two."""


class Options(NamedTuple):
    """What a table may set.

    Attributes:
      values: points of the ranks A to K in the dump.
      joker_value: points of a joker in the dump.
      ace_high: whether an ace may also follow the king (never both in one run).
    """

    values: tuple[int, ...] = tuple(int(v) for v in cards.VALUES)
    joker_value: int = 0
    ace_high: bool = False


def options_of(values: Sequence[int] | None, joker_value: int, ace_high: bool) -> Options:
    """Returns what a table sets, checked.

    Args:
      values: dump points of the ranks A to K, None for the usual ones.
      joker_value: dump points of a joker.
      ace_high: as of `Options`.
    Raises:
      InputError: dump points that are no whole numbers from 0 to MAX_VALUE, or not of 13 ranks; ace_high is no bool.
    """
    try:
        table = list(Options().values if values is None else values)
    except TypeError:
        table = []
    if len(table) != RANKS or not all(map(_is_value, table)):
        right = f"{RANKS} whole numbers, A to K, each 0 to {MAX_VALUE}"
        raise InputError(f"values={shown(values)} is not valid; it must be {right}")
    if not _is_value(joker_value):
        raise InputError(f"joker_value={shown(joker_value)} is not valid; it must be a whole number, 0 to {MAX_VALUE}")
    return Options(tuple(int(value) for value in table), int(joker_value), yes_or_no("ace_high", ace_high))


def yes_or_no(name: str, given: Any) -> bool:
    """Returns a switch as a bool; raises InputError where it is none, as a number of jokers."""
    if not isinstance(given, bool | np.bool_):
        raise InputError(f"{name}={shown(repr(given))} is not valid; it must be True or False")
    return bool(given)


def _is_value(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and 0 <= value <= MAX_VALUE


class Meld(NamedTuple):
    """A run or a set.

    Attributes:
      mask: the natural cards, packed.
      jokers: jokers in it.
      cards: ids; a run ascending, each joker in its place; a set by suit, its jokers last.
      is_run: bool.
    """

    mask: int
    jokers: int
    cards: tuple[int, ...]
    is_run: bool


class Combo(NamedTuple):
    """One division of a hand.

    Attributes:
      runs, sets: tuples of melds, each a tuple of card ids, sorted.
      dump: ids of the cards left, sorted by rank, then suit, then jokers.
      dump_points: points.
    """

    runs: tuple[tuple[int, ...], ...]
    sets: tuple[tuple[int, ...], ...]
    dump: tuple[int, ...]
    dump_points: int

    @property
    def dump_count(self) -> int:
        """Cards in the dump."""
        return len(self.dump)

    def __str__(self) -> str:
        """Returns the combo in card names."""
        melds = [("run", meld) for meld in self.runs] + [("set", meld) for meld in self.sets]
        parts = [f"{kind} {' '.join(map(name, meld))}" for kind, meld in melds]
        parts.append(f"dump {' '.join(map(name, self.dump)) or '-'} ({self.dump_points})")
        return ", ".join(parts)


def name(card: int) -> str:
    """Returns a card's name, "*" for a joker."""
    return JOKER_NAME if card == JOKER else cards.card_name(card)


def read_card(card: str | int) -> int:
    """Returns the id of a card given as "3H", "10S", "JD", "11D", "1S", "3♥", "*" or "joker", or as an id.

    Raises:
      InputError: no such card.
    """
    if isinstance(card, str):
        found = read_cards(card)
        if len(found) != 1:
            raise InputError(f"unknown card {card!r}; it must be one card, such as 3H, 11C, 3♥ or *")
        return found[0]
    try:
        number = int(card)
    except (TypeError, ValueError, OverflowError):
        number = -1
    if isinstance(card, bool) or not 0 <= number <= JOKER or number != card:
        raise InputError(f"unknown card {card!r}; an id is 0 to {JOKER - 1}, and {JOKER} a joker")
    return number


def read_cards(text: str) -> list[int]:
    """Returns the ids of cards in a text, with or without blanks, commas or bars between them.

    Names are those of `read_card`: ranks A, 2 to 10, T, J, Q, K or 1 to 13, suits S, H, D, C or their symbols.

    Raises:
      InputError: something in it is no card.
    """
    found, place = [], 0
    while place < len(text):
        token = _CARD.match(text, place)
        if token is None:
            wrong = re.split(r"[\s|,;]+", text[place:].strip())[0]
            raise InputError(f"unknown card {wrong!r}; a card is a rank and a suit such as 3H, 10S, 11C, 1D, 3♥, or *")
        place = token.end()
        if token["rank"]:
            rank = token["rank"].upper()
            number = int(rank) - 1 if rank.isdecimal() else cards.RANKS.index(rank)
            found.append(RANKS * _SUIT_SIGNS[token["suit"].upper()] + number)
        elif token["joker"]:
            found.append(JOKER)
    return found


def kind_of(card: int) -> int:
    """Returns the place of a card's two bits, halved: 4 * rank + suit."""
    return SUITS * (card % RANKS) + card // RANKS


_ORDER = [*map(kind_of, range(JOKER)), JOKER]
"""Card id -> its place in the order of rank, suit, jokers last."""


def card_of(kind: int) -> int:
    """Returns the id of a kind, the inverse of `kind_of`."""
    return RANKS * (kind % SUITS) + kind // SUITS


def pack(hand: Iterable[Any]) -> tuple[int, int]:
    """Packs a hand.

    Args:
      hand: names or ids.
    Returns:
      (code, jokers).
    Raises:
      InputError: no cards, an unknown card, a third copy of one, or too many jokers.
    """
    if not isinstance(hand, Iterable):
        raise InputError(f"a hand is a text or a list of cards, such as '3H 4H 11C'; this is {hand!r}")
    code, jokers = 0, 0
    for given in hand:
        card = read_card(given)
        if card == JOKER:
            jokers += 1
            if jokers > MAX_JOKERS:
                raise InputError(f"too many jokers; two decks have {MAX_JOKERS}")
            continue
        shift = 2 * kind_of(card)
        if code >> shift & 3 == MAX_COPIES:
            raise InputError(f"a third copy of {name(card)}; two decks have {MAX_COPIES}")
        code += 1 << shift
    return code, jokers


def unpack(code: int, jokers: int = 0) -> tuple[int, ...]:
    """Returns the ids of a packed hand by rank, then suit, jokers last."""
    found = []
    while code:
        kind = lowest(code)
        copies = code >> 2 * kind & 3
        found += [card_of(kind)] * copies
        code -= copies << 2 * kind
    return (*found, *[JOKER] * jokers)


def lowest(code: int) -> int:
    """Returns the lowest kind held; code > 0."""
    return ((code & -code).bit_length() - 1) // 2


def points(hand: Iterable[int], options: Options) -> int:
    """Returns the dump points of card ids."""
    return sum(options.joker_value if card == JOKER else options.values[card % RANKS] for card in hand)


def make_combo(melds: Iterable[Meld], dump: tuple[int, ...], options: Options) -> Combo:
    """Builds a combo, its melds sorted."""
    melds = list(melds)
    return Combo(
        runs=tuple(sorted((m.cards for m in melds if m.is_run), key=sort_key)),
        sets=tuple(sorted((m.cards for m in melds if not m.is_run), key=sort_key)),
        dump=dump,
        dump_points=points(dump, options),
    )


def sort_key(meld: Sequence[int]) -> list[int]:
    """Orders card ids by rank, then suit, then jokers."""
    return [_ORDER[card] for card in meld]


def join(combos: Iterable[Combo]) -> Combo:
    """Returns the combo of a whole hand from those of its islands."""
    runs, sets, dump, total = [], [], [], 0
    for combo in combos:
        runs += combo.runs
        sets += combo.sets
        dump += combo.dump
        total += combo.dump_points
    if len(runs) > 1:
        runs.sort(key=sort_key)
    if len(sets) > 1:
        sets.sort(key=sort_key)
    dump.sort(key=_ORDER.__getitem__)
    return Combo(tuple(runs), tuple(sets), tuple(dump), total)


def best_first(combo: Combo) -> tuple[Any, ...]:
    """A sort key: least dump points, then fewest dump cards, then by cards."""
    return combo.dump_points, combo.dump_count, combo.runs, combo.sets
