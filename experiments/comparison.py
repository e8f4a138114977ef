r"""Sets every learner side by side on one budget: exact exploitability from sweeps' folders, exact matches, a picture.

    python experiments/comparison.py run --seeds 1 2 3                 # the whole table
    python experiments/comparison.py run --nodes 1e7 --rows ppo "ppo, annealed" --games "dark_hex classical" --seeds 1
    python experiments/comparison.py collect runs/sweeps/* --out experiments/results/comparison.json
    python experiments/comparison.py trials runs/trials/* --out experiments/results/comparison_trials.json
    python experiments/comparison.py matches runs/sweeps/* --env "phantom_ttt classical" \
        --out experiments/results/comparison_matches.json
    python experiments/comparison.py curves runs/curves/* --out experiments/results/comparison_curves.json
    python experiments/comparison.py draw

`run` trains what is missing in the table or a part of it, collects all that is there and draws it; an interrupted one
goes on. Its rows are in comparison_parts/rows.py. `collect` takes the final evaluation of every finished job: by game
and learner the mean over seeds of each policy's exploitability, with its 95 % interval on a log scale. `curves` keeps
what runs were worth on their way, from sweeps that were evaluated more than once. Both keep a file's other seeds and
learners with --keep, and name the learners of these sweeps apart with --label, as "ppo, annealed". `trials` keeps what
was tried before, by learner: the setting that differed and what came of it. `matches` plays nothing: the values of all
pairs of one game, each learner's first seed, are computed from the policies. Results of other games in a file are
kept. `draw` writes a picture beside each result file.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from comparison_parts.plots import draw, draw_curves, draw_matches
from comparison_parts.rows import GAMES, ROWS, cells, check_there, train
from comparison_parts.stored import (
    COUNTED,
    check_form,
    joined,
    kept_learners,
    merge,
    more_curves,
    over_seeds,
    with_other_games,
)
from omegaconf import OmegaConf
from result_tables.comparison import lines_of
from scripting.arguments import Parser, above_zero, at_least, result_file
from scripting.run_records import (
    Run,
    check_alike,
    check_distinct,
    check_games,
    finished,
    overrides,
    read_run,
    sittings,
    stored_result,
)

from dream.game_tree.exact import round_robin
from dream.game_tree.forms import exact_form
from dream.storage.files import CONFIG_FILE, write_json
from dream.storage.policies import find, policy_of
from dream.training import metrics
from dream.training.sweeps import FINISHED, load_sweep, settings_in
from envs import Game, InputError, make_bot

RESULTS = Path(__file__).resolve().parent / "results"
NOT_TRIED = ("env.", "eval.", "checkpoint.", "tracking.", "hosts.", "devices")
"""How settings begin that are no trial of a learner."""
POLICIES = "exploitability/"
"""What a row's exact values begin with; the name of the policy follows."""


PICTURES = {
    "comparison": draw,
    "comparison_matches": draw_matches,
    "comparison_curves": draw_curves,
    "comparison_curves_10m": draw_curves,
}
"""Result file -> what draws it."""


class Job(NamedTuple):
    """A finished job of a sweep: its row, and what its directory says of it."""

    row: dict[str, Any]
    run: Run


def finished_jobs(folders: list[Path]) -> Iterator[Job]:
    """Yields the finished jobs of sweeps.

    Raises:
      InputError: a folder without runs.
    """
    for folder in folders:
        for row in load_sweep(folder):
            run = Path(row["directory"])
            if row["status"] == FINISHED:
                yield Job(row, read_run(run))


def collect(folders: list[Path], label: str = "") -> dict[str, Any]:
    """Returns game -> its unit, what uniform play is worth, and each learner's policies over seeds.

    Raises:
      InputError: as `_by_game`.
    """
    return {name: _of_game(learners) for name, learners in _by_game(folders, label).items()}


def _by_game(folders: list[Path], label: str = "") -> dict[str, dict[str, list[Job]]]:
    """Returns game -> learner, its label added -> its finished jobs by seed.

    Raises:
      InputError: no finished job, a learner with the same seed twice on a game, jobs of one name by several rules, or
        seeds of several recipes or budgets.
    """
    games: dict[str, dict[str, list[Job]]] = {}
    for job in finished_jobs(folders):
        name = ", ".join(filter(None, (job.run.learner, label)))
        games.setdefault(job.run.game_name, {}).setdefault(name, []).append(job)
    if not games:
        raise InputError(f"none of {len(folders)} sweeps has a finished job")
    for learners in games.values():
        check_games([job.run for jobs in learners.values() for job in jobs])
        for jobs in learners.values():
            jobs.sort(key=lambda job: job.run.seed)
            check_distinct([job.run for job in jobs])
            check_alike([job.run for job in jobs])
    return games


