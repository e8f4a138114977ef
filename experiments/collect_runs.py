"""Collects finished runs of one setting into a result file, and draws their evaluation curves.

    python experiments/collect_runs.py experiments/results/laptop runs/<seed 0> runs/<seed 1> runs/<seed 2>

writes <target>.json - seed, final evaluation, curve, seconds, commit and machine of each run, and their setting: game,
recipe and budget - and <target>.svg. With --keep the runs that the file holds stay, and the new ones, of further seeds
and the same setting, come after them. Of a run that was resumed the overrides are those it ended with; `resumed` tells
what each later sitting was given.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from scripting.arguments import Parser
from scripting.run_records import check_alike, check_distinct, config_of, flat, origin, read_json, read_run, run_of

from dream.storage import files
from dream.storage.files import EVALUATION_FILE
from dream.storage.reports import ASKED
from dream.training import metrics
from dream.training.sweeps import is_over
from envs.errors import InputError

CURVE = ("win_rate", "points_per_hand", "knock_rate")
DRAWN = {"iteration", "seconds", "win_rate"}
SETTING = ("env", "algo", "network", "iterations", "budget")
"""Of a run's configuration: what runs that stand in one file have in common."""


def collect(run: Path) -> dict[str, Any]:
    """Returns what is kept of one run.

    Raises:
      InputError: no finished run, or one that was evaluated against nobody.
    """
    report, records = read_json(run / EVALUATION_FILE), metrics.read(run)
    if not isinstance(report, dict) or "iteration" not in report:
        raise InputError(f"{run / EVALUATION_FILE} holds no evaluation of a run; make it again with resume={run}")
    if not records or report["iteration"] != records[-1]["iteration"]:
        raise InputError(
            f"{run}/{EVALUATION_FILE} is of iteration {report['iteration']}, the run's last record of "
            f"{records[-1]['iteration'] if records else 'none'}; finish it with resume={run}"
        )
    config = config_of(run)
    if not is_over(flat(config), records[-1], report):
        raise InputError(
            f"{run} has done {report['iteration']} of {config['iterations']} iterations; finish it with resume={run}"
        )
    if "opponent" not in report:
        raise InputError(f"{run} was evaluated against nobody; it must have eval.opponents")
    prefix = f"eval/{report['opponent']}/"
    points = [record for record in records if prefix + CURVE[0] in record]
    opponents = report.get("by_opponent", {})
    return {
        "seed": config["seed"],
        "final": {name: value for name, value in report.items() if name not in ("by_opponent", ASKED)},
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


def setting_of(paths: list[Path]) -> dict[str, Any]:
    """Returns the setting that runs have in common.

    Raises:
      InputError: they are of several games, recipes or budgets, or a directory or a seed comes twice.
    """
    runs = [read_run(path) for path in paths]
    check_alike(runs)
    check_distinct(runs)
    config = config_of(paths[0])
    return {part: config[part] for part in SETTING if part in config}


def _file(target: Path, ending: str) -> Path:
    """Returns a file of the target: its name, which may hold points, and an ending."""
    return target.with_name(target.name.removesuffix(".json") + ending)


def kept(target: Path) -> dict[str, Any]:
    """Returns what a result file holds: `runs`, those of seeds 0, 1 and so on, and `setting`, which older files lack.

    Raises:
      InputError: there is no such file, or it is of something else.
    """
    path = _file(target, ".json")
    if not path.exists():
        raise InputError(f"{path} does not exist; leave out --keep to begin it")
    stored = read_json(path)
    runs = stored.get("runs") if isinstance(stored, dict) else None
    if not isinstance(runs, list) or not runs or not all(map(_is_run, runs)):
        raise InputError(f"{path} holds no runs to add to; --keep must be given a file that this script wrote")
    return stored


def _is_run(one: Any) -> bool:
    """Returns whether a stored value has what is read of a run again: its seed, and what is drawn."""
    if not isinstance(one, dict) or not isinstance(one.get("final"), dict) or not isinstance(one.get("curve"), list):
        return False
    texts = one.get("overrides")
    seeded = isinstance(one.get("seed"), int) or (isinstance(texts, list) and all(isinstance(x, str) for x in texts))
    drawn = all(isinstance(point, dict) and point.keys() >= DRAWN for point in one["curve"])
    return seeded and drawn and "opponent" in one["final"]


def added(target: Path, runs: list[dict[str, Any]], paths: list[Path]) -> dict[str, Any]:
    """Returns what a result file holds with further runs.

    Raises:
      InputError: no result file, runs of another setting than its own, or of seeds that do not come next.
    """
    stored = kept(target)
    path, every = _file(target, ".json"), [*stored["runs"], *runs]
    check_seeds(every)
    if "setting" in stored:
        check_alike([run_of(path, {**stored["setting"], "seed": seed_of(every[0])}), *map(read_run, paths)])
    else:
        print(f"warning: {path} does not tell its setting; the new runs are not compared with it", file=sys.stderr)
    return {**stored, "runs": every}


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


def check_opponents(runs: list[dict[str, Any]]) -> None:
    """Raises InputError unless all runs were evaluated against the same opponents, in the same order."""
    first, *others = [(seed_of(run), list(run.get("final_by_opponent", [run["final"]["opponent"]]))) for run in runs]
    for seed, met in others:
        if met != first[1]:
            raise InputError(
                f"seed {first[0]} was evaluated against {', '.join(first[1])}, seed {seed} against {', '.join(met)}; "
                "it must be the same eval.opponents for all"
            )


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
    plt.close(figure)


def main() -> None:
    """Runs the command."""
    parser = Parser(__doc__)
    parser.add_argument("target", type=Path)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--keep", action="store_true", help="add the runs to those of the file")
    arguments = parser.parse_args()
    missing = [run for run in arguments.runs if not (run / EVALUATION_FILE).exists()]
    if missing:
        parser.exit(2, f"error: {missing[0]} is not a finished run; it must hold {EVALUATION_FILE}\n")
    if not arguments.target.parent.is_dir():
        parser.exit(2, f"error: {arguments.target.parent} is no folder; the target must be in one that is there\n")
    try:
        result = {"setting": setting_of(arguments.runs), "runs": [collect(run) for run in arguments.runs]}
        if arguments.keep:
            result = added(arguments.target, result["runs"], arguments.runs)
        check_opponents(result["runs"])
    except InputError as error:
        parser.exit(2, f"error: {error}\n")
    files.write_json(_file(arguments.target, ".json"), result)
    draw(result["runs"], _file(arguments.target, ".svg"))
    print(_file(arguments.target, ".json"))


if __name__ == "__main__":
    main()
