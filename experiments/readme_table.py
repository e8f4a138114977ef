"""Writes the README's table of results from the files in experiments/results; --check fails where the two differ."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS, README = ROOT / "experiments" / "results", ROOT / "README.md"
START, END = "<!-- results -->", "<!-- /results -->"


def percent(interval: dict[str, float]) -> str:
    """Returns a rate and its 95 % interval."""
    return f"{100 * interval['mean']:.2f} % ({100 * interval['low']:.2f} to {100 * interval['high']:.2f})"


def laptop_table() -> list[str]:
    """Returns the lines of the laptop preset's table."""
    path = RESULTS / "laptop.json"
    if not path.exists():
        return []
    runs = json.loads(path.read_text())["runs"]
    lines = [
        "`python -m dream.run preset=laptop seed=<s>` against uniform random play, "
        f"{runs[0]['final']['n']:,} mirrored hands, 95 % intervals; {runs[0]['device']}, two cores:",
        "",
        "| seed | hands won | knocked | points a hand | decisions | minutes | of them compiling |",
        "|---|---|---|---|---|---|---|",
    ]
    for seed, run in enumerate(runs):
        final = run["final"]
        points = final["points_per_hand"]
        lines.append(
            f"| {seed} | {percent(final['win_rate'])} | {percent(final['knock_rate'])} "
            f"| {points['mean']:.1f} ({points['low']:.1f} to {points['high']:.1f}) "
            f"| {run['decisions'] / 1e6:.1f} M | {run['seconds'] / 60:.1f} | {run['compile_seconds'] / 60:.1f} |"
        )
    return [*lines, "", "![hands won against random](experiments/results/laptop.svg)"]


def benchmark_table() -> list[str]:
    """Returns the lines of the benchmarks' table."""
    rows = []
    for name, key, text in (
        ("random_play", "decisions_per_s", "uniform random play, full legal mask, decisions/s"),
        ("random_play", "ratio", "the same over pyspiel's gin_rummy driven from Python"),
        ("selfplay", "decisions_per_s", "self-play with the document's network, decisions/s"),
        ("selfplay", "ratio", "the same over dense 4,887-vectors"),
        ("memory", "peak_gib", "peak memory of one iteration of 8,192 games, GiB"),
    ):
        path = RESULTS / f"{name}.json"
        if path.exists():
            value = json.loads(path.read_text())[key]
            rows.append(f"| {text} | {value:,.0f} |" if value > 1000 else f"| {text} | {value:.2f} |")
    head = [
        "Benchmarks (`experiments/benchmarks/`, medians, two shared CPU cores):",
        "",
        "| what | measured |",
        "|---|---|",
    ]
    return [*head, *rows] if rows else []


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, fail where the README differs")
    check = parser.parse_args().check
    text = README.read_text()
    before, rest = text.split(START)
    after = rest.split(END)[1]
    blocks = [block for block in (laptop_table(), benchmark_table()) if block]
    body = "\n\n".join("\n".join(block) for block in blocks)
    new = f"{before}{START}\n\n{body}\n\n{END}{after}"
    if check and new != text:
        print(
            "error: README.md differs from experiments/results; run python experiments/readme_table.py", file=sys.stderr
        )
        sys.exit(1)
    if not check:
        README.write_text(new)


if __name__ == "__main__":
    main()
