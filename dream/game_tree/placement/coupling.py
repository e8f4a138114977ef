"""The payoff between two groups of lists: won ones of one player, waiting ones of the other.

Two lists fit exactly if they fit cell by cell. Beyond the cells that both have tried (times.py) they have to agree on
which cells those are, and what one of them has found nobody else's, the hidden stones, must not overlap. So

    y(won list) = sum over waiting lists that fit of w(waiting list)

is computed in four steps: sums of w over the turns of the hidden stones, for every choice of the stones that the other
found ("view" of a group: key and column); the chain over times; sums over boards that go together; and the sum over the
choices again. The same backwards gives the waiting player's side.
"""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
from scipy import sparse

from dream.game_tree.placement.families import Group
from dream.game_tree.placement.times import TimeMatrix, applied, applied_back, encoded, fitting

_MOST_OF_THEM = 0.6
"""Share of the boards with a partner beyond which the others are carried along."""


@dataclasses.dataclass(frozen=True, eq=False)
class Choice:
    """One choice of the stones, counted by cell, that the other player found.

    Attributes:
      boards: int32, the boards of the group with a partner; None: all, as most have one.
      columns: slice, theirs among all choices.
      sums: csr [keys, rows], 1 where a row has a key.
    """

    boards: np.ndarray | None
    columns: slice
    sums: sparse.csr_matrix


@dataclasses.dataclass(frozen=True, eq=False)
class Side:
    """One player's part of a coupling."""

    group: Group
    choices: tuple[Choice, ...]
    keys: int
    columns: int

    def gathered(self, values: np.ndarray) -> np.ndarray:
        """Returns the sums of a group's values by key and column: [keys, columns], from [rows, boards]."""
        out = np.empty((self.keys, self.columns))
        for choice in self.choices:
            chosen = values if choice.boards is None else np.take(values, choice.boards, axis=1)
            out[:, choice.columns] = choice.sums @ chosen
        return out

    def spread(self, values: np.ndarray, out: np.ndarray) -> None:
        """Adds values by key and column to a group's: [rows, boards]."""
        for choice in self.choices:
            gained = choice.sums.T @ np.ascontiguousarray(values[:, choice.columns])
            if choice.boards is None:
                out += gained
            else:
                out[:, choice.boards] += gained


@dataclasses.dataclass(frozen=True, eq=False)
class Coupling:
    """The linear map between a group of won lists and one of waiting lists.

    Attributes:
      won, waiting: the two sides.
      times: the chain from the waiting player's keys to the winner's.
      boards: csr [won columns, waiting columns], 1 where boards go together.
    """

    won: Side
    waiting: Side
    times: list[TimeMatrix]
    boards: sparse.csr_matrix

    def to_won(self, weights: np.ndarray, out: np.ndarray) -> None:
        """Adds to won lists the weights of the waiting lists that fit: [rows, boards] both."""
        values = self.waiting.gathered(weights)
        if self.waiting.columns <= self.won.columns:
            values = _right(applied(self.times, values), self.boards)
        else:
            values = applied(self.times, _right(values, self.boards))
        self.won.spread(values, out)

    def to_waiting(self, weights: np.ndarray, out: np.ndarray) -> None:
        """Adds to waiting lists the weights of the won lists that fit."""
        values = self.won.gathered(weights)
        if self.waiting.columns <= self.won.columns:
            values = applied_back(self.times, _right(values, self.boards.T))
        else:
            values = _right(applied_back(self.times, values), self.boards.T)
        self.waiting.spread(values, out)

    @property
    def work(self) -> int:
        """Multiplications and additions of one pass."""
        columns = min(self.waiting.columns, self.won.columns)
        rows = sum(side.columns * side.group.shape[0] for side in (self.won, self.waiting))
        return rows + columns * sum(map(_entries, self.times)) + self.boards.nnz * self.won.keys

    @property
    def nbytes(self) -> int:
        """Memory of the matrices."""
        choices = [choice.sums for side in (self.won, self.waiting) for choice in side.choices]
        return sum(map(_bytes, [*choices, *self.times, self.boards]))


def _entries(matrix: TimeMatrix) -> int:
    return matrix.size if isinstance(matrix, np.ndarray) else matrix.nnz


def _bytes(matrix: TimeMatrix) -> int:
    if isinstance(matrix, np.ndarray):
        return matrix.nbytes
    return matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes


def _right(values: np.ndarray, boards: sparse.spmatrix) -> np.ndarray:
    """Returns values @ boards.T."""
    return np.ascontiguousarray((boards @ np.ascontiguousarray(values.T)).T)


