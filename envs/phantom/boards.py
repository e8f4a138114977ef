"""Boards as bits: which sets of cells win, and how they are drawn. Cell r * columns + c is bit r * columns + c."""

from __future__ import annotations

import functools
from collections.abc import Iterable

Cells = tuple[int, ...]
"""Sets of cells, one bit mask each."""


def mask_of(cells: Iterable[int]) -> int:
    """Returns the set of some cells as bits."""
    return sum(1 << cell for cell in set(cells))


def rows_of_three() -> Cells:
    """Returns the eight lines of tic-tac-toe."""
    rows = [(3 * n, 3 * n + 1, 3 * n + 2) for n in range(3)]
    columns = [(n, n + 3, n + 6) for n in range(3)]
    return tuple(mask_of(line) for line in [*rows, *columns, (0, 4, 8), (2, 4, 6)])


def hex_neighbours(size: int) -> tuple[tuple[int, ...], ...]:
    """Returns the cells that touch each cell: six neighbours, (r - 1, c + 1) and (r + 1, c - 1) among them."""
    steps = ((0, -1), (0, 1), (-1, 0), (1, 0), (-1, 1), (1, -1))
    near = []
    for r in range(size):
        for c in range(size):
            there = [(r + y, c + x) for y, x in steps]
            near.append(tuple(y * size + x for y, x in there if 0 <= y < size and 0 <= x < size))
    return tuple(near)


@functools.cache
def hex_chains(size: int) -> tuple[Cells, Cells]:
    """Returns the smallest winning sets of Hex: top to bottom for player 0, left to right for player 1."""
    near = hex_neighbours(size)
    top, bottom = range(size), range(size * (size - 1), size * size)
    found: set[int] = set()

    def extend(path: list[int]) -> None:
        if path[-1] in bottom:
            found.add(mask_of(path))
            return
        for cell in near[path[-1]]:
            if cell not in path:
                extend([*path, cell])

    for cell in top:
        extend([cell])
    least = tuple(sorted(one for one in found if not any(other != one and other & one == other for other in found)))
    return least, tuple(sorted(_transposed(chain, size) for chain in least))


def _transposed(cells: int, size: int) -> int:
    return mask_of(n % size * size + n // size for n in range(size * size) if cells >> n & 1)


def cell_name(cell: int, columns: int) -> str:
    """Returns a cell's name: its column as a letter and its row from the top, "a1" for cell 0."""
    return f"{'abcdefgh'[cell % columns]}{cell // columns + 1}"


def draw(symbols: str, columns: int, *, slanted: bool = False) -> str:
    """Draws a board as text.

    Args:
      symbols: one for each cell.
      columns: of the board.
      slanted: each row half a cell to the right of the one above it, as Hex is drawn.
    """
    lines = ["   " + " ".join("abcdefgh"[:columns])]
    for row in range(len(symbols) // columns):
        cells = " ".join(symbols[row * columns : (row + 1) * columns])
        lines.append(f"{' ' * row if slanted else ''}{row + 1:2} {cells}")
    return "\n".join(lines)
