"""A ladder's records and tables: every player's three ratings, and its result against every other."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from dream.commands.short_names import short_names
from dream.evaluation.console import PlainConsole
from dream.evaluation.ratings import PointRatings, Ratings
from dream.evaluation.standings import Result
from envs import Game, MatchRules


@dataclasses.dataclass(frozen=True)
class _Column:
    """A column of a table."""

    header: str
    cells: list[str]
    justify: Literal["left", "right"] = "right"

    @property
    def whole(self) -> int:
        """The width at which nothing is broken."""
        return max(map(cell_len, (self.header, *self.cells)))

    def least(self, console: Console) -> int:
        """Returns the width at which the header is broken at its words, no number is, and a name only where long."""
        width = max(map(cell_len, (*self.header.split(), *self.cells)))
        return width if self.justify == "right" else min(width, console.width // 2)


def ladder_entries(
    names: list[str], ratings: dict[str, Ratings], by_points: PointRatings, results: dict[tuple[str, str], Result]
) -> list[dict[str, Any]]:
    """Returns what ladder.json holds: a record per player, the strongest by rounds won first.

    Args:
      names: of the players.
      ratings: by "rounds" won among those not tied and, where games are played, by "games" won.
      by_points: ratings by points per hand.
      results: by the two players' names.
    """
    by_rounds, by_games = ratings["rounds"], ratings.get("games")
    entries, order = [], [int(n) for n in np.argsort(-by_rounds.rating, kind="stable")]
    sides = results | {(two, one): result.other_side() for (one, two), result in results.items()}
    for n in order:
        name = names[n]
        entry = {
            "name": name,
            **_rating(by_rounds, n),
            "points": _rating(by_points, n),
            "points_rank": 1 + int(np.sum(by_points.rating > by_points.rating[n])),
            "points_against": {names[k]: _points(sides.get((name, names[k]))) for k in order},
            "results": [{"opponent": other, **sides[name, other].report()} for other in sorted({*names} - {name})],
        }
        if by_games is not None:
            entry["games"] = _rating(by_games, n)
            entry["games_rank"] = 1 + int(np.sum(by_games.rating > by_games.rating[n]))
            entry["games_against"] = {names[k]: _games(sides.get((name, names[k]))) for k in order}
        entries.append(entry)
    return entries


def _rating(ratings: Ratings | PointRatings, n: int) -> dict[str, Any]:
    return {field: x[n].item() for field, x in ratings._asdict().items()}


def _points(result: Result | None) -> float | None:
    return None if result is None else float(result.points.mean())


def _games(result: Result | None) -> float | None:
    return None if result is None or result.games is None else result.games.win


def print_ladder(entries: list[dict[str, Any]], game: Game, rounds: int, rules: MatchRules | None) -> None:
    """Prints the ratings, the cross-tables, and where a rating is finite only by the tie added."""
    unit, finer = f"{game.unit} per hand", max("+.2f", points_form(entries))
    ratings = [_rating_columns(entries, "rating by rounds won", ".0f"), _rating_columns(entries, unit, finer, "points")]
    if rules is not None:
        ratings.append(_rating_columns(entries, f"rating by games to {rules.target}", ".0f", "games"))
    caption = f"{rounds} rounds per pairing, 95 % intervals; all ratings have mean 0"
    _print_fitting(f"ladder of {game.name}", [_players(entries)], ratings, caption)
    title, form = f"{unit} of the row's player against the column's", points_form(entries)
    _cross_table(entries, "points_against", title, lambda x: format(x, form))
    if rules is not None:
        title = f"games to {rules.target}, % won by the row's player against the column's"
        _cross_table(entries, "games_against", title, lambda x: f"{100 * x:.0f}")
    for level in range(max(entry["level"] for entry in entries)):
        above = ", ".join(entry["name"] for entry in entries if entry["level"] <= level)
        below = ", ".join(entry["name"] for entry in entries if entry["level"] > level)
        print(f"{below} won no round against {above}: their distance is finite only by the tie added to each pairing")


def points_form(entries: list[dict[str, Any]]) -> str:
    """Returns how points against each other are written: three digits of the largest, and one decimal at least.

    Args:
      entries: records of ladder.json.
    """
    points = (abs(x) for entry in entries for x in entry["points_against"].values() if x is not None)
    most = max(points, default=0.0)
    return "+.1f" if most >= 10 else "+.2f" if most >= 1 else "+.3f"


def _rating_columns(entries: list[dict[str, Any]], header: str, form: str, kind: str | None = None) -> list[_Column]:
    """Returns ratings, intervals and ranks by points or games; without ranks those by rounds, which order the rows."""
    records = entries if kind is None else [entry[kind] for entry in entries]
    narrow = form == ".0f" and min(record["high"] - record["low"] for record in records) < 10
    form = ".1f" if narrow else form
    # What rounds to -0 is 0.
    numbers = [[float(format(record[name], form)) or 0.0 for name in ("rating", "low", "high")] for record in records]
    shown = [[format(x, form) for x in row] for row in numbers]
    columns = [
        _Column(header, [rating for rating, _, _ in shown]),
        _Column("95 % interval", [f"{low} to {high}" for _, low, high in shown]),
    ]
    if kind is not None:
        columns.append(_Column(f"rank by {kind}", [str(entry[f"{kind}_rank"]) for entry in entries]))
    return columns


def _cross_table(entries: list[dict[str, Any]], key: str, title: str, shown: Callable[[float], str]) -> None:
    rows = [["" if mean is None else shown(mean) for mean in entry[key].values()] for entry in entries]
    numbers = [str(n + 1) for n in range(len(entries))]
    columns = [[_Column(number, list(cells))] for number, cells in zip(numbers, zip(*rows, strict=True), strict=True)]
    _print_fitting(title, [_Column("", numbers), _players(entries)], columns)


def _players(entries: list[dict[str, Any]]) -> _Column:
    names = short_names(entry["name"] for entry in entries)
    return _Column("player", [names[entry["name"]] for entry in entries], "left")


def _print_fitting(title: str, named: list[_Column], groups: list[list[_Column]], caption: str | None = None) -> None:
    """Prints a table, or where the console is too narrow several, with the groups of columns one after the other.

    No number is broken; a name is where it takes more than half of the width.

    Args:
      title, caption: before the first and after the last table.
      named: the columns that say whose a row is, in each table.
      groups: columns that stay together.
    """
    console = PlainConsole()
    whole = [*named, *itertools.chain(*groups)]
    if _width(column.whole for column in whole) <= console.width:
        console.print(_table(whole, title, caption))
        return
    parts: list[list[_Column]] = []
    for group in groups:
        if parts and _width(column.least(console) for column in [*named, *parts[-1], *group]) <= console.width:
            parts[-1] += group
        else:
            parts.append([*group])
    for n, part in enumerate(parts):
        ends = n == len(parts) - 1
        console.print(_table([*named, *part], None if n else title, caption if ends else None, console))


def _width(columns: Iterable[int]) -> int:
    """Returns how wide a table is with its borders."""
    return 1 + sum(width + 3 for width in columns)


def _table(columns: list[_Column], title: str | None, caption: str | None, narrow: Console | None = None) -> Table:
    """Returns a table; on a narrow console only names give way to numbers."""
    table = Table(title=title, title_justify="left", caption=caption)
    for column in columns:
        width = column.least(narrow) if narrow and column.justify == "right" else None
        table.add_column(column.header, justify=column.justify, overflow="fold", width=width)
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*cells)
    return table
