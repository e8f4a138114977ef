"""Collects finished runs of one setting into a result file, and draws their evaluation curves.

    python experiments/collect_runs.py experiments/results/laptop runs/<seed 0> runs/<seed 1> runs/<seed 2>

writes <target>.json - seed, final evaluation, curve, seconds, commit and machine of each run - and <target>.svg. With
--keep the runs that the file holds stay, and the new ones, of further seeds, come after them. Of a run that was resumed
the overrides are those it ended with; `resumed` tells what each later sitting was given.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from run_records import Run, check_paths, config_of, origin, read_json, read_run

from dream.storage import files
from dream.storage.files import EVALUATION_FILE
from dream.training import metrics
from envs.errors import InputError

CURVE = ("win_rate", "points_per_hand", "knock_rate")


def collect(run: Path) -> dict[str, Any]:
    """Returns what is kept of one run.

    Raises:
      InputError: no finished run, or one that was evaluated against nobody.
    """
    report, records = read_json(run / EVALUATION_FILE), metrics.read(run)
    if not records or report["iteration"] != records[-1]["iteration"]:
        raise InputError(
            f"{run}/{EVALUATION_FILE} is of iteration {report['iteration']}, the run's last record of "
            f"{records[-1]['iteration'] if records else 'none'}; finish it with resume={run}"
        )
    if "opponent" not in report:
        raise InputError(f"{run} was evaluated against nobody; it must have eval.opponents")
    prefix = f"eval/{report['opponent']}/"
    points = [record for record in records if prefix + CURVE[0] in record]
    opponents = report.get("by_opponent", {})
    return {
        "seed": config_of(run)["seed"],
        "final": {name: value for name, value in report.items() if name != "by_opponent"},
        **({"final_by_opponent": opponents} if len(opponents) > 1 else {}),
        "curve": [
            {
                "iteration": r["iteration"],
                "seconds": r["seconds"],
                **{name: r[prefix + name] for name in CURVE if prefix + name in r},
            }
            for r in points
        ],
        "iterations": records[-1]["iteration"],
        "seconds": records[-1]["seconds"],
        "compile_seconds": records[-1]["compile_seconds"],
        "decisions": records[-1]["decisions"],
        **origin(run),
    }


def check_no_repeats(paths: list[Path]) -> None:
    """Raises InputError where a run comes twice: its directory, or its seed with the same game and recipe."""
    check_paths(paths)
    runs = [read_run(path) for path in paths]
    for n, run in enumerate(runs):
        for other in runs[:n]:
            if _described(run) == _described(other):
                raise InputError(
                    f"{other.path} and {run.path} are both seed {run.seed} of {run.learner} by one recipe; "
                    "each seed must come once"
                )


def _described(run: Run) -> tuple[Any, ...]:
    return run.seed, run.game.identity, run.recipe


def kept(target: Path) -> list[dict[str, Any]]:
    """Returns the runs of a result file, those of seeds 0, 1 and so on.

    Raises:
      InputError: there is no such file.
    """
    path = target.with_suffix(".json")
    if not path.exists():
        raise InputError(f"{path} does not exist; leave out --keep to begin it")
    return json.loads(path.read_text())["runs"]


def seed_of(run: dict[str, Any]) -> int:
    """Returns the seed of a stored run; older files tell it by the overrides alone.

    Raises:
      InputError: they give several, as those of a sweep did.
    """
    if "seed" in run:
        return run["seed"]
    given = next((text[5:] for text in run["overrides"] if text.startswith("seed=")), "0")
    if not given.isdecimal():
        raise InputError(f"a stored run has seed={given}, which is no single seed; collect all runs without --keep")
    return int(given)


def check_seeds(runs: list[dict[str, Any]]) -> None:
    """Raises InputError unless the runs are of seeds 0, 1 and so on, in this order, as tables number them."""
    seeds = [seed_of(run) for run in runs]
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
        for run in runs:
            curve = run["curve"]
            rates = [100 * point["win_rate"] for point in curve]
            axes.plot([point[axis] for point in curve], rates, label=f"seed {seed_of(run)}")
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
    missing = [run for run in arguments.runs if not (run / EVALUATION_FILE).exists()]
    if missing:
        parser.exit(2, f"error: {missing[0]} is not a finished run; it must hold {EVALUATION_FILE}\n")
    try:
        check_no_repeats(arguments.runs)
        runs = [collect(run) for run in arguments.runs]
        if arguments.keep:
            runs = [*kept(arguments.target), *runs]
            check_seeds(runs)
    except InputError as error:
        parser.exit(2, f"error: {error}\n")
    files.write_json(arguments.target.with_suffix(".json"), {"runs": runs})
    draw(runs, arguments.target.with_suffix(".svg"))
    print(arguments.target.with_suffix(".json"))


if __name__ == "__main__":
    main()
