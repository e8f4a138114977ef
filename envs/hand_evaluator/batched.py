"""The least dump points of many hands at once, in NumPy.

Only sets tie the suits together. Once it is settled which cards go to sets, the best runs of a suit are one look-up in
a table over its 3^13 hands, so a hand's best is the greatest, over the ways to form sets, of four look-ups and the
sets' points. The ways are few: a rank offers some only if held in three suits. Hands with very many go one by one
through the exact search.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from envs import cards
from envs.errors import InputError
from envs.hand_evaluator.combo import MAX_COPIES, RANKS, SUITS, Options, kind_of, options_of
from envs.hand_evaluator.search import best_combo, new_memo

_PATTERNS = 3**SUITS
_POWERS = 3 ** np.arange(RANKS)
_MOST_WAYS = 4096
"""Ways to form sets beyond which a hand is searched on its own."""
_CHUNK = 1024


def best_dump_points(counts: np.ndarray, *, values: Sequence[int] | None = None, ace_high: bool = False) -> np.ndarray:
    """Returns the least dump points of each hand, equal to `HandEvaluator.best().dump_points`.

    The tables (13 MB and a fraction of a second for each value table) are built at the first call.

    Args:
      counts: int8[B, 52], copies of each card, 0 to 2, ids of `envs.cards`.
      values: dump points of the ranks A to K, whole numbers from 0 to 10^6.
      ace_high: whether an ace may also follow the king.
    Returns:
      int32[B].
    Raises:
      InputError: counts of another shape, no whole numbers or out of range, or values that are no table.
    """
    options = options_of(values, 0, ace_high)
    counts = _checked(counts)
    grid = counts.reshape(-1, SUITS, RANKS).astype(np.int32)
    parts = [_best_points(grid[i : i + _CHUNK], options) for i in range(0, len(grid), _CHUNK)]
    return np.concatenate([np.zeros(0, np.int32), *parts])


def _checked(counts: Any) -> np.ndarray:
    """Returns counts as an array; raises InputError unless it is [hands, 52] of whole numbers from 0 to 2."""
    try:
        counts = np.asarray(counts)
    except ValueError:
        raise InputError(f"counts is not an array; it must be [hands, {cards.NUM_CARDS}]") from None
    if counts.ndim != 2 or counts.shape[1] != cards.NUM_CARDS:
        raise InputError(f"counts has shape {list(counts.shape)}; it must be [hands, {cards.NUM_CARDS}]")
    if counts.dtype.kind not in "biuf":
        raise InputError(f"counts holds {counts.dtype}; it must hold whole numbers, 0 to {MAX_COPIES}")
    wrong = np.argwhere(~np.isin(counts, range(MAX_COPIES + 1)))
    if len(wrong):
        hand, card = wrong[0]
        raise InputError(f"hand {hand} has {counts[hand, card]} of {cards.card_name(card)}; two decks have 0, 1 or 2")
    return counts


def _best_points(grid: np.ndarray, options: Options) -> np.ndarray:
    """Returns int32[B] from counts int32[B, 4, 13]."""
    runs, sets = run_points(options.values, options.ace_high), _set_ways()
    totals = np.einsum("bsr,r->b", grid, np.asarray(options.values, np.int32))
    patterns = np.einsum("bsr,s->br", grid, 3 ** np.arange(SUITS))
    ways = sets.count[patterns]
    huge = np.prod(ways.astype(float), axis=1) > _MOST_WAYS
    hand = np.flatnonzero(~huge)
    left = (grid @ _POWERS).astype(np.int32)[hand]
    gained = np.zeros(len(hand), np.int32)
    for rank in np.flatnonzero((ways[hand] > 1).any(axis=0)):
        count = ways[hand, rank]
        row = np.repeat(np.arange(len(hand)), count)
        way = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count) + sets.first[patterns[hand, rank]][row]
        left = left[row] - sets.used[way] * np.int32(_POWERS[rank])
        gained = gained[row] + sets.size[way] * np.int32(options.values[rank])
        hand = hand[row]
    gained += runs[left].sum(axis=1, dtype=np.int32)
    best = np.zeros(len(grid), np.int32)
    if len(hand):
        starts = np.flatnonzero(np.r_[True, hand[1:] != hand[:-1]])
        best[hand[starts]] = np.maximum.reduceat(gained, starts)
    dump = (totals - best).astype(np.int32)
    for index in np.flatnonzero(huge):
        dump[index] = best_combo(_packed(grid[index]), 0, options, new_memo()).dump_points
    return dump


def _packed(grid: np.ndarray) -> int:
    return sum(int(n) << 2 * kind_of(card) for card, n in enumerate(grid.reshape(-1)))


class _SetWays(NamedTuple):
    """The ways to form sets of a rank, by the copies held: pattern sum(copies[suit] * 3^suit).

    Attributes:
      count: int32[81], ways of a pattern, forming none included.
      first: int32[81], the index of its first.
      used: int32[W, 4], copies of each suit in sets.
      size: int32[W], cards in sets.
    """

    count: np.ndarray
    first: np.ndarray
    used: np.ndarray
    size: np.ndarray


@functools.cache
def _set_ways() -> _SetWays:
    single = [np.array(suits) for suits in itertools.product((0, 1), repeat=SUITS) if sum(suits) >= 3]
    totals = {(0,) * SUITS} | {tuple(one) for one in single}
    totals |= {tuple(one + two) for one in single for two in single}
    used, counts = [], []
    for pattern in range(_PATTERNS):
        held = pattern // 3 ** np.arange(SUITS) % 3
        fitting = [total for total in sorted(totals) if np.all(held >= total)]
        used += fitting
        counts.append(len(fitting))
    count, taken = np.array(counts, np.int32), np.array(used, np.int32)
    return _SetWays(count, (np.cumsum(count) - count).astype(np.int32), taken, taken.sum(axis=1, dtype=np.int32))


@functools.lru_cache(maxsize=4)
def run_points(values: tuple[int, ...], ace_high: bool) -> np.ndarray:
    """Returns the most points that runs of one suit can hold: int32[3^13], by sum(copies[rank] * 3^rank).

    By the lowest card: it is left, or starts a run of three, four or five; a longer run is several of these.
    """
    most = np.zeros(1, np.int32)
    for rank in reversed(range(RANKS)):
        above = RANKS - 1 - rank
        codes = np.arange(3**above)
        layers = [most, most.copy(), most.copy()]
        for layer in (1, 2):
            layers[layer] = layers[layer - 1].copy()
            for length in range(3, min(5, above + 1) + 1):
                rest = length - 1
                fits = np.all([codes // 3**i % 3 > 0 for i in range(rest)], axis=0)
                kept = codes[fits] - sum(3**i for i in range(rest))
                gain = layers[layer - 1][kept] + sum(values[rank : rank + length])
                layers[layer][fits] = np.maximum(layers[layer][fits], gain)
        most = np.stack(layers, axis=1).reshape(-1)
    return _with_high_aces(most, values) if ace_high else most


def _with_high_aces(most: np.ndarray, values: tuple[int, ...]) -> np.ndarray:
    """Lets each of two aces end a run, of three to five cards up to the ace."""
    codes = np.arange(len(most))
    for _ in range(MAX_COPIES):
        before, most = most, most.copy()
        for length in (3, 4, 5):
            ranks = [0, *range(RANKS - length + 1, RANKS)]
            fits = np.all([codes // 3**rank % 3 > 0 for rank in ranks], axis=0)
            gain = before[codes[fits] - sum(3**rank for rank in ranks)] + sum(values[rank] for rank in ranks)
            most[fits] = np.maximum(most[fits], gain)
    return most
