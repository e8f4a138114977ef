"""Lists of one length and kind as dense arrays [times, boards], from which what both players know is read off.

A family holds lists of one player whose turn is over, all after the same number of turns, either won with the last try
or waiting for the opponent. Its groups have f failures each (and so s stones). A list of a group is in a dense array
[rows, columns]: its row says at which turns the cells of the stones were tried, and at which those of the failures, in
the order of cells; its column which cells they are. Lists that differ only in the order of failures within one turn
share an entry: they fit the same lists of the opponent.

The last stone of a won list is set apart: nobody finds it any more, and it made the win. Of the rows it is no part.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math

import numpy as np

from dream.game_tree.placement.lists import BASE, Lists
from dream.game_tree.placement.reach import Reach
from envs.game import HiddenPlacement

_FACTORIALS = np.array([math.factorial(n) for n in range(BASE)], np.int64)


@dataclasses.dataclass(frozen=True, eq=False)
class Group:
    """Lists of a family with so many stones and failures.

    Attributes:
      stones, failures: how many; a won list's last stone is not counted.
      offset: where the group's array starts in the family's flat one.
      times: int8[rows, stones + failures], the turns of the cells: of the stones by cell, then of the failures by cell.
      boards: int32[columns, 3], masks of the stones counted, of the failures, and of all stones.
    """

    stones: int
    failures: int
    offset: int
    times: np.ndarray
    boards: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.times), len(self.boards)

    @property
    def size(self) -> int:
        """Entries of the dense array."""
        return len(self.times) * len(self.boards)


@dataclasses.dataclass(frozen=True, eq=False)
class Family:
    """Lists of one player after so many turns, won or waiting.

    Attributes:
      player, turns, won: which.
      groups: by failures.
      size: entries of all groups.
      shared: whether lists may share an entry.
      rows: int32, for all groups the row of an order of success, a rank of stones and a rank of failures.
      order_index: int64[2^C], number of an order among its group's.
      board_index: int32[2^C, 2^C], the first column of a pair of masks.
      last_stones: int16[2^C], the stones each of which alone made a win.
      starts: int64[3, C + 1], by failures where a group starts in `rows` and in the flat array, and its columns.
    """

    player: int
    turns: int
    won: bool
    groups: tuple[Group, ...]
    size: int
    shared: bool
    rows: np.ndarray
    order_index: np.ndarray
    board_index: np.ndarray
    last_stones: np.ndarray
    starts: np.ndarray

    def place(self, lists: Lists) -> np.ndarray:
        """Returns where lists of the family are in its flat array: int32[R]."""
        failures = np.bitwise_count(lists.failures)
        stones = np.bitwise_count(lists.stones) - self.won
        number = self.order_index[lists.order] * _FACTORIALS[stones] + lists.stone_rank % _FACTORIALS[stones]
        number = number * _FACTORIALS[failures] + lists.failure_rank
        column = self.board_index[lists.stones, lists.failures]
        if self.won:
            last = np.left_shift(1, (lists.tries % np.uint32(BASE)).astype(np.int32) - 1)
            column = column + np.bitwise_count(self.last_stones[lists.stones] & (last - 1))
        first_row, start, columns = self.starts[:, failures]
        return (start + self.rows[first_row + number].astype(np.int64) * columns + column).astype(np.int32)


def family(game: HiddenPlacement, reach: Reach, player: int, turns: int, *, won: bool) -> Family:
    """Lays out the lists of a player after a number of turns, won with the last or waiting."""
    count = 1 << game.cells
    order_index, board_index = np.full(count, -1, np.int64), np.full((count, count), -1, np.int32)
    starts = np.zeros((3, game.cells + 1), np.int64)
    last_stones = _last_stones(reach, game.cells)
    groups, rows, size, used = [], [np.zeros(0, np.int32)], 0, 0
    for failures in range(game.cells + 1):
        stones = turns if game.failure_keeps_turn else turns - failures
        if stones < won or stones + failures > game.cells:
            continue
        orders = _orders(game, reach, stones, failures, won)
        masks = _masks(reach, last_stones, stones, failures, won)
        opening = sum(1 << cell for cell in game.forced[player][: stones + failures])
        masks = masks[(masks[:, 0] | masks[:, 1]) & opening == opening]
        if not len(orders) or not len(masks):
            continue
        boards = _boards(masks, last_stones, won)
        times = _times(game, orders, stones, failures, won)
        times, row = np.unique(times, axis=0, return_inverse=True)
        order_index[orders] = np.arange(len(orders))
        columns = np.bitwise_count(last_stones[masks[:, 0]]) if won else np.ones(len(masks), int)
        board_index[masks[:, 0], masks[:, 1]] = np.cumsum(columns) - columns
        starts[:, failures] = used, size, len(boards)
        groups.append(Group(stones - won, failures, size, times, boards))
        rows.append(row.reshape(-1).astype(np.int32))
        size, used = size + groups[-1].size, used + len(row)
    return Family(
        player=player,
        turns=turns,
        won=won,
        groups=tuple(groups),
        size=size,
        shared=game.failure_keeps_turn,
        rows=np.concatenate(rows),
        order_index=order_index,
        board_index=board_index,
        last_stones=last_stones,
        starts=starts,
    )


def _last_stones(reach: Reach, cells: int) -> np.ndarray:
    """Returns the stones without each of which there would be no win, as bits: int16[2^C]; 0 where there is none."""
    masks = np.arange(1 << cells)[:, None]
    bits = 1 << np.arange(cells)
    alone = (masks & bits != 0) & reach.wins[masks] & ~reach.wins[masks & ~bits]
    return (alone * bits).sum(axis=1).astype(np.int16)


def _orders(game: HiddenPlacement, reach: Reach, stones: int, failures: int, won: bool) -> np.ndarray:
    """Returns the orders of success and failure that can occur, as bits."""
    length = stones + failures
    if not length:
        return np.zeros(1, np.int64)
    bits = np.arange(1 << length)
    bits = bits[np.bitwise_count(bits) == stones]
    if won or game.failure_keeps_turn:
        bits = bits[bits >> (length - 1) & 1 == 1]
    return bits[reach.waiting[length][bits] != 0]


def _masks(reach: Reach, last_stones: np.ndarray, stones: int, failures: int, won: bool) -> np.ndarray:
    """Returns the pairs of masks (stones, failures) that can occur: int[n, 2]."""
    allowed = np.where(last_stones[:, None] != 0, reach.won, 0) if won else reach.going_on
    counts = np.bitwise_count(np.arange(len(allowed)))
    return np.argwhere((allowed != 0) & (counts[:, None] == stones) & (counts == failures))


def _boards(masks: np.ndarray, last_stones: np.ndarray, won: bool) -> np.ndarray:
    """Returns the columns: masks of the stones counted, of failures and of all stones."""
    if not won:
        return np.column_stack([masks, masks[:, 0]]).astype(np.int32)
    bits = 1 << np.arange(16)
    row, bit = np.nonzero(last_stones[masks[:, :1]] & bits)
    stones, failures = masks[row].T
    return np.column_stack([stones & ~bits[bit], failures, stones]).astype(np.int32)


def _times(game: HiddenPlacement, orders: np.ndarray, stones: int, failures: int, won: bool) -> np.ndarray:
    """Returns the turns of the cells for every order, rank of stones and rank of failures: int8[n, cells]."""
    length = stones + failures
    success = (orders[:, None] >> np.arange(length) & 1).astype(bool)
    turn = np.tile(np.arange(length), (len(orders), 1))
    if game.failure_keeps_turn:
        turn = np.cumsum(success, axis=1) - success
    counted = stones - won
    of_stones = turn[success].reshape(len(orders), stones)[:, :counted][:, _places(counted)]
    of_failures = turn[~success].reshape(len(orders), failures)[:, _places(failures)]
    shape = (len(orders), math.factorial(counted), math.factorial(failures))
    both = (
        np.broadcast_to(of_stones[:, :, None], (*shape, counted)),
        np.broadcast_to(of_failures[:, None], (*shape, failures)),
    )
    return np.concatenate(both, axis=-1).reshape(math.prod(shape), counted + failures).astype(np.int8)


@functools.cache
def _places(count: int) -> np.ndarray:
    """Returns for every rank the place in the order at which each cell was tried: int[count!, count]."""
    places = np.zeros((math.factorial(count), count), np.int64)
    for tried in itertools.permutations(range(count)):
        rank = sum(sum(b < a for b in tried[:k]) * math.factorial(k) for k, a in enumerate(tried))
        places[rank, list(tried)] = np.arange(count)
    return places
