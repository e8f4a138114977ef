r"""Sets two learners side by side on one game: matches of runs of both, at equal decisions and at equal seconds.

    python experiments/compare_learners.py --one runs/dream/0 runs/dream/1 --other runs/ppo/0 runs/ppo/1 \
        --out experiments/results/dueling_dream_ppo.json

Runs are taken in pairs. Both play as they stood at their last checkpoints within the decisions, and within the seconds,
that both have reached: give the runs checkpoint.every and checkpoint.keep for it. All play the rule-based players and,
at the same limit, each other. Means and 95 % t-intervals are over pairs.

    python experiments/compare_learners.py --exploitability --one runs/reproduce/*_dueling_dream/seed* \
        --other runs/reproduce/*_ppo/seed* --out experiments/results/dream_ppo_exploitability.json

reads the evaluations of runs on enumerable games instead, of one game or several: the exact exploitability of the
current policies at the last evaluation within each limit, with intervals on a log scale.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from collect_runs import overrides
from omegaconf import OmegaConf

import envs
from dream.evaluation import match
from dream.evaluation.statistics import positive_interval, t_interval
from dream.game_tree.sequence_form import nash_conv
from dream.game_tree.tree import build_tree
from dream.storage.checkpoint import FOLDER
from dream.storage.files import CONFIG_FILE
from dream.storage.policies import find, game_of, policy_of
from dream.training import metrics
from envs import Game, InputError, Policy

OPPONENTS = (
    "random", "greedy", "eaai_simple", "camper", "heuristic", "aggressive_knock", "meld_builder", "early_knock",
    "defensive", "simple_bot",
)  # fmt: skip
MEANS = ("win_rate", "loss_rate", "points_per_hand")
LIMITS = ("decisions", "seconds")
EXPLOITABILITY = "eval/exploitability/current"


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


def evaluations(run: Path) -> dict[int, dict[str, float]]:
    """Returns iteration -> decisions, seconds and exploitability where a run evaluated its current policy.

    Raises:
      InputError: no run directory, or no exploitability in its metrics.
    """
    records = [record for record in metrics.read(run) if record.get(EXPLOITABILITY) is not None]
    found = {
        r["iteration"]: {name: r[name] for name in LIMITS} | {"exploitability": r[EXPLOITABILITY]} for r in records
    }
    if not found:
        raise InputError(f"{run} holds no {EXPLOITABILITY}; it must be the directory of a run on an enumerable game")
    return found


def side_by_side(
    one: Path, other: Path, read: Callable[[Path], dict[int, dict[str, float]]]
) -> dict[str, tuple[Path, int, dict[str, float]]]:
    """Returns what is compared of a pair of runs: "<one | other>_at_equal_<limit>" -> run, iteration, what was read.

    Args:
      one: run directory.
      other: run directory.
      read: gives a run's iterations to choose from, each with its decisions and seconds.
    Raises:
      InputError: a run that has nothing within a limit.
    """
    runs = {"one": (one, read(one)), "other": (other, read(other))}
    chosen = {}
    for limit in LIMITS:
        shared = min(max(totals[limit] for totals in kept.values()) for _, kept in runs.values())
        for name, (run, kept) in runs.items():
            within = [n for n, totals in kept.items() if totals[limit] <= shared]
            if not within:
                raise InputError(f"{run} kept nothing to compare within {shared:,.0f} {limit}")
            chosen[f"{name}_at_equal_{limit}"] = (run, max(within), kept[max(within)])
    return chosen


def entrants(one: Path, other: Path) -> dict[str, tuple[Path, dict[str, float]]]:
    """Returns who plays for a pair of runs: "<one | other>_at_equal_<limit>" -> the checkpoint's folder and counters.

    Raises:
      InputError: a run without a checkpoint within a limit.
    """
    chosen = side_by_side(one, other, counters)
    return {name: (run / FOLDER / str(n), totals) for name, (run, n, totals) in chosen.items()}


def game_of_run(run: Path) -> tuple[str, Game]:
    """Returns a run's game and its name, with the preset or version of its rules where it has one."""
    env = OmegaConf.to_container(OmegaConf.load(run / CONFIG_FILE).env, resolve=True)
    kind = env["rules"].get("preset") or env["rules"].get("version")
    return " ".join(filter(None, (env["name"], kind))), envs.make(env["name"], **env["rules"])


