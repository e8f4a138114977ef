"""Boards of phantom games as SVG: squares for tic-tac-toe, hexagons for Hex."""

from __future__ import annotations

import html
import math

from envs.phantom.boards import cell_name

_SIZE = 48
_FILL = {"x": "#1f2937", "o": "#ffffff"}


def board_svg(symbols: str, columns: int, caption: str, *, slanted: bool = False) -> str:
    """Draws a board as an SVG document.

    Args:
      symbols: of each cell "x", "o" or "." for an empty or unknown one.
      columns: of the board.
      caption: below the board.
      slanted: hexagons, each row half a cell further to the right; player 0 joins the dark edges, player 1 the light.
    """
    rows = len(symbols) // columns
    high = _SIZE * (math.sqrt(3) / 2 if slanted else 1)
    width = _SIZE * (columns + (rows - 1) / 2 * slanted) + _SIZE
    height = high * rows + 1.6 * _SIZE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.1f} {height:.1f}" font-family="sans-serif">'
    ]
    for cell, symbol in enumerate(symbols):
        row, column = divmod(cell, columns)
        x = _SIZE * (column + 1 + row / 2 * slanted)
        y = high * row + 0.7 * _SIZE
        parts.append(_cell_outline(x, y, slanted))
        if symbol in _FILL:
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_SIZE / 3:.1f}" fill="{_FILL[symbol]}" stroke="#000"/>'
            )
        else:
            parts.append(f'<text x="{x:.1f}" y="{y + 5:.1f}" {_LABEL}>{cell_name(cell, columns)}</text>')
    parts.append(f'<text x="{width / 2:.1f}" y="{height - 6:.1f}" {_LABEL}>{html.escape(caption)}</text></svg>')
    return "".join(parts)


_LABEL = 'text-anchor="middle" font-size="13" fill="#6b7280"'


def _cell_outline(x: float, y: float, slanted: bool) -> str:
    if not slanted:
        half = _SIZE / 2
        return f'<rect x="{x - half:.1f}" y="{y - half:.1f}" width="{_SIZE}" height="{_SIZE}" {_EDGE}/>'
    radius = _SIZE / math.sqrt(3)
    corners = [(x + radius * math.sin(math.pi / 3 * n), y - radius * math.cos(math.pi / 3 * n)) for n in range(6)]
    return f'<polygon points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in corners)}" {_EDGE}/>'


_EDGE = 'fill="#f3e9d2" stroke="#374151"'
