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
from comparison_tables import judged
from omegaconf import OmegaConf
from run_records import Run, check_alike, check_distinct, check_games, overrides, read_run, recipe_of, sittings

from dream.evaluation.statistics import positive_interval
from dream.game_tree.exact import round_robin
from dream.game_tree.forms import exact_form
from dream.storage.files import CONFIG_FILE, write_json
from dream.storage.policies import find, policy_of
from dream.training.sweeps import FINISHED, load_sweep, settings_in
from envs import InputError, make_bot

RESULTS = Path(__file__).resolve().parent / "results"
COUNTED = ("decisions", "nodes", "episodes", "gradient_steps", "seconds", "compile_seconds")
ROUNDING = 1e-6
"""An exploitability below this is 0: probabilities are float32."""
POLICIES = "exploitability/"
"""What a row's exact values begin with; the name of the policy follows."""


class Job(NamedTuple):
    """A finished job of a sweep: its row, and what its directory says of it."""

    row: dict[str, Any]
    run: Run


def finished(folders: list[Path]) -> Iterator[Job]:
    """Yields the finished jobs of sweeps.

    Raises:
      InputError: a folder without runs.
    """
    for folder in folders:
        for row in load_sweep(folder):
            run = Path(row["directory"])
            if row["status"] == FINISHED:
                yield Job(row, read_run(run))


def collect(folders: list[Path]) -> dict[str, Any]:
    """Returns game -> its unit, what uniform play is worth, and each learner's policies over seeds.

    Raises:
      InputError: no finished job, a learner with the same seed twice on a game, jobs of one name by several rules, or
        seeds of several recipes or budgets.
    """
    games: dict[str, dict[str, list[Job]]] = {}
    for job in finished(folders):
        games.setdefault(job.run.game_name, {}).setdefault(job.run.learner, []).append(job)
    if not games:
        raise InputError(f"none of {len(folders)} sweeps has a finished job")
    for learners in games.values():
        check_games([job.run for jobs in learners.values() for job in jobs])
        for jobs in learners.values():
            check_distinct([job.run for job in jobs])
            check_alike([job.run for job in jobs])
    return {name: _of_game(learners) for name, learners in games.items()}


def _of_game(learners: dict[str, list[Job]]) -> dict[str, Any]:
    game = next(iter(learners.values()))[0].run.game
    form = exact_form(game)
    uniform = form.values(form.tabulate(make_bot("random", game))).nash_conv / 2 * game.reward_scale
    found = {name: _of_learner(sorted(jobs, key=lambda job: job.run.seed)) for name, jobs in learners.items()}
    return {"game": game.identity, "unit": game.unit, "uniform": uniform, "learners": found}


