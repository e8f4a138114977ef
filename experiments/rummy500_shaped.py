"""PPO on rummy 500 with the document's shaped reward: two to four players, five seeds, against others and each other.

    python experiments/rummy500_shaped.py                            all cells that are not there yet, then the matches
    python experiments/rummy500_shaped.py --players 2 --seeds 0 1    some; the others' results are kept
    python experiments/rummy500_shaped.py --players                  nothing is trained: the matches of what is there

A cell is a run of `python -m dream.run` for a number of players and a seed, kept under --runs; one that has ended is
not run again, one that was interrupted goes on; one of other settings is refused. Its final evaluation, against random
and greedy players, goes into experiments/results/rummy500_shaped.json as soon as it is there. In the matches each seed
meets the next one: one player of the first, the other seats by the second, every deal from every seat. Matches of
weights that are no longer there are played again. Nothing is replaced by what is of fewer iterations or rounds.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scripting.arguments import Parser, at_least, result_file
from scripting.child_runs import go_on
from scripting.run_records import check_as_many, check_asked, finished, origin, read_json, stored_result

from dream.evaluation import match
from dream.storage.checkpoint import find
from dream.storage.files import EVALUATION_FILE, write_json
from dream.storage.policies import game_of, policy_of
from dream.training import metrics
from envs import InputError

RESULT = Path(__file__).resolve().parent / "results" / "rummy500_shaped.json"
QUANTITIES = ("shared_win_rate", "score")
RECIPE = ["env=rummy500", "env.rules.reward=shaped", "algo=ppo", "tracking.mode=disabled"]
MATCH_SEED = 900
WATCHED = 120
"""Rounds of the evaluation during training, whole deals for any number of players."""
_RUN = re.compile(r"(\d+)_players/seed(\d+)")


def cell_overrides(players: int, seed: int, iterations: int, games: int) -> list[str]:
    """Returns the overrides of a cell's run."""
    return [
        *RECIPE, f"env.rules.num_players={players}", f"seed={seed}", f"iterations={iterations}",
        f"eval.every={iterations}", f"eval.games={WATCHED}", f"eval.final_games={games}",
    ]  # fmt: skip


def begun(run: Path) -> bool:
    """Returns whether a run has a record."""
    return (run / metrics.FILE).exists()


def run_of(runs: Path, players: int, seed: int) -> Path:
    """Returns the directory of a cell's run."""
    return runs / f"{players}_players" / f"seed{seed}"


def in_order(cells: dict[str, Any]) -> dict[str, Any]:
    """Returns results in the order of players and seeds."""
    return dict(sorted(cells.items(), key=lambda item: [int(part) for part in item[0].split("/seed")]))


def there(runs: Path) -> list[tuple[int, int]]:
    """Returns players and seed of the runs that have ended."""
    paths = [run.relative_to(runs).as_posix() for run in runs.glob("*_players/seed*") if finished(run)]
    return sorted((int(found[1]), int(found[2])) for found in map(_RUN.fullmatch, paths) if found)


def trained(run: Path, settings: list[str]) -> None:
    """Trains a cell to its end; raises InputError where it was left before that."""
    if code := go_on(settings, run):
        sys.exit(code)
    if not finished(run):
        raise InputError(f"{run} was left before its end; the same command goes on")


def collected(run: Path) -> dict[str, Any]:
    """Returns what is kept of one run that has ended."""
    report = read_json(run / EVALUATION_FILE)
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


def renew(result: dict[str, Any], players: int, seed: int, run: Path) -> None:
    """Puts in what a cell's run came to; the matches of other weights, its own and those against it, are dropped."""
    name = f"{players}/seed{seed}"
    before, found = result.get(name, {}), {**collected(run), "checksum": find(run).meta["checksum"]}
    known = "checksum" if "checksum" in before else "final_by_opponent"  # older results have no checksum
    if before and before.get(known) != found[known]:
        print(f"warning: {name} has other weights than were stored; the matches of those are dropped", file=sys.stderr)
        for other, one in result.items():
            if other == name or (other.startswith(f"{players}/") and f"seed{seed}" in one.get("against_seed", {})):
                one.pop("against_seed", None)
    result[name] = found | {key: before[key] for key in before if key == "against_seed"}


def check_stored(given: argparse.Namespace, result: dict[str, Any], cells: Iterable[tuple[int, int]]) -> None:
    """Raises InputError where a cell is stored, or its match, of more iterations or rounds than these would be."""
    here = {f"{players}/seed{seed}": players for players, seed in cells}
    stored = {name: result[name] for name in here if name in result}
    iterations = {name: one["iterations"] for name, one in stored.items()}
    rounds = {name: max(x["n"] for x in one["final_by_opponent"].values()) for name, one in stored.items()}
    met_in = {name: x["n"] for name, one in stored.items() for x in one.get("against_seed", {}).values()}
    check_as_many(given.out, "iterations of", iterations, dict.fromkeys(here, given.iterations))
    check_as_many(given.out, "evaluated rounds of", rounds, dict.fromkeys(here, given.games))
    check_as_many(given.out, "rounds of the match of", met_in, {name: given.deals * here[name] for name in here})


def measure(given: argparse.Namespace) -> None:
    """Trains the cells asked for, stores all that are there, and plays their matches.

    Raises:
      InputError: a run of other settings than asked for, stored cells of more rounds, or files that are damaged.
    """
    result = stored_result(given.out)
    cells = dict.fromkeys([*itertools.product(given.players, given.seeds), *there(given.runs)])
    settings = {cell: cell_overrides(*cell, given.iterations, given.games) for cell in cells}
    runs = {cell: run_of(given.runs, *cell) for cell in cells}
    for cell, run in runs.items():
        if begun(run) or (run / EVALUATION_FILE).exists():
            check_asked(run, settings[cell], ["eval.final_games"])
    check_stored(given, result, cells)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    for cell, run in runs.items():
        if not finished(run):
            trained(run, settings[cell])
        renew(result, *cell, run)
        write_json(given.out, in_order(result))
    for players, group in itertools.groupby(sorted(cells), key=lambda cell: cell[0]):
        seeds = [seed for _, seed in group]
        for seed, other in zip(seeds, [*seeds[1:], *seeds[:1]], strict=True):
            own = result[f"{players}/seed{seed}"]
            if seed != other and f"seed{other}" not in own.get("against_seed", {}):
                own["against_seed"] = {f"seed{other}": met(runs[players, seed], runs[players, other], given.deals)}
                write_json(given.out, in_order(result))


def main() -> None:
    """Runs the command."""
    parser = Parser(__doc__)
    parser.add_argument("--players", nargs="*", type=int, default=[2, 3, 4], help="numbers of players to train")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--iterations", type=int, default=60, help="of 256 rounds (default %(default)s)")
    parser.add_argument("--games", type=int, default=3000, help="of a final evaluation (default %(default)s)")
    parser.add_argument("--deals", type=at_least(2), default=500, help="of a match between seeds (default %(default)s)")
    parser.add_argument("--runs", type=Path, default=Path("runs") / "rummy500_shaped", help="where the runs are kept")
    parser.add_argument("--out", type=result_file, default=RESULT, help="the result file")
    given = parser.parse_args()
    try:
        measure(given)
    except InputError as error:
        parser.exit(2, f"error: {error}\n")
    print(given.out)


if __name__ == "__main__":
    main()
