r"""Sets every learner side by side on one budget: exact exploitability from sweeps' folders, exact matches, a picture.

    python experiments/comparison.py collect runs/comparison/* --out experiments/results/comparison.json
    python experiments/comparison.py trials runs/trials/* --out experiments/results/comparison_trials.json
    python experiments/comparison.py matches runs/comparison/* --env "phantom_ttt classical" \
        --out experiments/results/comparison_matches.json
    python experiments/comparison.py draw

`collect` takes the final evaluation of every finished job: by game and learner the mean over seeds of each policy's
exploitability, with its 95 % interval on a log scale; with --keep the seeds and learners that the file holds already
stay in it. `trials` keeps what was tried before, by learner: the setting that differed and what came of it. `matches`
plays nothing: the values of all pairs of one game, each learner's first seed, are computed from the policies. Results
of other games in a file are kept. `draw` writes comparison.svg and comparison_matches.svg beside the result files.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from collect_runs import overrides
from compare_learners import game_of_run
from comparison_tables import judged
from omegaconf import OmegaConf

from dream.algorithms import read_settings
from dream.evaluation.statistics import positive_interval
from dream.game_tree.exact import round_robin
from dream.game_tree.forms import exact_form
from dream.storage.files import CONFIG_FILE, VERSIONS_FILE
from dream.storage.old_configs import current_config
from dream.storage.policies import find, policy_of
from dream.training.sweeps import FINISHED, load_sweep, settings_in
from envs import Game, InputError, make_bot

RESULTS = Path(__file__).resolve().parent / "results"
COUNTED = ("decisions", "nodes", "episodes", "gradient_steps", "seconds", "compile_seconds")
ROUNDING = 1e-6
"""An exploitability below this is 0: probabilities are float32."""
POLICIES = "exploitability/"
"""What a row's exact values begin with; the name of the policy follows."""


class Job(NamedTuple):
    """A finished job of a sweep: its row, its learner and its game."""

    row: dict[str, Any]
    learner: str
    seed: int
    game_name: str
    game: Game


def finished(folders: list[Path]) -> Iterator[Job]:
    """Yields the finished jobs of sweeps.

    Raises:
      InputError: a folder without runs.
    """
    for folder in folders:
        for row in load_sweep(folder):
            run = Path(row["directory"])
            if row["status"] == FINISHED:
                config = OmegaConf.load(run / CONFIG_FILE)
                name, game = game_of_run(run)
                yield Job(row, learner_of(config), config.seed, name, game)


def learner_of(config: Any) -> str:
    """Returns a run's learner: its algorithm, whether it accumulates, and whether by a critic of histories."""
    accumulates = config.algo.get("accumulate", "none") != "none"
    by_critic = config.algo.get("advantage") == "expected_sarsa"
    how = " ".join(["accumulating"] * accumulates + ["by a critic"] * by_critic)
    return f"{config.algo.name}, {how}" if how else config.algo.name


def collect(folders: list[Path]) -> dict[str, Any]:
    """Returns game -> its unit, what uniform play is worth, and each learner's policies over seeds.

    Raises:
      InputError: no finished job, or a learner with the same seed twice on a game.
    """
    games: dict[str, dict[str, list[Job]]] = {}
    for job in finished(folders):
        jobs = games.setdefault(job.game_name, {}).setdefault(job.learner, [])
        if job.seed in [other.seed for other in jobs]:
            raise InputError(f"{job.row['directory']}: {job.learner} has seed {job.seed} twice on {job.game_name}")
        jobs.append(job)
    if not games:
        raise InputError(f"none of {len(folders)} sweeps has a finished job")
    return {name: _of_game(learners) for name, learners in games.items()}


def _of_game(learners: dict[str, list[Job]]) -> dict[str, Any]:
    game = next(iter(learners.values()))[0].game
    form = exact_form(game)
    uniform = form.values(form.tabulate(make_bot("random", game))).nash_conv / 2 * game.reward_scale
    found = {name: _of_learner(sorted(jobs, key=lambda job: job.seed)) for name, jobs in learners.items()}
    return {"unit": game.unit, "uniform": uniform, "learners": found}


def _of_learner(jobs: list[Job]) -> dict[str, Any]:
    """Returns what the seeds of a learner came to, the command of the first and its settings."""
    rows = [job.row for job in jobs]
    values = {key.removeprefix(POLICIES): [row[key] for row in rows] for key in rows[0] if key.startswith(POLICIES)}
    run = Path(rows[0]["directory"])
    config = OmegaConf.to_container(OmegaConf.load(run / CONFIG_FILE), resolve=True)
    made = [json.loads((Path(row["directory"]) / VERSIONS_FILE).read_text()) for row in rows]
    return {
        "seeds": [job.seed for job in jobs],
        "exploitability": {policy: _over_seeds(found) for policy, found in values.items()},
        **{key: float(np.mean([row[key] for row in rows])) for key in COUNTED if key in rows[0]},
        "recipe": {part: config[part] for part in ("algo", "network")},
        "machine": {key: sorted({str(one[key]) for one in made}) for key in ("device", "cores", "jax")},
    }