def collect_rows(folder: Path) -> dict[str, Any]:
    """Returns what `collect` does, of all rows of the table whose runs are in a folder.

    Raises:
      InputError: as `_by_game`.
    """
    games: dict[str, dict[str, list[Job]]] = {}
    for cell in cells(tuple(ROWS), tuple(GAMES), folder):
        if any(finished(run) for run in cell.folder.glob("[0-9]*")):
            for name, learners in _by_game([cell.folder], cell.row.label).items():
                games.setdefault(name, {}).update(learners)
    return {name: _of_game(learners) for name, learners in games.items()}


def run_rows(given: argparse.Namespace) -> int:
    """Trains rows of the table, writes and draws all that is there; returns the exit code.

    Raises:
      InputError: as `cells` and `check_there`; nothing is trained then.
    """
    chosen = cells(given.rows, given.games, given.runs)
    check_there(given.runs, given.nodes)
    failed = train(chosen, given.seeds, given.nodes)
    found = collect_rows(given.runs)
    if found:
        out = given.runs / "comparison.json"
        write_json(out, found)
        print("\n".join([*lines_of(found), str(out)]), flush=True)
        draw(found, out.with_suffix(".svg"))
    for run in failed:
        print(f"error: {run} failed; what it said is above", file=sys.stderr)
    return int(bool(failed))


def _of_game(learners: dict[str, list[Job]]) -> dict[str, Any]:
    game = next(iter(learners.values()))[0].run.game
    found = {name: _of_learner(jobs) for name, jobs in learners.items()}
    return {"game": game.identity, "unit": game.unit, "uniform": uniform_exploitability(game), "learners": found}


def uniform_exploitability(game: Game) -> float:
    """Returns the exploitability of uniform play, in the game's unit."""
    form = exact_form(game)
    return form.values(form.tabulate(make_bot("random", game))).nash_conv / 2 * game.reward_scale


def _of_learner(jobs: list[Job]) -> dict[str, Any]:
    """Returns what the seeds of a learner came to, the command of the first and its settings."""
    rows = [job.row for job in jobs]
    _check_exact(jobs)
    values = {key.removeprefix(POLICIES): [row[key] for row in rows] for key in rows[0] if key.startswith(POLICIES)}
    made = [sitting for job in jobs for sitting in sittings(job.run.path)]
    return {
        "seeds": [job.run.seed for job in jobs],
        "exploitability": {policy: over_seeds(found) for policy, found in values.items()},
        **{key: float(np.mean([row[key] for row in rows])) for key in COUNTED if key in rows[0]},
        "recipe": _recipe(jobs[0]),
        "budget": jobs[0].run.budget,
        "machine": {key: sorted({str(one[key]) for one in made}) for key in ("device", "cores", "jax")},
    }


def _recipe(job: Job) -> dict[str, Any]:
    """Returns a job's settings of algorithm and network."""
    config = OmegaConf.to_container(OmegaConf.load(job.run.path / CONFIG_FILE), resolve=True)
    return {part: config[part] for part in ("algo", "network")}


def _check_exact(jobs: list[Job]) -> None:
    """Raises InputError unless all jobs of a learner have exact values, of the same policies."""
    policies = [{key for key in job.row if key.startswith(POLICIES)} for job in jobs]
    for job, found in zip(jobs, policies, strict=True):
        if not found:
            raise InputError(f"{job.run.path} has no exact values; it must be run with eval.exact=true")
        if found != policies[0]:
            raise InputError(f"{job.run.path} has exact values of other policies than {jobs[0].run.path}")


def trials(folders: list[Path]) -> dict[str, Any]:
    """Returns learner -> the sweeps in which its settings were tried: what all jobs were given, and what each came to.

    Raises:
      InputError: a folder without runs, or jobs of one name by several rules.
    """
    tried: dict[str, list[dict[str, Any]]] = {}
    for folder in folders:
        groups: dict[tuple[str, str], list[Job]] = {}
        for job in finished_jobs([folder]):
            groups.setdefault((job.run.learner, job.run.game_name), []).append(job)
        for (learner, game), jobs in groups.items():
            check_games([job.run for job in jobs])
            group = {"game": game, "given": _given(jobs[0]), "trials": [_trial(job) for job in jobs]}
            tried.setdefault(learner, []).append(group)
    return tried


def _tried(job: Job) -> dict[str, Any]:
    """Returns the settings in which a sweep's jobs differ, but for the game's and those that learning does not know."""
    return {name: value for name, value in settings_in(job.row).items() if not name.startswith(NOT_TRIED)}


def _given(job: Job) -> list[str]:
    """Returns the learner's settings that a job was given and that do not differ in its sweep."""
    given = [text for text in overrides(job.run.path) if text.partition("=")[0] not in _tried(job)]
    return [text for text in given if text.startswith("algo.") and "${" not in text]


def _trial(job: Job) -> dict[str, Any]:
    return {"settings": _tried(job), "nodes": job.row["nodes"], "objective": job.row["objective"]}


