"""A ladder's records and tables: every player's three ratings, and its result against every other."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from dream.commands.short_names import short_names
from dream.evaluation.ratings import PointRatings, Ratings
from dream.evaluation.standings import Result
from envs import Game, MatchRules


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
    unit = f"{game.unit} per hand"
    caption = f"{rounds} rounds per pairing, 95 % intervals; all ratings have mean 0"
    table = Table(title=f"ladder of {game.name}", title_justify="left", caption=caption)
    columns = ["player", "rating by rounds won", "95 % interval", unit, "95 % interval", "rank by points"]
    if rules is not None:
        columns += [f"rating by games to {rules.target}", "95 % interval", "rank by games"]
    for column in columns:
        table.add_column(column, justify="left" if column == "player" else "right")
    finer, names = max("+.2f", points_form(entries)), short_names(entry["name"] for entry in entries)
    for entry in entries:
        cells = [
            names[entry["name"]],
            *_cells(entry, ".0f"),
            *_cells(entry["points"], finer),
            str(entry["points_rank"]),
        ]
        if rules is not None:
            cells += [*_cells(entry["games"], ".0f"), str(entry["games_rank"])]
        table.add_row(*cells)
    Console(force_jupyter=False, markup=False, emoji=False).print(table)
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


def _cells(record: dict[str, Any], form: str) -> tuple[str, str]:
    rating, low, high = (format(record[name], form) for name in ("rating", "low", "high"))
    return rating, f"{low} to {high}"


def _cross_table(entries: list[dict[str, Any]], key: str, title: str, shown: Any) -> None:
    cross, names = Table(title=title, title_justify="left"), short_names(entry["name"] for entry in entries)
    for column in ("", "player", *(str(n + 1) for n in range(len(entries)))):
        cross.add_column(column, justify="left" if column == "player" else "right")
    for n, entry in enumerate(entries):
        cells = ("" if mean is None else shown(mean) for mean in entry[key].values())
        cross.add_row(str(n + 1), names[entry["name"]], *cells)
    Console(force_jupyter=False, markup=False, emoji=False).print(cross)
