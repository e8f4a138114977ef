#!/usr/bin/env python3
"""Plays the gin rummy players against each other in pairings whose strength is published; stores what comes out.

    python experiments/gin_relations.py --seconds 600

Rounds are played under the rules of the EAAI 2021 challenge (`env.rules.preset=eaai`), mirrored, in blocks of deals
that are kept in the working folder: a second call goes on where the first one stopped. Each pairing gets blocks in
turn, the one farthest below its number of deals first. The chance to win a game to 100 comes from all rounds played
(dream/evaluation/game_chances.py). The result file, by default the stored one, is written at the end of every call:
pairings of this working folder replace what it says of them, the others stay; none is replaced by one of fewer deals. A
block keeps the rules, the checksums of its players and the commit of their code, and so does its pairing's record; one
of others is refused.
"""

from __future__ import annotations

import json
import pathlib
import time
import zlib
from typing import Any, NamedTuple

import numpy as np
from scripting import blocks
from scripting.arguments import Parser, result_file
from scripting.run_records import stored_result

import envs
from dream.evaluation.matches import play_hands
from dream.evaluation.standings import Result
from dream.evaluation.statistics import mean_interval
from dream.storage.files import write_text
from dream.storage.policies import find_player
from envs.match_rules import Standing, after_round, winner_of

ROOT = pathlib.Path(__file__).resolve().parent
RESULT = ROOT / "results" / "gin_relations.json"
SEED = 19
KEPT = ("points_per_hand", "gin_rate", "knock_rate", "undercut_rate", "mean_length")


class Relation(NamedTuple):
    """A pairing whose result somebody has published.

    Attributes:
      player, opponent: by name.
      published: share of games to 100 that the first one won there; None where there is none.
      deals: to be played.
      block: deals played at once.
    """

    player: str
    opponent: str
    published: float | None
    deals: int
    block: int


RELATIONS = (
    Relation("patient", "eaai_simple", 0.598, 8192, 2048),
    Relation("greedy", "eaai_simple", None, 8192, 2048),
    Relation("patient", "greedy", 0.622, 8192, 2048),
    Relation("patient", "marjj", 0.292, 4096, 1024),
    Relation("mc:64", "eaai_simple", 0.654, 1024, 128),
    Relation("mc:256", "eaai_simple", 0.731, 1024, 128),
    Relation("mc:64", "marjj", 0.424, 512, 128),
    Relation("mc:128", "eaai_simple", 0.692, 512, 128),
    Relation("mc:512", "marjj", 0.541, 512, 128),
    Relation("gin_rummy/strong", "eaai_simple", None, 8192, 2048),
    Relation("gin_rummy/strong", "marjj", None, 8192, 1024),
    Relation("gin_rummy/strong", "patient", None, 8192, 2048),
    Relation("gin_rummy/strong", "mc:512", None, 1024, 64),
    Relation("gin_rummy/points", "eaai_simple", None, 8192, 2048),
    Relation("gin_rummy/points", "marjj", None, 8192, 1024),
    Relation("gin_rummy/points", "patient", None, 8192, 2048),
)
"""Ours come last; they were trained where gin pays 50. Published figures: jdh8's gin-rummy-engine, README, CHANGELOG
and docs/strong-opponents.md."""


LIMITS = tuple(range(0, 11, 2))
"""Deadwood that variants of `patient` knock with."""
_AWARE_DEALS, _AWARE_GAMES, _PARTS = 2048, 4000, 8


def score_aware(game: envs.Game, opponent: str) -> dict[str, Any]:
    """Returns what `patient` would win if it chose its limit by the score before each round.

    jdh8's player knocks with 4 + 40 lead / (target - the leader's score) points or less, from 0 to 10, here rounded
    to even numbers. Rounds with each limit are played alone; games draw them at random by the limit that the score asks
    for, in parts of separate deals.
    """
    rules, other = game.match_rules(), envs.make_bot(opponent, game)
    seed = zlib.crc32(json.dumps([SEED, "patient by score", opponent]).encode())
    points = []
    for limit in LIMITS:
        changed = {name: float(limit) for name in ("early", "middle", "late")}
        hands = play_hands(game, envs.make_bot("patient", game, **changed), other, games=2 * _AWARE_DEALS, seed=seed)
        points.append(np.rint(hands["points_per_hand"]).astype(int).reshape(_PARTS, -1, 2))
    shares, rng = [], np.random.default_rng(SEED)
    for part in range(_PARTS):
        won = 0
        for number in range(_AWARE_GAMES):
            standing = Standing(number % 2)
            while (winner := winner_of(rules, standing)) is None:
                own, theirs = standing.scores
                shift = 40 * (own - theirs) / (rules.target - max(own, theirs))
                rounds = points[int(np.clip(round((4 + shift) / 2), 0, 5))][part]
                standing = after_round(rules, standing, int(rounds[rng.integers(len(rounds)), standing.first]))
            won += winner == 0
        shares.append(won / _AWARE_GAMES)
    return {"opponent": opponent, "deals": _AWARE_DEALS, "game_win_rate": list(mean_interval(np.array(shares)))}


