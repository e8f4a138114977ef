"""The hand evaluator: islands, control points, combos and the best combo of a hand, one card at a time."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from envs.errors import InputError, unknown
from envs.hand_evaluator import article, picture, search
from envs.hand_evaluator.combo import (
    JOKER,
    MAX_COPIES,
    RANKS,
    SUITS,
    Combo,
    Options,
    join,
    kind_of,
    lowest,
    name,
    options_of,
    pack,
    points,
    read_card,
    read_cards,
    unpack,
    yes_or_no,
)

METHODS = ("exact", "article", "control_points")
_MOST_KEPT = 100_000
"""Partial hands remembered by a hand and those made of it by `add` and `remove`."""


class Island:
    """Cards that no meld joins to cards outside: a connected piece of the 4 x 13 grid, or a hand with jokers.

    Two kinds held are connected if they are of one rank, or neighbours in one suit. What is found is kept.
    """

    def __init__(self, code: int, jokers: int, options: Options, memo: search.Memo) -> None:
        """Takes a packed hand, its jokers, the table's options and what is known of hands of these options."""
        self.code, self.jokers, self._options, self._memo = code, jokers, options, memo
        self._lists: dict[tuple[str, str], _Lazy] = {}

    @functools.cached_property
    def cards(self) -> tuple[int, ...]:
        """Ids by rank, then suit, jokers last."""
        return unpack(self.code, self.jokers)

    @functools.cached_property
    def best(self) -> Combo:
        """The combo of least dump points, then fewest dump cards."""
        if len(self.cards) < 3:
            return Combo((), (), self.cards, points(self.cards, self._options))
        return search.best_combo(self.code, self.jokers, self._options, self._memo)

    def hand_down(self, parts: tuple[Island, ...], card: int) -> None:
        """Gives the islands that are left without a card their best combos, where they follow from this one's.

        That is so where the best combo has the card in its dump. What is left cannot do better than with the card, so
        it does as well; and the search, which takes the first of equally good melds, finds the same ones: a division
        that was worse for a meld before is not better now.
        """
        known = self.__dict__.get("best")
        if known is None or card not in known.dump:
            return
        dump = list(known.dump)
        dump.remove(card)
        for part in parts:
            cards = frozenset(part.cards) if len(parts) > 1 else None
            runs, sets, left = (
                tuple(x for x in found if cards is None or (x if isinstance(x, int) else x[0]) in cards)
                for found in (known.runs, known.sets, dump)
            )
            part.best = Combo(runs, sets, left, points(left, self._options))

    def combos(self, level: str, method: str) -> Iterable[Combo]:
        """Returns the island's combos of a level, found as they are asked for."""
        number = search.check_level(level)
        if (level, method) not in self._lists:
            find = search.all_combos if method == "exact" else functools.partial(article.combos, method=method)
            self._lists[level, method] = _Lazy(find(self.code, self.jokers, self._options, number))
        return self._lists[level, method]

    def __repr__(self) -> str:
        """Returns the cards in text."""
        return f"Island({' '.join(map(name, self.cards))})"


class _Lazy:
    """A list whose items are computed when first reached."""

    def __init__(self, items: Iterator[Combo]) -> None:
        self._items, self._found = items, list[Combo]()

    def __iter__(self) -> Iterator[Combo]:
        for index in itertools.count():
            if index == len(self._found):
                item = next(self._items, None)
                if item is None:
                    return
                self._found.append(item)
            yield self._found[index]


