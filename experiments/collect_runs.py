"""Collects finished runs of one setting into a result file, and draws their evaluation curves.

    python experiments/collect_runs.py experiments/results/laptop runs/<seed 0> runs/<seed 1> runs/<seed 2>

writes <target>.json - final evaluation, curve, seconds, commit and machine of each run - and <target>.svg. With --keep
the runs that the file holds stay, and the new ones, of further seeds, come after them.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from dream.storage import files
from dream.training import metrics
from envs.errors import InputError

CURVE = ("win_rate", "points_per_hand", "knock_rate")


def overrides(run: Path) -> list[str]:
    """Returns what a run was given on its command line, but for folders."""
    command = json.loads((run / "versions.json").read_text())["command"]
    return [text for text in command.split()[1:] if not text.startswith(("run_dir=", "resume="))]


def collect(run: Path) -> dict[str, Any]:
    """Returns what is kept of one run."""
    report = json.loads((run / "evaluation.json").read_text())
    versions = json.loads((run / "versions.json").read_text())
    records = metrics.read(run)
    if report["iteration"] != records[-1]["iteration"]:
        raise InputError(
            f"{run}/evaluation.json is of iteration {report['iteration']}, the run's last record of "
            f"{records[-1]['iteration']}; finish it with resume={run}"
        )
    prefix = f"eval/{report['opponent']}/"
    points = [record for record in records if prefix + CURVE[0] in record]
    opponents = report.get("by_opponent", {})
    return {
        "final": {name: value for name, value in report.items() if name != "by_opponent"},
        **({"final_by_opponent": opponents} if len(opponents) > 1 else {}),
        "curve": [
            {"iteration": r["iteration"], "seconds": r["seconds"], **{name: r[prefix + name] for name in CURVE}}
            for r in points
        ],
        "iterations": records[-1]["iteration"],
        "seconds": records[-1]["seconds"],
        "compile_seconds": records[-1]["compile_seconds"],
        "decisions": records[-1]["decisions"],
        "git_commit": versions["git_commit"],
        "device": versions["device"],
        "jax": versions["jax"],
        "overrides": overrides(run),
    }


def kept(target: Path) -> list[dict[str, Any]]:
    """Returns the runs of a result file, those of seeds 0, 1 and so on.

    Raises:
      InputError: there is no such file.
    """
    path = target.with_suffix(".json")
    if not path.exists():
        raise InputError(f"{path} does not exist; leave out --keep to begin it")
    return json.loads(path.read_text())["runs"]


def check_seeds(runs: list[dict[str, Any]]) -> None:
    """Raises InputError unless the runs are of seeds 0, 1 and so on, in this order, as tables number them."""
    seeds = [next((int(text[5:]) for text in run["overrides"] if text.startswith("seed=")), 0) for run in runs]
    if seeds != list(range(len(runs))):
        raise InputError(f"the runs are of seeds {seeds}; they must be of 0, 1, 2 and so on, in this order")


def draw(runs: list[dict[str, Any]], path: Path) -> None:
    """Draws win rate against iterations and against seconds, one line per seed."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "dream"
    import matplotlib.pyplot as plt

    opponent = runs[0]["final"]["opponent"]
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True)
    for axes, axis in zip(panels, ("iteration", "seconds"), strict=True):
        for seed, run in enumerate(runs):
            axes.plot(
                [p[axis] for p in run["curve"]], [100 * p["win_rate"] for p in run["curve"]], label=f"seed {seed}"
            )
        if opponent == "random":
            axes.axhline(95, color="grey", linewidth=0.8, linestyle="--")
        axes.set_xlabel(axis)
    panels[0].set_ylabel(f"rounds won against {opponent}, %")
    panels[0].legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", type=Path)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--keep", action="store_true", help="add the runs to those of the file")
    arguments = parser.parse_args()
    missing = [run for run in arguments.runs if not (run / "evaluation.json").exists()]
    if missing:
        print(f"error: {missing[0]} is not a finished run; it must hold evaluation.json", file=sys.stderr)
        sys.exit(2)
    try:
        runs = [collect(run) for run in arguments.runs]
        if arguments.keep:
            runs = [*kept(arguments.target), *runs]
            check_seeds(runs)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    files.write_json(arguments.target.with_suffix(".json"), {"runs": runs})
    draw(runs, arguments.target.with_suffix(".svg"))
    print(arguments.target.with_suffix(".json"))


if __name__ == "__main__":
    main()
