#!/usr/bin/env python3
"""Computes what knowing the score is worth: games to 100 where the score says which of two policies plays a round.

    python experiments/gin_scores.py --deals 16384

Each policy plays the same mirrored deals against each opponent under the rules of the EAAI 2021 challenge. From one
half of the deals follows which policy is best at each score (dream/evaluation/game_chances.py), from the other half
what games come to with that choice and with each policy alone. Intervals are by the jackknife over blocks of the
second half, whose deals all three share; those of chances end at 0 and 1. What a policy won against an opponent is kept
in the working folder, and a second call goes on with what is missing. experiments/results/gin_scores.json is written at
the end, with the seconds of play; matches of other policies, against more opponents or of more deals are not replaced.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scripting import blocks
from scripting.arguments import Parser, result_file
from scripting.run_records import check_as_many, stored_result

import envs
from dream.evaluation.game_chances import best_by_score, chance_by_score
from dream.evaluation.games import whole_points
from dream.evaluation.matches import play_hands
from dream.evaluation.statistics import t95
from dream.storage.files import write_text
from dream.storage.policies import find_player
from envs import InputError

RESULT = Path(__file__).resolve().parent / "results" / "gin_scores.json"
SEED = 239
PLAYERS = ("gin_rummy/strong", "gin_rummy/points")
OPPONENTS = ("eaai_simple", "marjj", "patient", "gin_rummy/strong")
_BLOCKS = 32
"""Of the deals that judge, for the jackknife."""


def worth(points: Sequence[np.ndarray], rules: envs.MatchRules) -> dict[str, Any]:
    """Returns the chance to win games by the score and by each policy alone, and how much more the first is.

    Args:
      points: int[n, 2] of each policy, the same deals in both; n >= 128.
      rules: how rounds make a game.
    Returns:
      `by_score`, `alone` (of each policy), `gain` over the better one alone, each (mean, low, high);
      `gain_where_chosen`, the gain on the deals that the choice follows from, which is too high; `share`, of all
      scores, at which each policy plays.
    """
    half = len(points[0]) // 2
    watched, judged = [one[:half] for one in points], [one[half:] for one in points]
    choice = best_by_score(watched, rules)
    same = [np.full_like(choice, number) for number in range(len(points))]
    better = max(range(len(points)), key=lambda number: chance_by_score(watched, rules, same[number]))

    def chances(rows: np.ndarray) -> np.ndarray:
        kept = [one[rows] for one in judged]
        alone = [chance_by_score(kept, rules, one) for one in same]
        by_score = chance_by_score(kept, rules, choice)
        return np.array([by_score, *alone, by_score - alone[better]])

    by_score, *alone, gain = _jackknife(chances, len(judged[0]))
    by_score, *alone = np.clip([by_score, *alone], 0.0, 1.0).tolist()
    alone_there = chance_by_score(watched, rules, same[better])
    return {
        "by_score": by_score,
        "alone": alone,
        "gain": gain,
        "gain_where_chosen": chance_by_score(watched, rules, choice) - alone_there,
        "better_alone": better,
        "share": [float(np.mean(choice == number)) for number in range(len(points))],
    }


def _jackknife(values: Callable[[np.ndarray], np.ndarray], count: int) -> list[list[float]]:
    """Returns (mean, low, high) of each value of all rows, leaving out a block of them at a time.

    Source: Efron and Stein 1981, for the variance; the bias is left in, of the order of 1 / count.
    """
    block = np.arange(count) * _BLOCKS // count
    found = values(np.arange(count))
    without = np.stack([values(np.flatnonzero(block != number)) for number in range(_BLOCKS)])
    half = t95(_BLOCKS - 1) * np.sqrt((_BLOCKS - 1) * np.var(without, axis=0))
    return np.stack([found, found - half, found + half], axis=1).tolist()


def check_stored(path: Path, players: Sequence[str], opponents: Sequence[str], deals: int) -> None:
    """Raises InputError where a result file has matches that would be lost, or one of more deals.

    Args:
      path: the file.
      players: between which the score is to choose.
      opponents: to be met.
      deals: of each player against each opponent.
    """
    if not (stored := stored_result(path, "players", "matches")):
        return
    before, here = " and ".join(stored["players"]), " and ".join(players)
    if set(stored["players"]) != set(players):
        raise InputError(f"{path} holds matches of {before}, these are of {here}; give another --out")
    known = {one["opponent"]: one["deals"] for one in stored["matches"]}
    if lost := [name for name in known if name not in opponents]:
        raise InputError(f"{path} holds a match against {lost[0]}; add it to --opponents, or give another --out")
    check_as_many(path, "deals against", known, dict.fromkeys(opponents, deals))


def _file(pairing: tuple[str, str], made: dict[str, Any], arguments: argparse.Namespace) -> Path:
    """Returns where a pairing's rounds are kept."""
    players = [[name, made[f"checksum of {name}"]] for name in pairing]
    return arguments.work / f"{zlib.crc32(json.dumps([SEED, players, arguments.deals]).encode()):08x}.npz"