def _of_learner(jobs: list[Job]) -> dict[str, Any]:
    """Returns what the seeds of a learner came to, the command of the first and its settings."""
    rows = [job.row for job in jobs]
    values = {key.removeprefix(POLICIES): [row[key] for row in rows] for key in rows[0] if key.startswith(POLICIES)}
    config = OmegaConf.to_container(OmegaConf.load(jobs[0].run.path / CONFIG_FILE), resolve=True)
    made = [sitting for job in jobs for sitting in sittings(job.run.path)]
    return {
        "seeds": [job.run.seed for job in jobs],
        "exploitability": {policy: _over_seeds(found) for policy, found in values.items()},
        **{key: float(np.mean([row[key] for row in rows])) for key in COUNTED if key in rows[0]},
        "recipe": {part: config[part] for part in ("algo", "network")},
        "budget": jobs[0].run.budget,
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
      InputError: a game by other rules, a learner by another recipe or budget, or a seed that is stored already.
    """
    joint = {}
    for name, game in found.items():
        before = stored.get(name, {})
        if before and not _same_game(before, game):
            raise InputError(f"{name}: the stored values are of other rules; collect all learners without --keep")
        kept = before.get("learners", {})
        learners = {
            learner: _more_seeds(kept[learner], one, f"{learner} on {name}") if learner in kept else one
            for learner, one in game["learners"].items()
        }
        joint[name] = game | {"learners": kept | learners}
    return joint


def _same_game(stored: dict[str, Any], found: dict[str, Any]) -> bool:
    """Returns whether two results are of one game; an older one tells it by what uniform play loses alone."""
    if "game" in stored:
        return stored["game"] == json.loads(json.dumps(found["game"]))
    return stored["unit"] == found["unit"] and bool(np.isclose(stored["uniform"], found["uniform"], rtol=1e-4))


def _same_budget(stored: dict[str, Any], found: dict[str, Any]) -> bool:
    """Returns whether two results are of one budget; an older one tells it by what was spent alone."""
    if "budget" in stored:
        return stored["budget"] == found["budget"]
    spent = [(stored[key], found[key]) for key in ("nodes", "episodes") if stored.get(key) and found.get(key)]
    return all(abs(before - now) <= 0.1 * before for before, now in spent[:1])


def _more_seeds(stored: dict[str, Any], found: dict[str, Any], name: str) -> dict[str, Any]:
    if recipe_of(stored["recipe"]) != recipe_of(found["recipe"]):
        raise InputError(f"{name}: the stored seeds were run by another recipe; collect all seeds without --keep")
    if not _same_budget(stored, found):
        raise InputError(f"{name}: the stored seeds had another budget; collect all seeds without --keep")
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
            "budget": found["budget"],
            "exploitability": {policy: _over_seeds(of_seeds) for policy, of_seeds in values.items()},
            "machine": machine,
        }
    )


def trials(folders: list[Path]) -> dict[str, Any]:
    """Returns learner -> the sweeps in which its settings were tried: what all jobs were given, and what each came to.

    Raises:
      InputError: a folder without runs, or jobs of one name by several rules.
    """
    tried: dict[str, list[dict[str, Any]]] = {}
    for folder in folders:
        groups: dict[tuple[str, str], list[Job]] = {}
        for job in finished([folder]):
            groups.setdefault((job.run.learner, job.run.game_name), []).append(job)
        for (learner, game), jobs in groups.items():
            check_games([job.run for job in jobs])
            group = {"game": game, "given": _given(jobs[0]), "trials": [_trial(job) for job in jobs]}
            tried.setdefault(learner, []).append(group)
    return tried


def _tried(job: Job) -> dict[str, Any]:
    return {name: value for name, value in settings_in(job.row).items() if name.startswith("algo.")}


def _given(job: Job) -> list[str]:
    """Returns the learner's settings that a job was given and that do not differ in its sweep."""
    given = [text for text in overrides(job.run.path) if text.partition("=")[0] not in _tried(job)]
    return [text for text in given if text.startswith("algo.") and "${" not in text]


def _trial(job: Job) -> dict[str, Any]:
    return {"settings": _tried(job), "nodes": job.row["nodes"], "objective": job.row["objective"]}


def matches(folders: list[Path], env: str) -> dict[str, Any]:
    """Returns the expected payoffs of one game: learner -> other -> mean over seats of what the first earns.

    Raises:
      InputError: no finished job of the game, or jobs by several rules of it.
    """
    jobs: dict[str, Job] = {}
    of_game = [job for job in finished(folders) if job.run.game_name == env]
    check_games([job.run for job in of_game])
    for job in of_game:
        if job.run.learner not in jobs or job.run.seed < jobs[job.run.learner].run.seed:
            jobs[job.run.learner] = job
    if not jobs:
        raise InputError(f"no finished job is of {env!r}")
    form = exact_form(next(iter(jobs.values())).run.game)
    plans = {}
    for name, job in jobs.items():
        plans[name] = form.plans(form.tabulate(policy_of(find(job.row["directory"]), form.game)))
        print(f"{env}: {name}, seed {job.run.seed}, {form.num_infosets:,} information sets", flush=True)
    payoffs = round_robin(form, list(plans.values())) * form.game.reward_scale
    earned = {
        one: {other: float(value) for other, value in zip(plans, row, strict=True) if other != one}
        for one, row in zip(plans, payoffs, strict=True)
    }
    return {env: {"unit": form.game.unit, "seeds": {n: job.run.seed for n, job in jobs.items()}, "earned": earned}}


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
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, before | found)
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
