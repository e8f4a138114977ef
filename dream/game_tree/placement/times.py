"""Which times of two players' tries fit together, as a chain of sparse matrices.

On the cells that both have tried, a key holds one turn per cell: for one player, or for the other. Cells of the first
kind were found by the winner to be the waiting player's, cells of the second kind the other way round. A pair of keys
fits exactly if on every cell the stone came before the failure that found it; so the matrix of fitting pairs is a
product over cells, and is applied cell by cell: after n steps a key holds the winner's turns on the first n cells and
the waiting player's on the others. Where several steps at once make a small matrix, that is applied instead, dense.
"""

from __future__ import annotations

import functools

import numpy as np
from scipy import sparse

BITS = 4
"""Of a turn in a key."""
_DIGIT = (1 << BITS) - 1
_DENSE_GAIN = 24
"""How many times faster an entry of a dense matrix is dealt with than one of a sparse matrix."""
_MOST_DENSE = 1 << 22
"""Entries of a dense matrix, at most."""
TimeMatrix = sparse.csr_matrix | np.ndarray


def encoded(turns: np.ndarray) -> np.ndarray:
    """Returns the keys of turns by cell: int64[n], from integer[n, cells]."""
    shifts = BITS * np.arange(turns.shape[1])
    return (turns.astype(np.int64) << shifts).sum(axis=1)


def before(player: int, turn: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Returns whether a player's turn comes before the opponent's turn `other`; player 0 begins."""
    return turn <= other if player == 0 else turn < other


def fitting(
    winner: int, founds: int, winners: np.ndarray, waiters: np.ndarray, cells: int
) -> tuple[list[TimeMatrix], np.ndarray, np.ndarray]:
    """Builds the chain from the waiting player's keys to the winner's.

    Args:
      winner: the player.
      founds: of the cells, how many (the first) the winner found to be the other's; the other found the rest.
      winners, waiters: int64, ascending: the keys of each.
      cells: of every key.
    Returns:
      (matrices, to be applied from the first to the last; the winner's keys that fit any, ascending; the waiting
      player's likewise).
    """
    keys, steps = [waiters], []
    for cell in range(cells):
        rows, columns = _moved(winner, cell, cell < founds, keys[-1], winners)
        codes, row = np.unique(rows, return_inverse=True)
        keys.append(codes)
        steps.append((row, columns))
    matrices, wanted = [], np.ones(len(keys[-1]), bool)
    for n in reversed(range(cells)):
        row, column = steps[n]
        kept = wanted[row]
        row, column = row[kept], column[kept]
        number = np.cumsum(wanted) - 1
        wanted = np.zeros(len(keys[n]), bool)
        wanted[column] = True
        shape = (number[-1] + 1 if len(number) else 0, int(wanted.sum()))
        place = np.cumsum(wanted) - 1
        matrices.append(_matrix(number[row], place[column], shape))
        keys[n] = keys[n][wanted]
    return _planned(matrices[::-1]) if matrices else [], keys[-1], keys[0]


def _moved(winner: int, cell: int, found: bool, keys: np.ndarray, winners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the keys with a cell's turn replaced by one of the winner's that fits, and the places they come from."""
    shift = BITS * cell
    theirs = keys >> shift & _DIGIT
    prefix = (1 << shift + BITS) - 1
    prefixes = np.unique(winners & prefix)
    codes, places = [], []
    for turn in np.unique(winners >> shift & _DIGIT):
        fits = before(1 - winner, theirs, turn) if found else before(winner, turn, theirs)
        place = np.flatnonzero(fits)
        code = keys[place] & ~(_DIGIT << shift) | turn << shift
        at = np.minimum(np.searchsorted(prefixes, code & prefix), len(prefixes) - 1)
        known = prefixes[at] == code & prefix
        codes.append(code[known])
        places.append(place[known])
    return np.concatenate(codes), np.concatenate(places)


def _matrix(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> sparse.csr_matrix:
    return sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=shape)


def _planned(matrices: list[sparse.csr_matrix]) -> list[TimeMatrix]:
    """Multiplies neighbours into dense matrices where that is less work, a dense product being so much faster."""
    sizes = [matrices[0].shape[1], *(matrix.shape[0] for matrix in matrices)]
    best: list[tuple[float, list[tuple[int, int]]]] = [(0.0, [])]
    for end in range(1, len(sizes)):
        options = [(best[end - 1][0] + matrices[end - 1].nnz, [*best[end - 1][1], (end - 1, end)])]
        for start in range(end):
            area = sizes[start] * sizes[end]
            if area <= _MOST_DENSE:
                options.append((best[start][0] + area / _DENSE_GAIN, [*best[start][1], (-start - 1, end)]))
        best.append(min(options, key=lambda option: option[0]))
    return [
        matrices[start] if start >= 0 else _product(matrices[-start - 1 : end]).toarray() for start, end in best[-1][1]
    ]


def _product(matrices: list[sparse.csr_matrix]) -> sparse.csr_matrix:
    return functools.reduce(lambda product, matrix: matrix @ product, matrices)


def applied(matrices: list[TimeMatrix], values: np.ndarray) -> np.ndarray:
    """Carries values of the waiting player's keys to the winner's: [keys, n]."""
    return functools.reduce(lambda x, matrix: matrix @ x, matrices, values)


def applied_back(matrices: list[TimeMatrix], values: np.ndarray) -> np.ndarray:
    """Carries values of the winner's keys to the waiting player's: [keys, n]."""
    return functools.reduce(lambda x, matrix: matrix.T @ x, reversed(matrices), values)