def couple(winner: int, won: Group, waiting: Group) -> Coupling | None:
    """Builds the map between two groups; None where no lists of them fit.

    Args:
      winner: the player whose lists are won.
      won, waiting: the groups.
    """
    if won.failures > waiting.stones or waiting.failures > won.stones:
        return None
    chosen = [
        list(itertools.combinations(range(group.stones), other.failures))
        for group, other in ((won, waiting), (waiting, won))
    ]
    columns = [_columns(group, choices) for group, choices in zip((won, waiting), chosen, strict=True)]
    pairs = _pairs(*columns)
    if not len(pairs[0]):
        return None
    codes = [_codes(won, chosen[0], failures_first=True), _codes(waiting, chosen[1], failures_first=False)]
    unique = [np.unique(x) for x in codes]
    times, won_keys, waiting_keys = fitting(winner, won.failures, *unique, won.failures + waiting.failures)
    if not len(won_keys) or not len(waiting_keys):
        return None
    sides, numbers = [], []
    for group, code, keys, column, pair in zip(
        (won, waiting), codes, (won_keys, waiting_keys), columns, pairs, strict=True
    ):
        side, number = _side(group, code, keys, column, np.unique(pair))
        sides.append(side)
        numbers.append(number[pair])
    shape = (sides[0].columns, sides[1].columns)
    boards = sparse.csr_matrix((np.ones(len(pairs[0])), tuple(numbers)), shape=shape)
    return Coupling(sides[0], sides[1], times, boards)


def _columns(group: Group, choices: list[tuple[int, ...]]) -> np.ndarray:
    """Returns for each choice and board all stones, the failures and the stones chosen, as masks: int[n, B, 3]."""
    masks = group.boards[:, 0]
    cells = np.arange(16)
    held = (masks[:, None] >> cells & 1).astype(bool)
    places = np.tile(cells, (len(masks), 1))[held].reshape(len(masks), group.stones)
    chosen = [(1 << places[:, list(choice)]).sum(axis=1) for choice in choices]
    return np.stack([np.column_stack([group.boards[:, 2], group.boards[:, 1], found]) for found in chosen])


def _pairs(won: np.ndarray, waiting: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the columns, numbered over choices and boards, that go together: (of won lists, of waiting lists)."""
    won, waiting = won.reshape(-1, 3), waiting.reshape(-1, 3)
    ours = won[:, 1] << 16 | won[:, 2]
    theirs = waiting[:, 2] << 16 | waiting[:, 1]
    order = np.argsort(theirs, kind="stable")
    low, high = (np.searchsorted(theirs[order], ours, side=side) for side in ("left", "right"))
    count = high - low
    first = np.repeat(np.arange(len(won)), count)
    second = order[np.repeat(low - (np.cumsum(count) - count), count) + np.arange(count.sum())]
    apart = won[first, 0] & waiting[second, 0] == 0
    return first[apart], second[apart]


def _codes(group: Group, choices: list[tuple[int, ...]], *, failures_first: bool) -> np.ndarray:
    """Returns each row's key under each choice: int64[n, rows]."""
    stones, failures = group.times[:, : group.stones], group.times[:, group.stones :]
    rows = []
    for choice in choices:
        found = stones[:, list(choice)]
        rows.append(encoded(np.concatenate((failures, found) if failures_first else (found, failures), axis=1)))
    return np.stack(rows)


def _side(
    group: Group, codes: np.ndarray, keys: np.ndarray, columns: np.ndarray, used: np.ndarray
) -> tuple[Side, np.ndarray]:
    """Returns a player's part, and each column's number among those used."""
    boards, number = columns.shape[1], np.full(columns.shape[0] * columns.shape[1], -1)
    choices, start = [], 0
    for n, code in enumerate(codes):
        mine = used[(used >= n * boards) & (used < (n + 1) * boards)]
        if not len(mine):
            continue
        if len(mine) > _MOST_OF_THEM * boards:
            mine = np.arange(n * boards, (n + 1) * boards)
        number[mine] = start + np.arange(len(mine))
        at = np.minimum(np.searchsorted(keys, code), len(keys) - 1)
        row = np.flatnonzero(keys[at] == code)
        sums = sparse.csr_matrix((np.ones(len(row)), (at[row], row)), shape=(len(keys), len(code)))
        chosen = None if len(mine) == boards else (mine - n * boards).astype(np.int32)
        choices.append(Choice(chosen, slice(start, start + len(mine)), sums))
        start += len(mine)
    return Side(group, tuple(choices), len(keys), start), number
