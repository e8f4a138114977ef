"""A player's lists of own tries, depth by depth: information sets, and what comes of each action.

Information sets of depth d (d own tries) are columns of a block [W, R], their W actions rows in the order of cells.
An action leads to a success or a failure; each is a list of d + 1 tries, which may be a next information set, may wait
for the opponent, or may have won.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from dream.game_tree.placement.reach import Reach
from envs.game import HiddenPlacement

BASE = 10
"""Of the digits of a list; a board has fewer cells (dream/game_tree/exact.py)."""


@dataclasses.dataclass(frozen=True)
class Lists:
    """Lists of own tries, all of one length n.

    Attributes:
      tries: uint32[R], cells in order as decimal digits, cell + 1 each.
      order: uint16[R], bit k set where try k succeeded.
      stones, failures: uint16[R], cells as bits.
      stone_rank, failure_rank: int32[R], number of the order in which the stones' (failures') cells were tried, among
        all orders: the sum of digit_k k!, digit_k the cells before the k-th in both order and number.
    """

    tries: np.ndarray
    order: np.ndarray
    stones: np.ndarray
    failures: np.ndarray
    stone_rank: np.ndarray
    failure_rank: np.ndarray

    def __len__(self) -> int:
        """Lists."""
        return len(self.tries)

    def take(self, rows: np.ndarray | slice) -> Lists:
        """Returns some of the lists."""
        return Lists(*(getattr(self, field.name)[rows] for field in dataclasses.fields(self)))


def empty_list() -> Lists:
    """Returns the list without a try."""
    return Lists(*(np.zeros(1, kind) for kind in (np.uint32, np.uint16, np.uint16, np.uint16, np.int32, np.int32)))


def digits(tries: np.ndarray, length: int) -> np.ndarray:
    """Returns the cells of lists of tries in order: int64[R, length]."""
    powers = BASE ** np.arange(length - 1, -1, -1, dtype=np.int64)
    return tries.astype(np.int64)[:, None] // powers % BASE - 1


def joined(one: Lists, two: Lists) -> Lists:
    """Returns the lists of both, in turn."""
    parts = ((getattr(one, field.name), getattr(two, field.name)) for field in dataclasses.fields(Lists))
    return Lists(*(np.concatenate(pair) for pair in parts))


def open_cells(game: HiddenPlacement, player: int, depth: int) -> np.ndarray:
    """Returns the cells that may be tried by the set of those tried: uint8[2^C, W]; rows of other sizes are unused."""
    forced = game.forced[player]
    table = np.zeros((1 << game.cells, width(game, player, depth)), np.uint8)
    for tried in range(1 << game.cells):
        if tried.bit_count() == depth:
            free = [cell for cell in range(game.cells) if not tried >> cell & 1]
            table[tried] = [forced[depth]] if depth < len(forced) and forced[depth] in free else free[: table.shape[1]]
    return table


def width(game: HiddenPlacement, player: int, depth: int) -> int:
    """Returns how many actions the information sets of a depth have."""
    return 1 if depth < len(game.forced[player]) else game.cells - depth


def tried_by(lists: Lists, cells: np.ndarray, success: bool, length: int) -> Lists:
    """Returns lists that each try one cell more.

    Args:
      lists: of `length` tries.
      cells: uint8[R], untried.
      success: of the new try.
      length: tries before.
    """
    bit = np.left_shift(np.uint16(1), cells.astype(np.uint16))
    own = lists.stones if success else lists.failures
    count, below = np.bitwise_count(own), np.bitwise_count(own & (bit - np.uint16(1)))
    factorials = np.array([math.factorial(n) for n in range(length + 1)], np.int32)
    gain = below.astype(np.int32) * factorials[count]
    tries = lists.tries * np.uint32(BASE) + cells.astype(np.uint32) + np.uint32(1)
    if success:
        return Lists(
            tries, lists.order | np.uint16(1 << length), lists.stones | bit, lists.failures,
            lists.stone_rank + gain, lists.failure_rank,
        )  # fmt: skip
    return Lists(tries, lists.order, lists.stones, lists.failures | bit, lists.stone_rank, lists.failure_rank + gain)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The lists that one outcome of the actions of a depth leads to.

    Attributes:
      lists: after the action.
      entry: int32, of each the action's place in the block [W, R], flattened.
    """

    lists: Lists
    entry: np.ndarray


@dataclasses.dataclass(frozen=True)
class Depth:
    """What the actions of one depth lead to.

    Attributes:
      sets: the information sets' lists, R of them.
      width: W.
      won: successes that win.
      waiting: (after a success, after a failure): lists whose turn is over and whose game goes on.
      next: the next depth's information sets: lists and parent entries, first all successes, then all failures.
      split: how many of these are successes.
    """

    sets: Lists
    width: int
    won: Outcome
    waiting: tuple[Outcome, Outcome]
    next: Outcome
    split: int


def expand(game: HiddenPlacement, reach: Reach, player: int, sets: Lists, depth: int) -> Depth:
    """Finds what comes of every action of the information sets of a depth."""
    wide, count = width(game, player, depth), len(sets)
    cells = open_cells(game, player, depth)[sets.stones | sets.failures].T.reshape(-1)
    at = np.tile(np.arange(count, dtype=np.int32), wide)
    placed, failed = (_children(sets, at, cells, success, depth) for success in (True, False))
    before = reach.to_act[depth][sets.order][at]
    won = np.flatnonzero(reach.won[placed.stones, placed.failures] & before)
    both = []
    for lists in (placed, failed):
        masks = reach.going_on[lists.stones, lists.failures]
        both.append([np.flatnonzero(masks & kind[depth + 1][lists.order]) for kind in (reach.waiting, reach.to_act)])
    waiting = tuple(_outcome(lists, rows[0]) for lists, rows in zip((placed, failed), both, strict=True))
    after = [_outcome(lists, rows[1]) for lists, rows in zip((placed, failed), both, strict=True)]
    following = Outcome(joined(after[0].lists, after[1].lists), np.concatenate([after[0].entry, after[1].entry]))
    return Depth(sets, wide, _outcome(placed, won), waiting, following, len(after[0].entry))


def _children(sets: Lists, at: np.ndarray, cells: np.ndarray, success: bool, depth: int) -> Lists:
    return tried_by(sets.take(at), cells, success, depth)


def _outcome(lists: Lists, rows: np.ndarray) -> Outcome:
    return Outcome(lists.take(rows), rows.astype(np.int32))