def _played(
    game: envs.Game,
    players: Mapping[str, Any],
    pairing: tuple[str, str],
    made: dict[str, Any],
    arguments: argparse.Namespace,
) -> dict[str, np.ndarray]:
    """Returns what a policy won against an opponent: points int[deals, 2], seconds; played where it is not there."""
    name, opponent = pairing

    def play() -> dict[str, np.ndarray]:
        started, seed = time.monotonic(), zlib.crc32(f"{SEED} {opponent}".encode())
        hands = play_hands(game, players[name], players[opponent], games=2 * arguments.deals, seed=seed)
        points = whole_points(hands["points_per_hand"])
        return {"points": points, "seconds": np.array(time.monotonic() - started)}

    return blocks.kept(_file(pairing, made, arguments), made, play)


def main() -> None:
    """Plays the deals and writes what follows from them."""
    parser = Parser(__doc__.splitlines()[0])
    parser.add_argument("--deals", type=int, default=16384, help="of each player against each opponent; both halves")
    parser.add_argument("--players", nargs="+", default=PLAYERS, help="between which the score chooses")
    parser.add_argument("--opponents", nargs="+", default=OPPONENTS)
    parser.add_argument("--work", type=Path, default=Path("runs/gin_scores"))
    parser.add_argument("--out", type=result_file, default=RESULT)
    arguments = parser.parse_args()
    if arguments.deals < 128:
        parser.exit(2, f"error: --deals={arguments.deals} is out of range; it must be at least 128\n")
    game = envs.make("gin_rummy", preset="eaai")
    try:
        pairings = list(itertools.product(arguments.players, arguments.opponents))
        made = {pairing: blocks.made_by(game, pairing) for pairing in pairings}
        players = {name: find_player(name, game) for name in (*arguments.players, *arguments.opponents)}
        made_by_all = blocks.made_by(game, players)
        check_stored(arguments.out, arguments.players, arguments.opponents, arguments.deals)
        arguments.work.mkdir(parents=True, exist_ok=True)
        for pairing in pairings:
            if (path := _file(pairing, made[pairing], arguments)).exists():
                blocks.check(path, made[pairing])
    except InputError as error:
        parser.exit(2, f"error: {error}\n")
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    records = []
    for opponent in arguments.opponents:
        of_opponent = [pairing for pairing in pairings if pairing[1] == opponent]
        found = [_played(game, players, pairing, made[pairing], arguments) for pairing in of_opponent]
        record = {"opponent": opponent, "deals": arguments.deals}
        record |= worth([one["points"] for one in found], game.match_rules())
        records.append(record | {"seconds": sum(float(one["seconds"]) for one in found)})
        print(record, flush=True)
    command = f"python experiments/gin_scores.py --deals {arguments.deals}"
    for name, usual in (("players", PLAYERS), ("opponents", OPPONENTS)):
        given = getattr(arguments, name)
        command += "" if tuple(given) == usual else f" --{name} {' '.join(given)}"
    stored = {
        "seed": SEED,
        "command": command,
        "made": made_by_all,
        "players": list(arguments.players),
        "matches": records,
    }
    write_text(arguments.out, json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
