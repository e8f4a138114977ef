"""The tables of algo.correction as lines of Markdown: a line per cell of the grid, means over its seeds."""

from __future__ import annotations

from typing import Any

import numpy as np

from dream.evaluation.statistics import mean_interval, positive_interval
from result_tables.common import percent, signed, stored, table


def corrections_table(game: str) -> list[str]:
    """Returns the lines of a game's table, of the cells that it has results of; exploration where that differs."""
    cells, rows = _cells(stored(f"corrections_{game}")), []
    shown = 3 if len({exploration for *_, exploration in cells}) > 1 else 2
    for cell, runs in cells.items():
        moment = f"{np.mean([run['sampling']['regret_second_moment'] for run in runs]):.2g}"
        rows.append([*cell[:shown], len(runs), *_ROWS[game](runs), moment])
    head = [*("trace", "clip", "exploration")[:shown], "seeds", *_COLUMNS[game], "second moment of regrets"]
    return table(" | ".join(head), rows)


def _cells(results: dict[str, Any]) -> dict[tuple[str, ...], list[dict[str, Any]]]:
    """Returns the runs by trace, clip and exploration, from no correction to the full one."""
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for name, run in results.items():
        found.setdefault(tuple(name.partition("/")[0].split("_")), []).append(run)
    return dict(sorted(found.items(), key=lambda item: [np.inf if x == "null" else float(x) for x in item[0]]))


def _gin(runs: list[dict[str, Any]]) -> list[str]:
    """Returns rates and points over seeds; of one run, over its rounds."""

    def over(opponent: str, name: str) -> dict[str, float]:
        found = [run["final_by_opponent"][opponent][name] for run in runs]
        return found[0] if len(found) == 1 else mean_interval(np.array([x["mean"] for x in found]))._asdict()

    rates = [percent(over(opponent, "win_rate")) for opponent in ("random", "simple_bot")]
    return [*rates, signed(over("simple_bot", "points_per_hand"))]


def _leduc(runs: list[dict[str, Any]]) -> list[str]:
    """Returns the exploitability over seeds."""
    values = np.array([run["exploitability"] for run in runs])
    if len(values) == 1:
        return [f"{values[0]:.3f}"]
    return ["{:.3f} ({:.3f} to {:.3f})".format(*positive_interval(values))]


_COLUMNS = {
    "gin_rummy": ("against random", "against the simple bot", "points per hand against it"),
    "leduc_poker": ("exploitability of the average, chips",),
}
_ROWS = {"gin_rummy": _gin, "leduc_poker": _leduc}
