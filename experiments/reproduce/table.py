"""Writes the table of reproduced numbers into docs/ from results/; --check fails where the two differ."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from measured import interval, shortened
from rows import RESULTS, Row, Spec, read_spec

from envs.errors import InputError

sys.path.append(str(Path(__file__).resolve().parents[1]))
from result_pages import PAGES, fill
from result_tables.common import table as markdown
from scripting.run_records import difference, flat, read_json

HEAD = [
    "Exploitability (NashConv / 2) in thousandths of the game's unit: mean over seeds and its 95 % interval, on a log",
    "scale as it is positive, at the last evaluation within the budget. Nodes are decisions of both players; the",
    "DREAM paper counts terminal histories too, and its rows say how many nodes that makes. Minutes are those of a",
    "whole run, with compiling and evaluating; the last column says when exploitability first was 0.1, then 0.06.",
    "`paper` rows have all settings of `conf/algo`, the paper's own. `ours` have those of `conf/tuned` and of the",
    "row: on small games sums over information sets instead of minibatches of a reservoir, warm starts, exact",
    "averages, and chance in the baseline. Decisions that such a baseline evaluates and that were not played are not",
    "among the nodes: in the first iteration of DREAM's settings for Leduc there are half as many. A value below `at",
    "least` is better than the published one by a factor; the row says why.",
    "`exact`: no sampling, but rounding decides ties of regrets, and machines that sum in another order end apart:",
    "after 1,000 iterations by 0.001 % (CFR) to 6 % (CFR+, DCFR), linear CFR, which oscillates, by a third.",
    "`python experiments/reproduce/run.py <row>` runs a row of `experiments/reproduce/rows.yaml` again.",
]
COLUMNS = ("game", "method", "kind", "budget", "value x 1000", "seeds", "published", "bound", "minutes", "to 0.1; 0.06")


def collected(spec: Spec, folder: Path) -> list[dict[str, Any]]:
    """Returns the results there are, in the order of the rows.

    Raises:
      InputError: none at all, a result of no row, or of another budget, policy or mean than its row has now.
    """
    found = {path.stem: read_json(path) for path in folder.glob("*.json")}
    if not found:
        raise InputError(f"{folder} holds no results; --results must be a folder that run.py wrote into")
    for name, result in found.items():
        row = spec.row(name)
        stored = {"budget": result["budget"], "policy": result["policy"], "mean_over": result.get("mean_over", 1)}
        now = {"budget": row.budget.limits, "policy": row.policy, "mean_over": row.mean_over}
        if differing := difference(flat(stored), flat(now)):
            raise InputError(
                f"{folder / name}.json is not what rows.{name} asks for now: {differing}; run run.py {name} anew"
            )
    return [found[name] for name in spec.rows if name in found]


def machines(results: list[dict[str, Any]]) -> list[str]:
    """Returns the line that says what the runs ran on, and how busy it was."""
    kinds = {f"{' and '.join(r['machine']['device'])}, {'/'.join(r['machine']['cores'])} cores" for r in results}
    loads = [result["load_1_minute"] for result in results]
    return [f"Run on {'; '.join(sorted(kinds))}; load average at a run's start {min(loads):.1f} to {max(loads):.1f}."]


def recipes(results: list[dict[str, Any]]) -> list[str]:
    """Returns the line that says which results hold their settings; those stored before recipes were kept do not."""
    earlier = [f"`{result['row']}`" for result in results if not result.get("recipe")]
    exceptions = f", but for earlier ones: {', '.join(earlier)}" if earlier else ""
    return [f"A result's file has its recipe, all settings resolved{exceptions}."]


def table(spec: Spec, results: list[dict[str, Any]]) -> list[str]:
    """Returns the lines of the table."""
    return markdown(" | ".join(COLUMNS), [_cells(spec, result) for result in results])


def _cells(spec: Spec, result: dict[str, Any]) -> list[str]:
    # From the seeds, so that results stored with another interval are printed in the same way.
    low, high = interval([run["exploitability"] for run in result["runs"]], result["deterministic"])
    spread = "" if low is None or result["deterministic"] else f" ({_number(low)} to {_number(high)})"
    window = result.get("mean_over", 1)
    remarks = [f"mean of the last {window} evaluations"] if window > 1 else []
    row = spec.row(result["row"])
    short_of = shortened(row, result["runs"])  # of the row as it is now, which may ask for more seeds than it did
    remarks += [f"**shortened:** {short_of}"] if short_of else []
    remarks += [row.note] if row.note else []
    published = "" if row.published is None else f"{row.published:g}"
    return [
        spec.games[result["game"]].title,
        f"`{result['algorithm']}`" + (", current policy" if result["policy"] == "current" else ""),
        row.kind,
        "; ".join([str(row.budget), *remarks]),
        _number(result["mean"]) + spread,
        "exact" if result["deterministic"] else str(result["seeds"]),
        f"{published} ({row.source})" if published and row.source else published,
        _bound(row, result),
        _minutes(result["seconds"]),
        _times(result),
    ]


def _bound(row: Row, result: dict[str, Any]) -> str:
    """Returns the bounds of a row and whether the mean keeps to them."""
    both = {"at least": row.tolerance.at_least, "at most": row.tolerance.at_most}
    limits = [f"{name} {limit:g}" for name, limit in both.items() if limit is not None]
    return ", ".join(limits) + (": yes" if row.tolerance.allows(result["mean"]) else ": no") if limits else ""


def _times(result: dict[str, Any]) -> str:
    """Returns the minutes to each of the game's thresholds."""
    if not any(times["reached"] for times in result["seconds_to"].values()):
        return "not reached" if result["seconds_to"] else ""
    return "; ".join(_reached(result, times) for times in result["seconds_to"].values())


def _reached(result: dict[str, Any], times: dict[str, Any]) -> str:
    if times["mean"] is None:
        return "not reached"
    some = "" if times["reached"] == result["seeds"] else f" ({times['reached']} of {result['seeds']} seeds)"
    return _minutes(times["mean"]) + some


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f}" if seconds >= 30 else f"{seconds / 60:.2f}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 1 else f"{value:.2g}"


def pictures(spec: Spec, folder: Path) -> list[str]:
    """Returns the lines that show the plots there are."""
    return [
        f"![exploitability on {game.title}](../../experiments/reproduce/results/{name}.svg)"
        for name, game in spec.games.items()
        if (folder / f"{name}.svg").exists()
    ]


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, fail where the page differs")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the results are")
    parser.add_argument("--page", type=Path, default=PAGES / "results" / "small_games.md", help="the file")
    given = parser.parse_args()
    try:
        spec = read_spec()
        results = collected(spec, given.results)
    except InputError as error:
        parser.exit(2, f"error: {error}\n")
    blocks = [[*HEAD, *recipes(results), *machines(results)], table(spec, results), pictures(spec, given.results)]
    command = "experiments/reproduce/table.py"
    fill(given.page, "reproduced", [block for block in blocks if block], check=given.check, command=command)


if __name__ == "__main__":
    main()