def _over_seeds(values: list[float]) -> dict[str, Any]:
    """Returns mean, interval and values; no interval of one seed, or where a seed is 0 to rounding."""
    if len(values) < 2 or min(values) < ROUNDING:
        return {"mean": float(np.mean(values)), "low": None, "high": None, "values": values}
    return positive_interval(np.array(values))._asdict() | {"values": values}


def joined(found: dict[str, Any], stored: dict[str, Any]) -> dict[str, Any]:
    """Returns what was collected, with the stored learners and seeds of the same games.

    Raises:
      InputError: a learner was run by another recipe before, or a seed is stored already.
    """
    joint = {}
    for name, game in found.items():
        before = stored.get(name, {}).get("learners", {})
        learners = {
            learner: _more_seeds(before[learner], one, f"{learner} on {name}") if learner in before else one
            for learner, one in game["learners"].items()
        }
        joint[name] = game | {"learners": before | learners}
    return joint


def _settings(recipe: dict[str, Any]) -> tuple[Any, Any]:
    """Returns a learner's settings and its network's; one that the recipe lacks came later and has its old value."""
    recipe = current_config(recipe)
    return read_settings(recipe["algo"])[1], recipe["network"]


def _more_seeds(stored: dict[str, Any], found: dict[str, Any], name: str) -> dict[str, Any]:
    if _settings(stored["recipe"]) != _settings(found["recipe"]):
        raise InputError(f"{name}: the stored seeds were run by another recipe; collect all seeds without --keep")
    if again := set(stored["seeds"]) & set(found["seeds"]):
        raise InputError(f"{name}: seed {min(again)} is stored already; collect it without --keep")
    seeds = stored["seeds"] + found["seeds"]
    order = np.argsort(seeds)
    values = {
        policy: np.array(one["values"] + found["exploitability"][policy]["values"])[order].tolist()
        for policy, one in stored["exploitability"].items()
    }
    weights = [len(stored["seeds"]), len(found["seeds"])]
    counted = {key: float(np.average([stored[key], found[key]], weights=weights)) for key in COUNTED if key in stored}
    machine = {key: sorted({*one, *found["machine"][key]}) for key, one in stored["machine"].items()}
    return (
        stored
        | counted
        | {
            "seeds": sorted(seeds),
            "recipe": found["recipe"],
            "exploitability": {policy: _over_seeds(of_seeds) for policy, of_seeds in values.items()},
            "machine": machine,
        }
    )


def trials(folders: list[Path]) -> dict[str, Any]:
    """Returns learner -> the sweeps in which its settings were tried: what all jobs were given, and what each came to.

    Raises:
      InputError: a folder without runs.
    """
    tried: dict[str, list[dict[str, Any]]] = {}
    for folder in folders:
        groups: dict[str, dict[str, Any]] = {}
        for job in finished([folder]):
            settings = {name: value for name, value in settings_in(job.row).items() if name.startswith("algo.")}
            given = [text for text in overrides(Path(job.row["directory"])) if text.partition("=")[0] not in settings]
            given = [text for text in given if text.startswith("algo.") and "${" not in text]
            group = groups.setdefault(job.learner, {"game": job.game_name, "given": given, "trials": []})
            group["trials"].append({"settings": settings, "nodes": job.row["nodes"], "objective": job.row["objective"]})
        for learner, group in groups.items():
            tried.setdefault(learner, []).append(group)
    return tried


def matches(folders: list[Path], env: str) -> dict[str, Any]:
    """Returns the expected payoffs of one game: learner -> other -> mean over seats of what the first earns.

    Raises:
      InputError: no finished job of the game.
    """
    jobs: dict[str, Job] = {}
    for job in finished(folders):
        if job.game_name == env and (job.learner not in jobs or job.seed < jobs[job.learner].seed):
            jobs[job.learner] = job
    if not jobs:
        raise InputError(f"no finished job is of {env!r}")
    form = exact_form(next(iter(jobs.values())).game)
    plans = {}
    for name, job in jobs.items():
        plans[name] = form.plans(form.tabulate(policy_of(find(job.row["directory"]), form.game)))
        print(f"{env}: {name}, seed {job.seed}, {form.num_infosets:,} information sets", flush=True)
    payoffs = round_robin(form, list(plans.values())) * form.game.reward_scale
    earned = {
        one: {other: float(value) for other, value in zip(plans, row, strict=True) if other != one}
        for one, row in zip(plans, payoffs, strict=True)
    }
    return {env: {"unit": form.game.unit, "seeds": {n: job.seed for n, job in jobs.items()}, "earned": earned}}


