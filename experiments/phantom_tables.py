"""The table of solvers of games of hidden stones, as lines of Markdown."""

from __future__ import annotations

import result_tables as tables


def solvers_table() -> list[str]:
    """Returns the lines of the table: exploitability of the average by iteration, until it reached the target."""
    lines = [
        "| game | algorithm | iterations | exploitability | value for player 0 | iterations to 0.01 | processor s |",
        "|---|---|---|---|---|---|---|",
    ]
    for game, solvers in sorted(tables.stored("phantom_solvers").items()):
        for name, run in sorted(solvers.items()):
            last = run["curve"][-1]
            reached = next((str(p["iteration"]) for p in run["curve"] if p["exploitability"] <= 0.01), "not reached")
            lines.append(
                f"| {game} | `{name}` | {last['iteration']} | {last['exploitability']:.4f} | {last['value']:+.4f} | "
                f"{reached} | {last['cpu_seconds']:.0f} |"
            )
    return lines
