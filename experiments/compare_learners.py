r"""Sets two learners side by side on one game: matches of runs of both, at equal decisions and at equal seconds.

    python experiments/compare_learners.py --one runs/dream/0 runs/dream/1 --other runs/ppo/0 runs/ppo/1 \
        --out experiments/results/dream_ppo.json

Runs are taken in pairs. The first learner plays as its run ended; the other as it stood at its last checkpoint within
the first one's decisions, and within its seconds: give that run checkpoint.every and checkpoint.keep for it. Every
entrant plays the rule-based players and, head to head, the first learner. Means and 95 % t-intervals are over pairs.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import envs
from dream import metrics
from dream.checkpoint import FOLDER
from dream.evaluation import match
from dream.evaluation.statistics import t_interval
from dream.policies import find, game_of, policy_of
from envs import Game, InputError, Policy

OPPONENTS = (
    "random", "greedy", "eaai_simple", "camper", "heuristic", "aggressive_knock", "meld_builder", "early_knock",
    "defensive", "simple_bot",
)  # fmt: skip
TOLD = ("win_rate", "loss_rate", "points_per_hand")
LIMITS = ("decisions", "seconds")


def counters(run: Path) -> dict[int, dict[str, float]]:
    """Returns iteration -> decisions and seconds of the checkpoints a run has kept.

    Raises:
      InputError: no run directory, or no checkpoint in it.
    """
    kept = {int(path.name) for path in (run / FOLDER).glob("[0-9]*")}
    found = {r["iteration"]: {name: r[name] for name in LIMITS} for r in metrics.read(run) if r["iteration"] in kept}
    if not found:
        raise InputError(f"{run} holds no checkpoint with metrics; it must be a run directory")
    return found


def entrants(one: Path, other: Path) -> dict[str, tuple[Path, dict[str, float]]]:
    """Returns who plays for a pair of runs: the checkpoint's folder and its counters.

    Raises:
      InputError: no checkpoint of the other within a limit.
    """
    of_one, of_other = counters(one), counters(other)
    last = max(of_one)
    chosen = {"one": (one / FOLDER / str(last), of_one[last])}
    for limit in LIMITS:
        within = [n for n, told in of_other.items() if told[limit] <= of_one[last][limit]]
        if not within:
            raise InputError(f"{other} kept no checkpoint within {of_one[last][limit]:,.0f} {limit}")
        chosen[f"other_at_equal_{limit}"] = (other / FOLDER / str(max(within)), of_other[max(within)])
    return chosen


def played(game: Game, first: Policy, second: Policy, games: int, seed: int) -> dict[str, float]:
    """Plays a match and returns its means."""
    report = match(game, first, second, games=games, seed=seed)
    return {name: report[name].mean for name in TOLD}


def compare(one: list[Path], other: list[Path], opponents: list[str], games: int) -> dict[str, Any]:
    """Plays everything, telling each match when it is done."""
    rows: dict[str, dict[str, list[dict[str, float]]]] = {}
    at: dict[str, list[dict[str, float]]] = {}
    for seed, pair in enumerate(zip(one, other, strict=True)):
        chosen = entrants(*pair)
        trained = {name: find(path) for name, (path, _) in chosen.items()}
        game = game_of(trained["one"])
        policies = {name: policy_of(x, game) for name, x in trained.items()}
        for name, policy in policies.items():
            at.setdefault(name, []).append(chosen[name][1])
            against = {opponent: envs.make_bot(opponent, game) for opponent in opponents}
            if name != "one":
                against["one"] = policies["one"]
            for opponent, player in against.items():
                told = played(game, policy, player, games, seed)
                rows.setdefault(name, {}).setdefault(opponent, []).append(told)
                print(f"pair {seed}  {name} against {opponent}: {100 * told['win_rate']:.1f} % of hands", flush=True)
    over = {
        name: {
            opponent: {key: t_interval(np.array([told[key] for told in runs]))._asdict() for key in TOLD}
            for opponent, runs in against.items()
        }
        for name, against in rows.items()
    }
    return {"games": games, "pairs": len(one), "counters": at, "by_pair": rows, "over_pairs": over}


def main() -> None:
    """Reads the arguments, plays, and writes all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", nargs="+", type=Path, required=True, help="run directories of one learner")
    parser.add_argument("--other", nargs="+", type=Path, required=True, help="as many of the other")
    parser.add_argument("--opponents", nargs="+", default=list(OPPONENTS), help="names of envs.make_bot")
    parser.add_argument("--games", type=int, default=4000, help="mirrored hands of a match (default %(default)s)")
    parser.add_argument("--out", type=Path, required=True, help="the JSON file to write")
    arguments = parser.parse_args()
    if len(arguments.one) != len(arguments.other):
        parser.exit(
            2, f"error: {len(arguments.one)} runs of one and {len(arguments.other)} of the other make no pairs\n"
        )
    try:
        found = compare(arguments.one, arguments.other, arguments.opponents, arguments.games)
    except InputError as error:
        parser.exit(2, f"error: {error}\n")
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(found, indent=2) + "\n")
    print(arguments.out)


if __name__ == "__main__":
    main()
