"""Points per hand of gin players against one reference field: the order of the levels that people choose from.

    python experiments/gin_levels.py                              the levels, and other players for comparison
    python experiments/gin_levels.py --players camper runs/mine   further ones; the others' results are kept

Every player meets every member of the field on mirrored deals of the pairing's own. A player's strength is the mean
over the field; against itself it is 0. Results are merged into experiments/results/gin_levels.json after every player,
each with the rules, the checksums of its players and the commit of their code; none replaces one of more rounds.
"""

from __future__ import annotations

import math
import zlib
from pathlib import Path
from typing import Any

from scripting import blocks
from scripting.arguments import Parser, result_file
from scripting.run_records import check_as_many, stored_result

import envs
from dream.evaluation import match
from dream.evaluation.matches import check_games
from dream.storage import files, levels
from dream.storage.policies import find_player

RESULT = Path(__file__).resolve().parent / "results" / "gin_levels.json"
FIELD = ("simple_bot", "greedy", "heuristic", "marjj", "camper", "lookahead")
OTHERS = ("meld_builder", "patient", "defensive", "early_knock", "aggressive_knock", "eaai_simple")


def against_field(player: str, games: int) -> dict[str, Any]:
    """Plays a player against the field; returns points per hand by opponent, and the mean over the field."""
    game = envs.make("gin_rummy")
    by_opponent = {}
    for opponent in FIELD:
        if opponent == levels.player_of(player, game):
            by_opponent[opponent] = {"mean": 0.0, "low": 0.0, "high": 0.0}
            continue
        deals = zlib.crc32(f"levels {player} {opponent}".encode())
        report = match(game, find_player(player, game), find_player(opponent, game), games=games, seed=deals)
        by_opponent[opponent] = report["points_per_hand"]._asdict()
    mean = sum(one["mean"] for one in by_opponent.values()) / len(FIELD)
    half = math.hypot(*((one["high"] - one["low"]) / 2 for one in by_opponent.values())) / len(FIELD)
    points = {"mean": mean, "low": mean - half, "high": mean + half}
    return {"games": games, "points_per_hand": points, "by_opponent": by_opponent}


def main() -> None:
    """Reads the arguments and plays."""
    parser = Parser(__doc__)
    parser.add_argument("--players", nargs="+", help="by name, run or file; by default levels and some others")
    parser.add_argument("--games", type=int, default=2000, help="rounds per pairing (default %(default)s)")
    parser.add_argument("--out", type=result_file, default=RESULT)
    arguments = parser.parse_args()
    others = [name for name in (*FIELD, *OTHERS) if levels.Level(name) not in levels.LEVELS["gin_rummy"]]
    game = envs.make("gin_rummy")
    players = arguments.players or [*levels.names(game), *others]
    try:
        check_games(game, arguments.games)
        for player in players:
            find_player(player, game)
        stored = stored_result(arguments.out, "field", "players") or {"field": FIELD, "players": {}}
        if tuple(stored["field"]) != FIELD:
            raise envs.InputError(
                f"{arguments.out} holds means over another field, {', '.join(stored['field'])}; give another --out"
            )
        before = {player: row["games"] for player, row in stored["players"].items()}
        check_as_many(arguments.out, "rounds of", before, dict.fromkeys(players, arguments.games))
        made = {player: blocks.made_by(game, (player, *FIELD)) for player in players}
    except envs.InputError as error:
        parser.exit(2, f"error: {error}\n")
    for player in players:
        found = against_field(player, arguments.games)
        stored["players"][player] = found | {"made": made[player]}
        files.write_json(arguments.out, stored)
        print(f"{player}: {found['points_per_hand']['mean']:+.2f} points per hand", flush=True)


if __name__ == "__main__":
    main()