def matches(folders: list[Path], env: str) -> dict[str, Any]:
    """Returns the expected payoffs of one game: learner -> other -> mean over seats of what the first earns.

    Raises:
      InputError: no finished job of the game, or as `_by_game`.
    """
    jobs = {name: of_learner[0] for name, of_learner in _by_game(folders).get(env, {}).items()}
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


def curves(folders: list[Path], label: str = "", stored: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """Returns game -> its unit, what uniform play is worth and, by learner, what its runs were worth on their way.

    Args:
      folders: of sweeps.
      label: what is added to the learners' names.
      stored: earlier curves, of which the other learners and seeds of these games stay.
    Raises:
      InputError: as `_by_game`, a run that was evaluated at its end alone, stored curves of other rules, a learner's by
        another recipe, budget or of other policies, or a seed that is stored already.
    """
    found = {name: _curves_of_game(learners) for name, learners in _by_game(folders, label).items()}
    for name, game in found.items():
        kept = kept_learners(name, game, stored)
        game["learners"] = kept | {
            learner: more_curves(kept[learner], one, f"{learner} on {name}") if learner in kept else one
            for learner, one in game["learners"].items()
        }
    return found


def _curves_of_game(learners: dict[str, list[Job]]) -> dict[str, Any]:
    game = next(iter(learners.values()))[0].run.game
    found = {
        name: {
            "runs": [{"seed": job.run.seed, "policies": curve(job.run.path)} for job in jobs],
            "overrides": overrides(jobs[0].run.path),
            "recipe": _recipe(jobs[0]),
            "budget": jobs[0].run.budget,
        }
        for name, jobs in learners.items()
    }
    return {"game": game.identity, "unit": game.unit, "uniform": uniform_exploitability(game), "learners": found}


def curve(run_dir: Path) -> dict[str, dict[str, list[float]]]:
    """Returns policy -> nodes and exploitability at each exact evaluation of a run, that at its end included.

    Raises:
      InputError: there is none before its end.
    """
    key = f"eval/{POLICIES}"
    found: dict[str, dict[str, list[float]]] = {}
    for record in metrics.read(run_dir):
        for name in (name for name in record if name.startswith(key)):
            points = found.setdefault(name.removeprefix(key), {"nodes": [], "exploitability": []})
            points["nodes"].append(record["nodes"])
            points["exploitability"].append(record[name])
    if max((len(points["nodes"]) for points in found.values()), default=0) < 2:
        raise InputError(f"{run_dir} has no exact evaluation before its end; it must be run with a smaller eval.every")
    return found


def _stored(given: argparse.Namespace) -> dict[str, Any]:
    """Returns what the file to write holds already, where it is to be kept."""
    return stored_result(given.out) if given.keep else {}


def main() -> None:
    """Runs the command."""
    parser = Parser(__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("collect", "trials", "matches", "curves"):
        command = commands.add_parser(name)
        command.add_argument("folders", nargs="+", type=Path, help="folders of sweeps")
        command.add_argument("--out", type=result_file, required=True, help="the JSON file to write")
        if name in ("collect", "curves"):
            command.add_argument("--label", default="", help="what is added to the learners' names")
            command.add_argument("--keep", action="store_true", help="keep what else the file holds of the same games")
        if name == "matches":
            command.add_argument("--env", required=True, help='the game, such as "phantom_ttt classical"')
    command = commands.add_parser("run")
    command.add_argument(
        "--rows", nargs="+", default=list(ROWS), metavar="ROW", help="learners, as the table names them"
    )
    command.add_argument("--games", nargs="+", default=list(GAMES), metavar="GAME", help="such as 'dark_hex abrupt'")
    command.add_argument("--seeds", nargs="+", type=at_least(0), default=[1, 2, 3])
    command.add_argument("--nodes", type=above_zero, default=1e6, help="budget of a run (default %(default)g)")
    command.add_argument("--runs", type=Path, default=Path("runs") / "comparison", help="where the runs are kept")
    commands.add_parser("draw")
    given = parser.parse_args()
    try:
        if given.command == "run":
            sys.exit(run_rows(given))
        if given.command == "draw":
            for name, picture in PICTURES.items():
                picture(json.loads((RESULTS / f"{name}.json").read_text()), RESULTS / f"{name}.svg")
            return
        check_form(given.out, given.command)
        if given.command == "collect":
            merge(joined(collect(given.folders, given.label), _stored(given)), given.out)
        elif given.command == "trials":
            merge(with_other_games(trials(given.folders), stored_result(given.out)), given.out)
        elif given.command == "curves":
            merge(curves(given.folders, given.label, _stored(given)), given.out)
        else:
            merge(matches(given.folders, given.env), given.out)
    except InputError as error:
        parser.exit(2, f"error: {error}\n")


if __name__ == "__main__":
    main()