class HandEvaluator:
    """A hand of two decks' cards, at most two of a kind; it never changes.

    Attributes:
      islands: tuple of Island, by lowest card; with jokers, which may join any cards, one for the whole hand.
    """

    def __init__(
        self,
        cards: str | Iterable[str | int] = (),
        *,
        values: Sequence[int] | None = None,
        jokers: bool = False,
        joker_value: int = 0,
        ace_high: bool = False,
    ) -> None:
        """Takes a hand.

        Args:
          cards: names ("3H", "10S", "JD", "11D", "3♥", "*" for a joker) or ids; or a text of them, with blanks, commas
            or bars between them or without.
          values: dump points of the ranks A to K, whole numbers from 0 to 10^6; ace 1 to ten and court cards 10 by
            default.
          jokers: whether up to four jokers may be held; each stands for any card, in a meld with a card of its own.
          joker_value: dump points of a joker, as of `values`.
          ace_high: whether an ace may follow the king as well as precede the two; not both in one run.
        Raises:
          InputError: an unknown card, a third copy, a joker where there are none, or values that are no table.
        """
        self._options = options_of(values, joker_value, ace_high)
        self._wild, self._memo = yes_or_no("jokers", jokers), search.new_memo()
        code, wild = pack(read_cards(cards) if isinstance(cards, str) else cards)
        if wild and not jokers:
            raise InputError("a joker in a hand without jokers; pass jokers=True")
        self.islands = self._split(code, wild)

    def _split(self, code: int, jokers: int) -> tuple[Island, ...]:
        if jokers:
            return (Island(code, jokers, self._options, self._memo),)
        return tuple(
            Island(part, 0, self._options, self._memo) for part in search.islands_of(code, self._options.ace_high)
        )

    @property
    def cards(self) -> tuple[int, ...]:
        """The hand's ids by rank, then suit, jokers last."""
        return unpack(self._code, self._jokers)

    @property
    def _code(self) -> int:
        return sum(island.code for island in self.islands)

    @property
    def _jokers(self) -> int:
        return sum(island.jokers for island in self.islands)

    @property
    def control_points(self) -> tuple[int, ...]:
        """The card ids whose copies have more melds to go to than there are copies, as the article counts them.

        Raises:
          InputError: a joker is held, or the ace may follow the king; the article knows neither.
        """
        self._check_article("control points")
        return tuple(card for island in self.islands for card in article.control_points(island.code))

    @property
    def ace_high(self) -> bool:
        """Whether an ace may follow the king as well."""
        return self._options.ace_high

    @property
    def flag_map(self) -> np.ndarray:
        """The article's table of flags: uint8[4, 13] by suit S, H, D, C and rank, 0 where no card is held.

        Bit 0: the card belongs to a run, 1: to a second run, 2: to a set, 3: to a second set.

        Raises:
          InputError: as of `control_points`.
        """
        self._check_article("flag map")
        table = np.zeros((SUITS, RANKS), np.uint8)
        for kind, bits in article.flag_map(self._code).items():
            table[kind % SUITS, kind // SUITS] = bits
        return table

    @property
    def lines(self) -> tuple[list[tuple[int, int, int]], list[int]]:
        """The article's lines: (suit, first, last rank) of the horizontal ones, ranks of the vertical ones, from 1.

        Raises:
          InputError: as of `control_points`.
        """
        self._check_article("lines")
        return picture.lines_of(self._code)

    def _check_article(self, what: str) -> None:
        if not article.knows(self.cards, self._options.ace_high):
            raise InputError(f"the article's {what} do not support jokers or an ace after the king")

    def _repr_svg_(self) -> str:
        return picture.to_svg(self)

    def combos(self, level: str = "maximal", method: str = "exact") -> Iterator[Combo]:
        """Yields the hand's combos, each once, in an order that depends on the hand alone; computed as they are drawn.

        Args:
          level: "any" division; "no_meld_left" in the dump; "maximal", and no dump card extends a meld; "merged",
            and no two runs could be written as one.
          method: "exact"; or the procedures of `envs.hand_evaluator.article`, "article" and "control_points".
        Raises:
          InputError: an unknown level or method, or options the method does not know.
        """
        search.check_level(level)
        if method not in METHODS:
            raise unknown("method", method, METHODS)
        if method != "exact" and (self._jokers or self._options.ace_high):
            raise InputError(f"method {method!r} does not support jokers or an ace after the king; use 'exact'")
        return self._products(list(self.islands), level, method)

    def _products(self, islands: list[Island], level: str, method: str) -> Iterator[Combo]:
        if not islands:
            return iter([Combo((), (), (), 0)])
        # Small islands, whose lists are soon complete, are turned round and round; the greatest is walked once.
        order = sorted(islands, key=lambda island: -len(island.cards))
        return map(join, _choices([island.combos(level, method) for island in order]))

    def best(self, values: Sequence[int] | None = None) -> Combo:
        """Returns the combo of least dump points, then fewest dump cards.

        Args:
          values: another table than the hand's, dump points of the ranks A to K.
        Raises:
          InputError: values that are no table.
        """
        islands = self.islands
        if values is not None:
            options = options_of(values, self._options.joker_value, self._options.ace_high)
            memo = search.new_memo()
            islands = tuple(Island(island.code, island.jokers, options, memo) for island in islands)
        return join([island.best for island in islands])

    def add(self, card: str | int) -> HandEvaluator:
        """Returns the evaluator of the hand with one more card; only the islands it touches are computed anew.

        Raises:
          InputError: an unknown card, a third copy, a fifth joker.
        """
        card = read_card(card)
        if card == JOKER or self._jokers:
            return self._with([*self.cards, card])
        kind = kind_of(card)
        touched = self._touched(kind)
        near = [island for island in self.islands if island.code & touched]
        code = sum(island.code for island in near)
        if code >> 2 * kind & 3 == MAX_COPIES:
            raise InputError(f"a third copy of {name(card)}; two decks have {MAX_COPIES}")
        return self._replaced(near, (Island(code + (1 << 2 * kind), 0, self._options, self._memo),))

    def remove(self, card: str | int) -> HandEvaluator:
        """Returns the evaluator of the hand without a card; only its island is computed anew, perhaps in parts.

        Raises:
          InputError: an unknown card, or one the hand lacks.
        """
        card = read_card(card)
        if self._jokers and card in self.cards:
            left = list(self.cards)
            left.remove(card)
            return self._with(left)
        for island in self.islands:
            if card != JOKER and island.code >> 2 * kind_of(card) & 3:
                parts = self._split(island.code - (1 << 2 * kind_of(card)), 0)
                island.hand_down(parts, card)
                return self._replaced([island], parts)
        raise InputError(f"{name(card)} is not in the hand")

    def _with(self, hand: list[int]) -> HandEvaluator:
        if JOKER in hand and not self._wild:
            raise InputError("a joker in a hand without jokers; pass jokers=True")
        return self._of(self._split(*pack(hand)))

    def _replaced(self, old: list[Island], new: tuple[Island, ...]) -> HandEvaluator:
        kept = [island for island in self.islands if not any(island is other for other in old)]
        return self._of(tuple(sorted([*kept, *new], key=lambda island: lowest(island.code))))

    def _of(self, islands: tuple[Island, ...]) -> HandEvaluator:
        other = object.__new__(HandEvaluator)
        other._options, other._wild, other.islands = self._options, self._wild, islands
        # The search goes from the lowest card up: hands that differ in one card share all that is above it.
        other._memo = self._memo if len(self._memo) < _MOST_KEPT else search.new_memo()
        return other

    def _touched(self, kind: int) -> int:
        """Returns the packed kinds, all copies, that a card of a kind is connected to."""
        column, last = kind - kind % SUITS, SUITS * (RANKS - 1)
        neighbours = [k for k in (kind - SUITS, kind + SUITS) if 0 <= k < SUITS * RANKS]
        if self._options.ace_high and column in (0, last):
            neighbours.append(abs(kind - last) if column else kind + last)
        return (255 << 2 * column) + sum(3 << 2 * k for k in neighbours)

    def __len__(self) -> int:
        """Cards in the hand."""
        return len(self.cards)

    def __repr__(self) -> str:
        """Returns the cards in text."""
        return f"HandEvaluator({' '.join(map(name, self.cards))})"


def _choices(lists: list[Iterable[Combo]]) -> Iterator[tuple[Combo, ...]]:
    """Yields the product of the lists, the last turning fastest, without completing a list before it is needed."""
    if not lists:
        yield ()
        return
    for first in lists[0]:
        for rest in _choices(lists[1:]):
            yield first, *rest
