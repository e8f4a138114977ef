"""Shows a hand: its islands on the grid of suits and ranks, and its combos, best first.

python -m envs.hand_evaluator 3H 4H 5H 6H 7H 7C 7S 6S 10S JD 6D KH 2C 3D 4S
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import sys
from pathlib import Path
from typing import NoReturn

from rich.console import Console
from rich.table import Table

from envs import cards
from envs.errors import InputError
from envs.hand_evaluator import article, picture
from envs.hand_evaluator.combo import JOKER, RANKS, SUITS, Combo, best_first, name
from envs.hand_evaluator.evaluator import METHODS, HandEvaluator
from envs.hand_evaluator.search import LEVELS

_COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "red")
_MOST_COMBOS = 20_000
"""Of a hand with more combos, the best of the first so many are shown."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Ends with one line and exit code 2."""
        self.exit(2, f"error: {message}\n")


def main(arguments: list[str] | None = None) -> None:
    """Reads the hand and prints; wrong input gets one line and exit code 2, Ctrl-C ends it with 130."""
    parser = _Parser(prog="python -m envs.hand_evaluator", description=__doc__.splitlines()[0])
    parser.add_argument(
        "cards", nargs="+", help='names such as 3H, 10S, JD, 11D, 3♥, blanks or | between; "*" or joker'
    )
    parser.add_argument("--level", default="maximal", help=f"combos to show: {', '.join(LEVELS)} (%(default)s)")
    parser.add_argument("--method", default="exact", help=f"{', '.join(METHODS)} (%(default)s)")
    parser.add_argument("--ace-high", action="store_true", help="an ace may follow the king as well")
    parser.add_argument("--top", type=int, default=10, help="combos to show (%(default)s)")
    parser.add_argument("--flags", action="store_true", help="show the article's flag map and lines")
    parser.add_argument("--svg", default=None, help="file for a picture of islands, control points and combos")
    given = parser.parse_args(arguments)
    if given.top < 1:
        parser.error(f"--top={given.top} is not valid; it must be at least 1")
    try:
        _show(parser, given)
    except KeyboardInterrupt:
        parser.exit(130)


def _show(parser: _Parser, given: argparse.Namespace) -> None:
    try:
        hand = HandEvaluator(" ".join(given.cards), jokers=True, ace_high=given.ace_high)
        flags = _flags(hand) if given.flags else ""
        combos = list(itertools.islice(hand.combos(given.level, given.method), _MOST_COMBOS + 1))
    except InputError as error:
        parser.error(str(error))
    if given.svg is not None:
        try:
            Path(given.svg).write_text(picture.to_svg(hand))
        except OSError as error:
            parser.error(f"--svg={given.svg} cannot be written: {error.strerror}")
    console = Console(file=sys.stdout)
    console.print(_grid(hand))
    if flags:
        print(flags)
    console.print(_combos(hand, combos, given.level, given.top))


def _flags(hand: HandEvaluator) -> str:
    """Returns the article's flag map and lines in words."""
    across, down = hand.lines
    rows = ", ".join(f"{cards.SUITS[suit]} {first}-{last}" for suit, first, last in across) or "none"
    columns = ", ".join(map(str, down)) or "none"
    return f"{picture.flag_table(hand)}\nhorizontal lines: {rows}\nvertical lines: {columns}\n"


def _grid(hand: HandEvaluator) -> Table:
    """Returns the grid: the copies of each card, coloured and lettered by island; control points marked !."""
    table = Table(title=f"{len(hand)} cards, islands: {len(hand.islands)}", title_justify="left")
    table.add_column("")
    for rank in cards.RANKS:
        table.add_column(rank, justify="center")
    where = {card: n for n, island in enumerate(hand.islands) for card in island.cards}
    knows = article.knows(hand.cards, hand.ace_high)
    choices = set(hand.control_points) if knows else set()
    for suit in range(SUITS):
        row = []
        for card in range(RANKS * suit, RANKS * suit + RANKS):
            if card not in where:
                row.append("")
                continue
            n, copies = where[card], hand.cards.count(card)
            letter = chr(ord("a") + n % 26)
            mark = "!" if card in choices else ""
            row.append(f"[{_COLOURS[n % len(_COLOURS)]}]{copies}{letter}{mark}[/]")
        table.add_row(cards.SUITS[suit], *row)
    jokers = hand.cards.count(JOKER)
    marked = "; ! a control point" if knows else ""
    table.caption = f"copies and island{marked}" + (f"; jokers: {jokers}, so one island" if jokers else "")
    table.caption_justify = "left"
    return table


def _combos(hand: HandEvaluator, combos: list[Combo], level: str, top: int) -> Table:
    """Returns the combos, best first."""
    more = len(combos) > _MOST_COMBOS
    shown = heapq.nsmallest(top, combos, key=best_first)
    count = (
        f"more than {_MOST_COMBOS:,} combos" if more else f"{len(combos):,} {'combo' if len(combos) == 1 else 'combos'}"
    )
    best = hand.best()
    table = Table(title=f"{count} ({level}), best {best.dump_points} points", title_justify="left")
    for column in ("points", "cards", "runs", "sets", "dump"):
        table.add_column(column, justify="right" if column in ("points", "cards") else "left")
    for combo in shown:
        melds = (" | ".join(" ".join(map(name, meld)) for meld in kind) for kind in (combo.runs, combo.sets))
        dump = " ".join(map(name, combo.dump))
        table.add_row(str(combo.dump_points), str(combo.dump_count), *melds, dump)
    if more:
        table.caption = f"the best of the first {_MOST_COMBOS:,}; the best of all: {best}"
    return table


if __name__ == "__main__":
    main()
