"""Matches as records with named intervals, and as tables for people."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from rich.table import Table

from dream.evaluation.console import PlainConsole
from dream.evaluation.statistics import Interval


@dataclasses.dataclass(frozen=True)
class MatchReport:
    """What a match came to, from the first player's side.

    Attributes:
      unit: of `points_per_hand`.
      games: rounds played.
      deals: different deals, each played from every seat; they are the sample.
      intervals: mean and 95 % interval of each quantity by name.
    """

    unit: str
    games: int
    deals: int
    intervals: Mapping[str, Interval]

    @classmethod
    def of_record(cls, unit: str, record: Mapping[str, Any]) -> MatchReport:
        """Builds the report from what `match` returns, or from the same as stored in a JSON file."""
        found = {name: x for name, x in record.items() if _is_interval(x)}
        intervals = {name: x if isinstance(x, Interval) else Interval(**x) for name, x in found.items()}
        return cls(unit, record["n"], record["n_pairs"], intervals)

    @property
    def points_per_hand(self) -> Interval:
        """Points per hand, in `unit`."""
        return self.intervals["points_per_hand"]

    @property
    def win_rate(self) -> Interval:
        """The share of rounds won."""
        return self.intervals["win_rate"]

    def __getitem__(self, name: str) -> Interval:
        """Returns a quantity's interval."""
        return self.intervals[name]

    def __str__(self) -> str:
        """Returns points per hand and win rate in one line."""
        points, wins = self.points_per_hand, self.win_rate
        return (
            f"{points.mean:.3g} {self.unit} per hand (95 % {points.low:.3g} to {points.high:.3g}), "
            f"wins {100 * wins.mean:.1f} % ({100 * wins.low:.1f} to {100 * wins.high:.1f}), n = {self.games}"
        )


def _is_interval(value: Any) -> bool:
    return isinstance(value, Interval) or (isinstance(value, dict) and set(value) == set(Interval._fields))


def _places(half_width: float) -> int:
    """Returns the decimals that show the first digit of an interval's half-width; two at least, six at most."""
    return min(max(-math.floor(math.log10(half_width)), 2), 6) if 0 < half_width < math.inf else 2


def report_table(title: str, report: dict[str, Any]) -> None:
    """Prints a match as a table: mean and 95 % interval of each quantity."""
    caption = f"n = {report['n']} rounds, {report['n_pairs']} deals"
    if "games" in report:
        part = round(report["games"] * report["rounds_per_game"].mean)
        caption += f", {part} of the rounds in {report['games']} games, {report['game_pairs']} pairs"
    table = Table(title=title, title_justify="left", caption=caption)
    for column in ("quantity", "mean", "95 % interval"):
        table.add_column(column, justify="left" if column == "quantity" else "right")
    for name, value in report.items():
        if isinstance(value, Interval):
            scale, unit = (100, " %") if name.endswith("_rate") else (1, "")
            places = _places(scale * (value.high - value.low) / 2)
            mean, low, high = (f"{scale * x:.{places}f}{unit}" for x in value)
            table.add_row(name.replace("_", " ").removesuffix(" rate"), mean, f"{low} to {high}")
    PlainConsole().print(table)