def draw(compared: dict[str, Any], path: Path) -> None:
    """Draws a panel per game: each learner's seeds and their mean, and uniform play as a line."""
    plt = _pyplot()
    from matplotlib import ticker

    figure, panels = plt.subplots(
        1, len(compared), figsize=(3.2 * len(compared) + 1.5, 4.2), squeeze=False, sharey=True
    )
    names = sorted({name for game in compared.values() for name in game["learners"]}, reverse=True)
    for axes, (title, game) in zip(panels[0], sorted(compared.items()), strict=True):
        for name, learner in game["learners"].items():
            policy = judged(learner["exploitability"])
            found, at = learner["exploitability"][policy], names.index(name)
            seeds = np.maximum(found["values"], 1e-4 * game["uniform"])
            axes.plot(seeds, [at] * len(seeds), "o", color="C0" if policy == "current" else "C1", alpha=0.4)
            axes.plot([max(found["mean"], 1e-4 * game["uniform"])], [at], "|", color="black", markersize=14)
        axes.axvline(game["uniform"], color="grey", linewidth=0.8, linestyle="--")
        axes.set(xscale="log", xlabel=f"exploitability, {game['unit']}", title=title, yticks=range(len(names)))
        axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        axes.xaxis.set_minor_formatter(ticker.NullFormatter())
        axes.grid(True, axis="x", which="major", linewidth=0.4, alpha=0.5)
    panels[0][0].set_yticklabels(names)
    figure.suptitle(
        "blue: last iterate, orange: average policy; bar: mean over seeds; dashed: uniform play", fontsize=9
    )
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def draw_matches(played: dict[str, Any], path: Path) -> None:
    """Draws a heat map per game: what the learner of the row earns against that of the column."""
    plt = _pyplot()
    figure, panels = plt.subplots(1, len(played), figsize=(6.5 * len(played), 5.5), squeeze=False)
    for axes, (title, game) in zip(panels[0], played.items(), strict=True):
        names = sorted(game["earned"], key=lambda name: -np.mean(list(game["earned"][name].values())))
        values = np.array([[game["earned"][a].get(b, 0.0) for b in names] for a in names])
        bound = np.abs(values).max()
        axes.imshow(values, cmap="RdBu", vmin=-bound, vmax=bound)
        for (row, column), value in np.ndenumerate(values):
            if row != column:
                axes.text(
                    column,
                    row,
                    f"{value:+.2f}",
                    ha="center",
                    va="center",
                    fontsize=6,
                    color="white" if abs(value) > 0.7 * bound else "black",
                )
        axes.set(
            xticks=range(len(names)), yticks=range(len(names)), title=f"{title}: {game['unit']} per game to the row"
        )
        axes.set_xticklabels(names, rotation=45, ha="right", fontsize=7)
        axes.set_yticklabels(names, fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "dream"
    import matplotlib.pyplot as plt

    return plt


def merge(found: dict[str, Any], path: Path) -> None:
    """Writes results into a file; what it holds under other keys, games or learners, is kept."""
    before = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(before | found, indent=2) + "\n")
    print(path)


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("collect", "trials", "matches"):
        command = commands.add_parser(name)
        command.add_argument("folders", nargs="+", type=Path, help="folders of sweeps")
        command.add_argument("--out", type=Path, required=True, help="the JSON file to write")
        if name == "collect":
            command.add_argument("--keep", action="store_true", help="keep the file's other seeds and learners")
        if name == "matches":
            command.add_argument("--env", required=True, help='the game, such as "phantom_ttt classical"')
    commands.add_parser("draw")
    given = parser.parse_args()
    try:
        if given.command == "draw":
            draw(json.loads((RESULTS / "comparison.json").read_text()), RESULTS / "comparison.svg")
            draw_matches(
                json.loads((RESULTS / "comparison_matches.json").read_text()), RESULTS / "comparison_matches.svg"
            )
        elif given.command == "collect":
            found = collect(given.folders)
            keeps = given.keep and given.out.exists()
            merge(joined(found, json.loads(given.out.read_text())) if keeps else found, given.out)
        elif given.command == "trials":
            merge(trials(given.folders), given.out)
        else:
            merge(matches(given.folders, given.env), given.out)
    except InputError as error:
        parser.exit(2, f"error: {error}\n")


if __name__ == "__main__":
    main()