def main() -> None:
    """Plays for so many seconds, and writes the results."""
    parser = Parser(__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600, help="no block is begun after so many")
    parser.add_argument("--only", default="", help="pairings whose first player's name begins so")
    parser.add_argument("--against", default="", help="pairings whose second player's name begins so")
    parser.add_argument("--aware", action="store_true", help="also what patient wins with limits by the score")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("runs/gin_relations"))
    parser.add_argument("--out", type=result_file, default=RESULT)
    arguments = parser.parse_args()
    begun = (arguments.only, arguments.against)
    relations = [one for one in RELATIONS if all(name.startswith(x) for name, x in zip(one[:2], begun, strict=True))]
    if not relations:
        known = ", ".join(f"{one.player} against {one.opponent}" for one in RELATIONS)
        parser.exit(2, f"error: --only {begun[0]!r} --against {begun[1]!r} begin no pairing's names; known: {known}\n")
    try:
        records = _played_for(arguments.seconds, relations, arguments.work, arguments.out, aware=arguments.aware)
    except envs.InputError as error:
        parser.exit(2, f"error: {error}\n")
    for record in records:
        print({key: record[key] for key in ("player", "opponent", "deals", "published", "game_win_rate")})


def _played_for(
    seconds: float, relations: list[Relation], work: pathlib.Path, out: pathlib.Path, *, aware: bool
) -> list[dict[str, Any]]:
    """Plays blocks of pairings for so many seconds and writes the results; returns those of the pairings.

    Raises:
      InputError: a block in the working folder that is damaged, or of other players, rules or code; or a stored
        pairing of more deals.
    """
    game, started = envs.make("gin_rummy", preset="eaai"), time.monotonic()
    made = {one: blocks.made_by(game, (one.player, one.opponent)) for one in RELATIONS}
    for one in RELATIONS:
        for path in _blocks(work, one):
            blocks.check(path, made[one])
    before = stored_result(out, "relations")
    earlier = before.get("relations", [])
    most = {one[:2]: one.deals if one in relations else _played(work, one) for one in RELATIONS}
    blocks.check_not_fewer(out, earlier, {pairing: deals for pairing, deals in most.items() if deals})
    work.mkdir(parents=True, exist_ok=True)
    while open_ := [one for one in relations if _played(work, one) < one.deals]:
        if time.monotonic() - started > seconds:
            break
        one = min(open_, key=lambda one: _played(work, one) / one.deals)
        _play(game, one, work, made[one])
    records = [_report(game, one, work) | {"made": made[one]} for one in RELATIONS if _played(work, one)]
    blocks.check_not_fewer(out, earlier, {_pairing(record): record["deals"] for record in records})
    found = {_pairing(record): record for record in [*earlier, *records]}
    order = {one[:2]: number for number, one in enumerate(RELATIONS)}
    kept = sorted(found.values(), key=lambda record: order.get(_pairing(record), len(order)))
    stored = {"seed": SEED, "preset": "eaai", "target": 100, "relations": kept}
    by_score = [score_aware(game, opponent) for opponent in ("eaai_simple",)] if aware else []
    stored["patient_by_score"] = by_score or before.get("patient_by_score", [])
    out.parent.mkdir(parents=True, exist_ok=True)
    write_text(out, json.dumps(stored, indent=1) + "\n")
    return records


def _pairing(record: dict[str, Any]) -> tuple[str, str]:
    return record["player"], record["opponent"]


def _file(work: pathlib.Path, one: Relation, number: int) -> pathlib.Path:
    return work / f"{one.player}_{one.opponent}_{number}.npz".replace(":", "-").replace("/", "-")


def _blocks(work: pathlib.Path, one: Relation) -> list[pathlib.Path]:
    """Returns the files of a pairing's blocks that have been played."""
    return [path for n in range(one.deals // one.block) if (path := _file(work, one, n)).exists()]


def _played(work: pathlib.Path, one: Relation) -> int:
    """Returns the deals of a pairing that have been played."""
    return one.block * len(_blocks(work, one))


def _play(game: envs.Game, one: Relation, work: pathlib.Path, made: dict[str, Any]) -> None:
    """Plays one more block of a pairing, the first that is missing."""
    number = next(n for n in range(one.deals // one.block) if not _file(work, one, n).exists())
    players = [find_player(name, game) for name in (one.player, one.opponent)]
    seed = zlib.crc32(json.dumps([SEED, one.player, one.opponent, number]).encode())
    started, busy = time.monotonic(), time.process_time()
    values = play_hands(game, *players, games=2 * one.block, seed=seed)
    spent = np.array([time.monotonic() - started, time.process_time() - busy])
    arrays = {"seconds": spent, **{name: np.asarray(values[name]) for name in KEPT}}
    blocks.write(_file(work, one, number), arrays, made)
    print(f"{one.player} {one.opponent} block {number}: {spent[0]:.0f} s, {spent[1]:.0f} s of a core", flush=True)


def _report(game: envs.Game, one: Relation, work: pathlib.Path) -> dict[str, Any]:
    """Returns what a pairing's blocks come to."""
    parts = [blocks.read(path) for path in _blocks(work, one)]
    values = {name: np.concatenate([part[name] for part in parts]) for name in KEPT}
    points = np.rint(values["points_per_hand"]).astype(float)
    report = Result(points, game.match_rules()).report()
    return {
        "player": one.player,
        "opponent": one.opponent,
        "published": one.published,
        "deals": len(points),
        "game_win_rate": list(report["game_win_rate"] or ()),
        "rounds_per_game": report["rounds_per_game"],
        "points_per_hand": list(report["points_per_hand"]),
        "win_rate_excluding_ties": list(report["win_rate_excluding_ties"] or ()),
        "tie_rate": report["tie_rate"].mean,
        **{name: float(values[name].mean()) for name in KEPT[1:]},
        "seconds": float(sum(part["seconds"][0] for part in parts)),
        "core_seconds": float(sum(part["seconds"][1] for part in parts)),
    }


if __name__ == "__main__":
    main()