def compare_exploitability(one: list[Path], other: list[Path]) -> dict[str, Any]:
    """Returns game -> exploitability of both learners, pair by pair and over pairs, and that of uniform random play.

    Raises:
      InputError: a pair of two games, or a game with one pair, which has no interval.
    """
    by_game: dict[str, list[tuple[Path, Path]]] = {}
    for pair in zip(one, other, strict=True):
        (name, _), (others, _) = map(game_of_run, pair)
        if name != others:
            raise InputError(f"{pair[0]} is a run on {name} and {pair[1]} on {others}; a pair must be of one game")
        by_game.setdefault(name, []).append(pair)
    return {name: _of_game(name, pairs) for name, pairs in by_game.items()}


def _of_game(name: str, pairs: list[tuple[Path, Path]]) -> dict[str, Any]:
    if len(pairs) < 2:
        raise InputError(f"{name} has one pair of runs; an interval needs at least two")
    chosen = [side_by_side(*pair, evaluations) for pair in pairs]
    by_pair = {key: [found[key][2] for found in chosen] for key in chosen[0]}
    game = game_of_run(pairs[0][0])[1]
    tree = build_tree(game)
    return {
        "unit": game.unit,
        "uniform": nash_conv(tree, tree.uniform()) / 2 * game.reward_scale,
        "pairs": len(pairs),
        "overrides": {key: overrides(run) for key, run in zip(("one", "other"), pairs[0], strict=True)},
        "by_pair": by_pair,
        "over_pairs": {
            key: positive_interval(np.array([x["exploitability"] for x in at]))._asdict() for key, at in by_pair.items()
        },
    }


def played(game: Game, first: Policy, second: Policy, games: int, seed: int) -> dict[str, float]:
    """Plays a match and returns its means."""
    report = match(game, first, second, games=games, seed=seed)
    return {name: report[name].mean for name in MEANS}


def compare(one: list[Path], other: list[Path], opponents: list[str], games: int) -> dict[str, Any]:
    """Plays everything, printing each match when it is done."""
    rows: dict[str, dict[str, list[dict[str, float]]]] = {}
    at: dict[str, list[dict[str, float]]] = {}
    for seed, pair in enumerate(zip(one, other, strict=True)):
        chosen = entrants(*pair)
        trained = {name: find(path) for name, (path, _) in chosen.items()}
        game = game_of(next(iter(trained.values())))
        policies = {name: policy_of(x, game) for name, x in trained.items()}
        for name, policy in policies.items():
            at.setdefault(name, []).append(chosen[name][1])
            against = {opponent: envs.make_bot(opponent, game) for opponent in opponents}
            if name.startswith("other"):
                against["one"] = policies[name.replace("other", "one")]
            for opponent, player in against.items():
                means = played(game, policy, player, games, seed)
                rows.setdefault(name, {}).setdefault(opponent, []).append(means)
                print(f"pair {seed}  {name} against {opponent}: {100 * means['win_rate']:.1f} % of rounds", flush=True)
    over = {
        name: {
            opponent: {key: t_interval(np.array([means[key] for means in runs]))._asdict() for key in MEANS}
            for opponent, runs in against.items()
        }
        for name, against in rows.items()
    }
    given = {"one": [overrides(run) for run in one], "other": [overrides(run) for run in other]}
    return {"games": games, "pairs": len(one), "overrides": given, "counters": at, "by_pair": rows, "over_pairs": over}


def main() -> None:
    """Reads the arguments, plays, and writes all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", nargs="+", type=Path, required=True, help="run directories of one learner")
    parser.add_argument("--other", nargs="+", type=Path, required=True, help="as many of the other")
    parser.add_argument("--opponents", nargs="+", default=list(OPPONENTS), help="names of envs.make_bot")
    parser.add_argument("--games", type=int, default=4000, help="mirrored rounds of a match (default %(default)s)")
    parser.add_argument(
        "--exploitability", action="store_true", help="play no match; read the exact values of the runs' evaluations"
    )
    parser.add_argument("--out", type=Path, required=True, help="the JSON file to write")
    arguments = parser.parse_args()
    if len(arguments.one) != len(arguments.other):
        parser.exit(
            2, f"error: {len(arguments.one)} runs of one and {len(arguments.other)} of the other make no pairs\n"
        )
    try:
        if arguments.exploitability:
            found = compare_exploitability(arguments.one, arguments.other)
        else:
            found = compare(arguments.one, arguments.other, arguments.opponents, arguments.games)
    except InputError as error:
        parser.exit(2, f"error: {error}\n")
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(found, indent=2) + "\n")
    print(arguments.out)


if __name__ == "__main__":
    main()
