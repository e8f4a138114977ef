"""A hand as a picture: islands and control points on the grid of suits and ranks, and its combos, best first.

Rows and columns are those of the article: hearts, spades, clubs and diamonds by ranks 1 to 13.
"""

from __future__ import annotations

import heapq
import itertools
from typing import Any

from envs import cards, drawing
from envs.hand_evaluator import article
from envs.hand_evaluator.combo import JOKER, RANKS, SUITS, Combo, best_first, card_of, name

ROWS = (1, 0, 3, 2)
"""Suits in the article's order."""
_COLOURS = ("#cfe3ff", "#ffe3b8", "#cdeccb", "#f3d0ee", "#d9d4f7", "#ffd2cf", "#c9ecec", "#e8e3c4")
_CELL, _LEFT, _TOP, _MOST_COMBOS = 44, 40, 56, 20_000
_SYMBOLS = "♠♥♦♣"


def to_svg(hand: Any, top: int = 3) -> str:
    """Draws a hand and its best maximal combos.

    Args:
      hand: a HandEvaluator.
      top: combos shown.
    """
    combos = heapq.nsmallest(top, itertools.islice(hand.combos("maximal"), _MOST_COMBOS), key=best_first)
    rows = tuple(_combo_row(n, combo) for n, combo in enumerate(combos, 1))
    below = drawing.to_svg(drawing.Scene(f"{len(hand)} cards: the best of its maximal combos", rows))
    height = _TOP + SUITS * _CELL + 34
    inner = below.replace("<svg ", f'<svg y="{height}" ', 1)
    width, below_height = (int(x) for x in below.split('viewBox="0 0 ')[1].split('"')[0].split())
    width, whole = max(width, _LEFT + RANKS * _CELL + 12), height + below_height
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {whole}" width="{width}" height="{whole}"'
    font = 'font-family="DejaVu Sans, Arial, sans-serif" role="img"'
    about = f"<title>{drawing.clean(repr(hand))}</title>"
    return f"{head} {font}>{about}{''.join(_grid(hand))}{inner}</svg>"


def flag_table(hand: Any) -> str:
    """Returns the article's _flagMap as a table: bits of each card held, from run (lowest) to second set.

    Args:
      hand: a HandEvaluator without jokers, its ace low.
    Raises:
      InputError: a hand the article does not know.
    """
    flags = hand.flag_map
    lines = ["   " + "".join(f"{rank:>9}" for rank in range(1, RANKS + 1))]
    for suit in ROWS:
        bits = (f"{flags[suit, rank]:08b}" if flags[suit, rank] else "." for rank in range(RANKS))
        lines.append(f"{cards.SUITS[suit]}  " + "".join(f"{text:>9}" for text in bits))
    return "\n".join(lines)


def _combo_row(number: int, combo: Combo) -> drawing.Row:
    melds = [("run", meld) for meld in combo.runs] + [("set", meld) for meld in combo.sets]
    groups = [drawing.Group(tuple(map(_piece, meld)), kind) for kind, meld in melds]
    if combo.dump:
        groups.append(drawing.Group(tuple(map(_piece, combo.dump)), "dump"))
    return drawing.Row(f"{number}.", tuple(groups), f"dump {combo.dump_points} points, {combo.dump_count} cards")


def _piece(card: int) -> drawing.Card:
    return drawing.Card("*") if card == JOKER else drawing.card(name(card))


def _grid(hand: Any) -> list[str]:
    """Returns the grid's elements: colour and letter of the island, copies, a ring around control points."""
    knows = article.knows(hand.cards, hand.ace_high)
    where = {card: n for n, island in enumerate(hand.islands) for card in island.cards}
    choices = set(hand.control_points) if knows else set()
    jokers = hand.cards.count(JOKER)
    caption = "island, copies" + ("; ringed: a control point" if knows else "") + (f"; {jokers} jokers" * bool(jokers))
    count = len(hand.islands)
    parts = [_text(12, 22, f"{len(hand)} cards, {count} island{'' if count == 1 else 's'}", 14, bold=True)]
    parts += [_text(_LEFT + _CELL * (rank + 0.5), _TOP - 8, str(rank + 1), 12) for rank in range(RANKS)]
    for row, suit in enumerate(ROWS):
        y = _TOP + _CELL * row
        colour = drawing.COLOURS[cards.SUITS[suit]]
        parts.append(_text(20, y + 28, _SYMBOLS[suit], 18, fill=colour))
        for rank in range(RANKS):
            card, x = RANKS * suit + rank, _LEFT + _CELL * rank
            held = card in where
            fill = _COLOURS[where[card] % len(_COLOURS)] if held else "#ffffff"
            size = f'width="{_CELL - 2}" height="{_CELL - 2}" rx="4"'
            parts.append(f'<rect x="{x}" y="{y}" {size} fill="{fill}" stroke="#999"/>')
            if held:
                letter = chr(ord("a") + where[card] % 26)
                parts.append(_text(x + _CELL / 2 - 1, y + 27, f"{letter}{hand.cards.count(card)}", 14, fill=colour))
            if card in choices:
                middle = f'cx="{x + _CELL / 2 - 1:g}" cy="{y + _CELL / 2 - 1:g}" r="18"'
                parts.append(f'<circle {middle} fill="none" stroke="#c77700" stroke-width="2.5"/>')
    return [*parts, _text(_LEFT, _TOP + SUITS * _CELL + 16, caption, 12, middle=False)]


def lines_of(code: int) -> tuple[list[tuple[int, int, int]], list[int]]:
    """Returns a packed hand's lines as the article lists them.

    Returns:
      (suit, first rank, last rank) of each horizontal line, and the rank of each vertical one, ranks from 1.
    """
    rows, columns = article.lines(code)
    across = [(card_of(row[0]) // RANKS, row[0] // SUITS + 1, row[-1] // SUITS + 1) for row in rows]
    return across, [column[0] // SUITS + 1 for column in columns]


def _text(
    x: float, y: float, text: str, size: int, *, fill: str = "#1a1a1a", bold: bool = False, middle: bool = True
) -> str:
    anchor = ' text-anchor="middle"' if middle and not bold else ""
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:g}" y="{y}" font-size="{size}" fill="{fill}"{anchor}{weight}>{drawing.clean(text)}</text>'
