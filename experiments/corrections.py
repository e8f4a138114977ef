"""A grid of algo.correction: what clipped traces between DREAM and ESCHER do on full gin rummy and on Leduc.

    python experiments/corrections.py gin_rummy --cells 0.9:11 0:11 1:null --seeds 0 1
    python experiments/corrections.py leduc_poker --cells 0.9:3 --seeds 0
    python experiments/corrections.py gin_rummy --collect

Own actions are sampled uniformly (--exploration 1) and the value assumes today's policies, in every cell. Each cell and
seed is a run of `python -m dream.run` under --runs, which is not run again where it has ended; one of other settings
than its folder says is refused. Results go into experiments/results/corrections_<game>.json. Cells that it holds and
--runs does not are kept.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from scripting.arguments import Parser
from scripting.child_runs import go_on
from scripting.run_records import check_asked, finished, origin, read_json

from dream.storage.files import EVALUATION_FILE, write_json
from dream.training import metrics
from envs import InputError

RESULTS = Path(__file__).resolve().parent / "results"
SAMPLING = ("regret_second_moment", "effective_sample_size", "baseline_explained_variance")
GAMES = {
    "gin_rummy": [
        "iterations=10", "eval.every=10", "eval.games=512", "eval.final_games=1000",
        "eval.opponents=[random,simple_bot]",
    ],
    "leduc_poker": [
        "iterations=1000000", "budget.nodes=1e6", "eval.every=10", "eval.opponents=[]", "algo.values.chance=sampled",
    ],
}  # fmt: skip
"""How long a run is, and how it is measured: 5,120 rounds of gin, a million nodes of Leduc. Chance is sampled, as it
has to be where nothing is corrected."""

_CELL = re.compile(r"[0-9.e+-]+:([0-9.e+-]+|null)")
_RUN = re.compile(r"([0-9.e+-]+)_([0-9.e+-]+|null)_([0-9.e+-]+)/seed([0-9]+)")


def cell_overrides(game: str, cell: str, exploration: float) -> list[str]:
    """Returns the overrides of a cell's runs, "<trace>:<clip>"."""
    trace, clip = cell.split(":")
    correction = [f"algo.correction.trace={trace}", f"algo.correction.clip={clip}"]
    return [
        f"env={game}", "algo=dream", *correction, f"algo.exploration={exploration:g}", "algo.values.policy=current",
        *GAMES[game],
    ]  # fmt: skip


def run_of(folder: Path, cell: str, exploration: float, seed: int) -> Path:
    """Returns the directory of a cell's run."""
    return folder / f"{cell.replace(':', '_')}_{exploration:g}" / f"seed{seed}"


def check_cell(game: str, run: Path) -> None:
    """Raises InputError unless a run is what its folder says: cell, exploration and seed."""
    if not (named := _RUN.fullmatch(f"{run.parent.name}/{run.name}")):
        raise InputError(f"{run} is no cell; it must be <trace>_<clip>_<exploration>/seed<n>, such as 0.9_11_1/seed0")
    trace, clip, exploration, seed = named.groups()
    settings = [*cell_overrides(game, f"{trace}:{clip}", float(exploration)), f"seed={seed}"]
    check_asked(run, settings, ["eval.final_games"])


def collected(run: Path) -> dict[str, Any]:
    """Returns what is kept of one run that has ended."""
    records = metrics.read(run)
    last = records[-1]
    means = {name: sum(r[f"sampling/{name}"] for r in records) / len(records) for name in SAMPLING}
    kept = {name: last[name] for name in (*metrics.COUNTERS, "seconds", "compile_seconds")}
    report = read_json(run / EVALUATION_FILE)
    if "by_opponent" in report:
        result = {"final_by_opponent": report["by_opponent"]}
    else:
        result = {"exploitability": report["exact"]["average"]["exploitability"]}
    return {**result, "sampling": means, "iterations": last["iteration"], **kept, **origin(run)}


def store(game: str, folder: Path) -> Path:
    """Puts the runs of a folder that have ended into the game's result file, beside the cells that it holds.

    Raises:
      InputError: none has ended, one is not what its folder says, or a file of one or the results is damaged.
    """
    runs = sorted(run for run in folder.glob("*/seed*") if finished(run))
    if not runs:
        raise InputError(f"{folder} holds no finished run; --runs must be the folder that this script trained cells in")
    for run in runs:
        check_cell(game, run)
    target = RESULTS / f"corrections_{game}.json"
    stored = read_json(target) if target.exists() else {}
    found = {f"{run.parent.name}/{run.name}": collected(run) for run in runs}
    for name in found:
        if name in stored and stored[name] != found[name]:
            print(f"warning: {name} was stored already; what this run came to replaces it", file=sys.stderr)
    write_json(target, dict(sorted({**stored, **found}.items())))
    return target


def train(given: argparse.Namespace, folder: Path) -> None:
    """Trains the cells asked for that have not ended.

    Raises:
      InputError: one that has ended is not what its folder says; nothing is trained then.
    """
    runs = {(c, seed): run_of(folder, c, given.exploration, seed) for c in given.cells for seed in given.seeds}
    ended = {run for run in runs.values() if finished(run)}
    for run in sorted(ended):
        check_cell(given.game, run)
    for (cell, seed), run in runs.items():
        if run in ended:
            continue
        overrides = [*cell_overrides(given.game, cell, given.exploration), f"seed={seed}"]
        if code := go_on(overrides, run, "tracking.mode=disabled"):
            sys.exit(code)


def main() -> None:
    """Runs the command."""
    parser = Parser(__doc__)
    parser.add_argument("game", choices=sorted(GAMES))
    parser.add_argument("--cells", nargs="+", default=[], help="<trace>:<clip>, as on a command line")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--exploration", type=float, default=1.0)
    parser.add_argument("--runs", type=Path, default=Path("runs") / "corrections", help="where the runs are kept")
    parser.add_argument("--collect", action="store_true", help="run nothing; write the result of what is there")
    given = parser.parse_args()
    if wrong := [cell for cell in given.cells if not _CELL.fullmatch(cell)]:
        parser.exit(2, f"error: --cells {wrong[0]} is not valid; it must be <trace>:<clip>, such as 0.9:11 or 1:null\n")
    folder = given.runs / given.game
    try:
        if not given.collect:
            train(given, folder)
        print(store(given.game, folder))
    except InputError as error:
        parser.exit(2, f"error: {error}\n")


if __name__ == "__main__":
    main()
