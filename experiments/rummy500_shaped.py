"""PPO on rummy 500 with the document's shaped reward: two to four players, five seeds, against others and each other.

    python experiments/rummy500_shaped.py                            all cells that are not there yet, then the matches
    python experiments/rummy500_shaped.py --players 2 --seeds 0 1    some; the others' results are kept
    python experiments/rummy500_shaped.py --players                  nothing is trained: the matches of what is there

A cell is a run of `python -m dream.run` for a number of players and a seed, kept under --runs; one that has ended is
not run again, one that was interrupted goes on. Its final evaluation, against random and greedy players, goes into
experiments/results/rummy500_shaped.json as soon as it is there. In the matches each seed meets the next one: one player
of the first, the other seats by the second, every deal from every seat.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from run_records import origin, read_json

from dream.evaluation import match
from dream.storage.checkpoint import find
from dream.storage.files import write_json
from dream.storage.policies import game_of, policy_of
from dream.training import metrics

RESULT = Path(__file__).resolve().parent / "results" / "rummy500_shaped.json"
QUANTITIES = ("shared_win_rate", "score")
RECIPE = ["env=rummy500", "env.rules.reward=shaped", "algo=ppo", "tracking.mode=disabled"]
MATCH_SEED = 900
WATCHED = 120
"""Rounds of the evaluation during training, whole deals for any number of players."""


def cell_overrides(players: int, seed: int, iterations: int, games: int) -> list[str]:
    """Returns the overrides of a cell's run."""
    return [
        *RECIPE, f"env.rules.num_players={players}", f"seed={seed}", f"iterations={iterations}",
        f"eval.every={iterations}", f"eval.games={WATCHED}", f"eval.final_games={games}",
    ]  # fmt: skip


def ended(run: Path) -> bool:
    """Returns whether a run has ended."""
    return (run / "evaluation.json").exists()


def trained(run: Path, settings: list[str]) -> None:
    """Trains a cell to its end."""
    begun = (run / metrics.FILE).exists()
    target = [f"resume={run}"] if begun else [*settings, f"run_dir={run}"]
    if code := subprocess.call([sys.executable, "-m", "dream.run", *target]):
        sys.exit(code)


def collected(run: Path) -> dict[str, Any]:
    """Returns what is kept of one run that has ended."""
    report = read_json(run / "evaluation.json")
    last = metrics.read(run)[-1]
    finals = {
        name: {"n": one["n"], **{quantity: one[quantity] for quantity in QUANTITIES}}
        for name, one in report["by_opponent"].items()
    }
    kept = {name: last[name] for name in ("decisions", "seconds", "compile_seconds")}
    return {"final_by_opponent": finals, "iterations": last["iteration"], **kept, **origin(run)}


def met(run: Path, other: Path, deals: int) -> dict[str, Any]:
    """Returns how one player of a run does with the other seats held by another run."""
    checkpoint = find(run)
    game = game_of(checkpoint)
    games = deals * game.num_players
    report = match(game, policy_of(checkpoint, game), policy_of(find(other), game), games=games, seed=MATCH_SEED)
    return {"n": games, **{quantity: report[quantity]._asdict() for quantity in QUANTITIES}}


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--players", nargs="*", type=int, default=[2, 3, 4], help="numbers of players to train")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--iterations", type=int, default=60, help="of 256 rounds (default %(default)s)")
    parser.add_argument("--games", type=int, default=3000, help="of a final evaluation (default %(default)s)")
    parser.add_argument("--deals", type=int, default=500, help="of a match between seeds (default %(default)s)")
    parser.add_argument("--runs", type=Path, default=Path("runs") / "rummy500_shaped", help="where the runs are kept")
    parser.add_argument("--out", type=Path, default=RESULT, help="the result file")
    given = parser.parse_args()
    result = json.loads(given.out.read_text()) if given.out.exists() else {}
    for players, seed in itertools.product(given.players, given.seeds):
        run = given.runs / f"{players}_players" / f"seed{seed}"
        if not ended(run):
            trained(run, cell_overrides(players, seed, given.iterations, given.games))
        name = f"{players}/seed{seed}"
        result[name] = {**result.get(name, {}), **collected(run)}
        write_json(given.out, dict(sorted(result.items())))
    for folder in sorted(given.runs.glob("*_players")):
        runs = sorted(run for run in folder.glob("seed*") if ended(run))
        for run, other in zip(runs, [*runs[1:], *runs[:1]], strict=True):
            name = f"{folder.name.split('_')[0]}/{run.name}"
            if run != other and other.name not in result[name].get("against_seed", {}):
                result[name]["against_seed"] = {other.name: met(run, other, given.deals)}
                write_json(given.out, dict(sorted(result.items())))
    print(given.out)


if __name__ == "__main__":
    main()
