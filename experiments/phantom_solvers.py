"""Solves phantom games with the CFR family and stores the exact exploitability of the average by iteration.

python experiments/phantom_solvers.py --env dark_hex --version classical --algo pcfr_plus [--target 0.01]

One iteration updates both players once. Seconds are the processor's, of all threads. The result is merged into
experiments/results/phantom_solvers.json after every measurement, by game, version and algorithm. One that is stored is
replaced at the end, by one of the same settings alone; others need another --out.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import time
from typing import Any

import numpy as np
from omegaconf import OmegaConf
from scripting.arguments import Parser, above_zero, at_least_one, result_file
from scripting.run_records import holds, stored_result

import envs
from dream.algorithms.tabular.cfr import CfrConfig, CfrState, run_updates_without_tree
from dream.config import settings
from dream.game_tree.placement.form import PlacementForm, kept_form
from dream.storage.files import write_text
from envs import InputError

ROOT = pathlib.Path(__file__).resolve().parents[1]
ALGORITHMS = ("pcfr_plus", "cfr_plus", "dcfr")
RESULTS = ROOT / "experiments" / "results" / "phantom_solvers.json"
LIMITS = {"iterations": 500, "seconds": 3600.0}
"""By default; a command names others."""


def main() -> None:
    """Reads the arguments and solves."""
    parser = Parser(__doc__)
    parser.add_argument("--env", choices=("phantom_ttt", "dark_hex"), default="dark_hex")
    parser.add_argument("--version", choices=("classical", "abrupt"), default="classical")
    parser.add_argument("--algo", choices=ALGORITHMS, nargs="+", default=list(ALGORITHMS))
    parser.add_argument("--target", type=float, default=0.01, help="stop at this exploitability (default %(default)s)")
    parser.add_argument("--iterations", type=at_least_one, help="stop after so many (default %(default)s)")
    parser.add_argument("--seconds", type=above_zero, help="of the processor, at most (default %(default)s)")
    parser.add_argument(
        "--every", type=at_least_one, default=5, help="iterations between measurements (default %(default)s)"
    )
    parser.add_argument("--out", type=result_file, default=RESULTS)
    parser.set_defaults(**LIMITS)
    arguments = parser.parse_args()
    try:
        check_stored(arguments)
    except InputError as error:
        parser.exit(2, f"error: {error}\n")
    began = time.process_time()
    form = kept_form(envs.make(arguments.env, version=arguments.version))
    setup = time.process_time() - began
    for algo in arguments.algo:
        solve(form, algo, setup, arguments)


def command(algo: str, arguments: argparse.Namespace) -> str:
    """Returns the command that repeats one algorithm's part."""
    settings = {"env": arguments.env, "version": arguments.version, "algo": algo}
    settings |= {"target": f"{arguments.target:g}", "every": arguments.every}
    limits = {name: getattr(arguments, name) for name in LIMITS}
    settings |= {name: f"{limit:.12g}" for name, limit in limits.items() if limit != LIMITS[name]}
    return " ".join(["python experiments/phantom_solvers.py", *(f"--{name} {x}" for name, x in settings.items())])


def stored_results(path: pathlib.Path) -> dict[str, dict[str, Any]]:
    """Returns what a file holds by game and algorithm; raises InputError where it is damaged, or of something else."""
    solved = holds("command", "curve")
    return stored_result(path, each=lambda game: isinstance(game, dict) and all(map(solved, game.values())))


def of_game(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns what the file holds of the game, by algorithm; raises InputError as `stored_results`."""
    return stored_results(arguments.out).get(f"{arguments.env} {arguments.version}", {})


def check_stored(arguments: argparse.Namespace) -> None:
    """Raises InputError where a result is stored that other settings made."""
    for algo, record in of_game(arguments).items():
        if algo in arguments.algo and record["command"] != command(algo, arguments):
            raise InputError(
                f"{arguments.out} holds what came of {record['command']}; ask for that, or give another --out"
            )


def solve(form: PlacementForm, algo: str, setup: float, arguments: argparse.Namespace) -> None:
    """Runs one algorithm and stores its curve."""
    config = settings.read(CfrConfig, OmegaConf.load(ROOT / "conf" / "algo" / f"{algo}.yaml"), "algo")
    record = {
        "command": command(algo, arguments),
        "information_sets": [own.num_infosets for own in form.players],
        "sequences": [own.num_entries for own in form.players],
        "setup_cpu_seconds": round(setup, 1),
        "target": arguments.target,
        "curve": [],
    }
    game, known = f"{arguments.env} {arguments.version}", algo in of_game(arguments)
    for point in curve(config, form, arguments):
        record["curve"].append(point)
        if not known:
            merge(arguments.out, game, algo, record)
        print(f"{game} {algo}: {json.dumps(point)}", flush=True)
    if record["curve"]:
        merge(arguments.out, game, algo, record)


def curve(config: CfrConfig, form: PlacementForm, arguments: argparse.Namespace) -> Any:
    """Yields the average's values by iteration, until the target, the iterations or the time is reached."""
    cut = form.players[0].num_entries
    entries = sum(own.num_entries for own in form.players)
    state, seconds = CfrState(*np.zeros((3, entries)), np.int64(0), np.int32(0)), 0.0
    while state.updates < arguments.iterations and seconds < arguments.seconds:
        began = time.process_time()
        state = run_updates_without_tree(config, form, state, 1 if state.updates < 1 else arguments.every)
        solved = time.process_time()
        seconds += solved - began
        halves = (state.weights[:cut], state.weights[cut:])
        table = tuple(own.normalised(x) for own, x in zip(form.players, halves, strict=True))
        values = form.values(table)
        yield {
            "iteration": int(state.updates),
            "exploitability": values.nash_conv / 2,
            "value": values.expected[0],
            "best_response_values": list(values.best),
            "cpu_seconds": round(seconds, 1),
            "nash_conv_cpu_seconds": round(time.process_time() - solved, 2),
        }
        if values.nash_conv / 2 <= arguments.target:
            return


def merge(path: pathlib.Path, game: str, algo: str, record: dict[str, Any]) -> None:
    """Puts a run's record in the file of all of them."""
    stored = stored_results(path)
    stored.setdefault(game, {})[algo] = record
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
