"""Rummy 500 by number of players: win rate and mean score, with 95 % intervals, of rule-based players and trained runs.

    python experiments/rummy500_players.py [run ...]
    python experiments/rummy500_players.py --counts 2 3 4 --deals 1000 --out experiments/results/rummy500_players.json

Each player sits once in every seat of a deal, the others are all of one kind. A run plays at the number of players it
was trained with. Prints a table, with --json one JSON object per row; with --out the rows go into a file, each with
what made it, and those that it has are not played again. Rows of other deals, seed, rules, weights or code are refused.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scripting import blocks
from scripting.arguments import Parser, at_least, result_file
from scripting.run_records import difference, flat, holds, stored_result

import envs
from dream.evaluation import match
from dream.storage.checkpoint import find
from dream.storage.files import write_json
from dream.storage.policies import game_of, policy_of
from envs import Game, InputError, Policy

_ROW = "{players:>7}  {player:<28} {opponent:<8} {won:<26} {score}"


def main() -> None:
    """Reads the arguments and plays."""
    parser = Parser(__doc__)
    parser.add_argument("runs", nargs="*", help="run directories or checkpoints of rummy500")
    parser.add_argument("--deals", type=at_least(2), default=500, help="each from every seat (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of deals and actions (default %(default)s)")
    parser.add_argument("--counts", nargs="+", type=int, default=[2, 3, 4, 5, 6], help="numbers of players")
    parser.add_argument("--json", action="store_true", help="one JSON object per row")
    parser.add_argument("--out", type=result_file, help="file of rows to add to")
    arguments = parser.parse_args()
    try:
        rows = _stored(arguments.out) if arguments.out else {}
        pairings = list(_pairings(arguments.runs, arguments.counts))
        asked = [_asked(game, name, opponent, arguments) for game, name, _, opponent in pairings]
        for one in asked:
            _check_stored(rows, one, arguments.out)
        _play(arguments, rows, pairings, asked)
    except InputError as error:
        parser.exit(2, f"error: {error}\n")


def _play(
    arguments: argparse.Namespace,
    rows: dict[str, Any],
    pairings: list[tuple[Game, str, Policy, str]],
    asked: list[dict[str, Any]],
) -> None:
    """Plays and prints the rows that are not there yet, and writes each where a file is given."""
    if not arguments.json:
        print(_ROW.format(players="players", player="player", opponent="against", won="rounds won", score="mean score"))
    for (game, _, policy, opponent), one in zip(pairings, asked, strict=True):
        if _key(one) in rows:
            continue
        report = match(game, policy, envs.make_bot(opponent, game), games=one["n"], seed=one["seed"])
        summary = one | {quantity: report[quantity]._asdict() for quantity in ("shared_win_rate", "score")}
        if arguments.out:
            rows[_key(one)] = summary
            write_json(arguments.out, dict(sorted(rows.items())))
        if arguments.json:
            print(json.dumps(summary), flush=True)
        else:
            won, score = report["shared_win_rate"], report["score"]
            texts = {
                "won": f"{100 * won.mean:.1f} % ({100 * won.low:.1f} to {100 * won.high:.1f})",
                "score": f"{score.mean:.1f} ({score.low:.1f} to {score.high:.1f})",
            }
            print(_ROW.format(players=one["num_players"], player=one["player"], opponent=opponent, **texts), flush=True)


def _stored(path: Path) -> dict[str, Any]:
    """Returns the rows of a file; nothing where there is none. Raises InputError where it is of something else."""
    return stored_result(path, each=holds("player", "opponent"))


def _asked(game: Game, name: str, opponent: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns a row without its figures: who plays, what about, and by what it is made."""
    return {
        "num_players": game.num_players,
        "player": name,
        "opponent": opponent,
        "n": game.num_players * arguments.deals,
        "seed": arguments.seed,
        "made": blocks.made_by(game, (name, opponent)),
    }


def _key(row: dict[str, Any]) -> str:
    return f"{row['num_players']}/{row['player']}/{row['opponent']}"


def _check_stored(rows: dict[str, Any], asked: dict[str, Any], path: Path) -> None:
    """Raises InputError where a row is stored that was made by something else, or does not say by what."""
    stored = rows.get(_key(asked), asked)
    if "made" not in stored:
        raise InputError(
            f"{path} does not say which rules, weights and code {_key(asked)} is of; delete the row, and it is played "
            "again, or give another --out"
        )
    if differing := difference(flat({name: stored[name] for name in asked}), flat(asked)):
        raise InputError(
            f"{path} holds {_key(asked)} of something else: {differing}; ask for that, delete the row, and it is "
            "played again, or give another --out"
        )


def _pairings(runs: list[str], counts: list[int]) -> Iterator[tuple[Game, str, Policy, str]]:
    """Yields game, the player's name, the player, and who has the other seats."""
    players: list[tuple[Game, str, Any]] = []
    for count in counts:
        game = envs.make("rummy500", num_players=count)
        players += [(game, name, envs.make_bot(name, game)) for name in ("greedy", "heuristic")]
    for run in runs:
        checkpoint = find(run)
        game = game_of(checkpoint)
        players.append((game, run, policy_of(checkpoint, game)))
    for game, name, policy in players:
        for opponent in ("random",) if name == "greedy" else ("random", "greedy"):
            yield game, name, policy, opponent


if __name__ == "__main__":
    main()
