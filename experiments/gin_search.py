#!/usr/bin/env python3
"""Plays search with a policy against that policy and against the search levels; stores what comes out.

    python experiments/gin_search.py --policy gin_rummy/points --seconds 3600

Mirrored deals, in blocks that are kept in the working folder: a second call goes on where the first one stopped. All
players meet an opponent on the same deals, so that what one of them wins more than the policy itself is compared deal
by deal. Against the policy itself gains are estimated too, by paired playouts where the two decide differently
(dream/evaluation/gains.py); they are part of the time. Each pairing gets blocks in turn, the one farthest below its
number of deals first; but for uniform deals, the variants are played against the policy alone. The result file,
experiments/results/gin_search.json, is written at the end of every call: pairings of this working folder replace what
it says of them, none by one of fewer deals. Its command is that of the last call that replaced all.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import pathlib
import time
import zlib
from typing import Any, NamedTuple

import numpy as np
from scripting import blocks
from scripting.arguments import Parser, at_least, result_file
from scripting.run_records import difference, flat, stored_result

import envs
from dream.evaluation.gains import CHANGED, GAIN, play_for_gains
from dream.evaluation.matches import play_hands
from dream.evaluation.standings import Result
from dream.evaluation.statistics import mean_interval
from dream.search import SearchSettings, make_search
from dream.storage.files import write_text
from dream.storage.policies import find, find_player
from envs import Game, InputError, Policy

ROOT = pathlib.Path(__file__).resolve().parent
RESULT = ROOT / "results" / "gin_search.json"
SEED = 195
KEPT = ("points_per_hand", "gin_rate", "knock_rate", "undercut_rate", "mean_length")
PLAYOUTS = 2
"""Pairs of them for each decision that differs: how much a decision is worth varies more by deal than by playout."""
POLICY, SEARCH, UNIFORM = "policy", "search", "uniform deals"
LEVELS = ("lv4", "lv5", "lv7")
VARIANTS: dict[str, dict[str, Any] | None] = {
    POLICY: None,
    SEARCH: {},
    "greedy": {"worlds": 0},
    "without weights": {"weighted": False},
    UNIFORM: {"likely": False},
    "uniform deals without weights": {"likely": False, "weighted": False},
    "with the bonus": {"counts_bonus": True},
    "to the end": {"cut": -1},
    "without weights, to the end": {"weighted": False, "cut": -1},
    "no evidence": {"evidence": 0.0},
    "evidence 1": {"evidence": 1.0},
    "evidence 3": {"evidence": 3.0},
    "likely candidates": {"least_probability": 1e-6},
    "cut after 2": {"cut": 2},
    "512 worlds": {"worlds": 512},
    "512 worlds, evidence 3": {"worlds": 512, "evidence": 3.0},
}
"""Player -> what it changes of the usual search settings; None for the policy without search."""


class Pairing(NamedTuple):
    """Who plays whom, and on how many deals."""

    player: str
    opponent: str
    deals: int

    @property
    def kept(self) -> tuple[str, ...]:
        """What is kept of each round, by name."""
        return (*KEPT, GAIN, CHANGED) if self.opponent == POLICY else KEPT


def pairings(deals: int) -> list[Pairing]:
    """Returns what is played: every variant against the policy; against the levels that, its search, and as it was."""
    against_levels = [Pairing(player, level, deals) for level in LEVELS for player in (SEARCH, UNIFORM, POLICY)]
    return [Pairing(name, POLICY, deals) for name in VARIANTS if name != POLICY] + against_levels


class Bench:
    """The players, built when they are first asked for, and the blocks that have been played."""

    def __init__(self, game: Game, reference: str, work: pathlib.Path, block: int) -> None:
        """Takes the policy by name; nothing is loaded yet. Raises InputError where there is none."""
        self.game, self.reference, self.work, self.block = game, reference, work, block
        self.made = blocks.made_by(game, (reference, *LEVELS))
        self._players: dict[str, Policy] = {}

    def player(self, name: str) -> Policy:
        """Returns a variant, or a player by name."""
        if name not in self._players:
            if name == POLICY:
                found = find_player(self.reference, self.game)
            elif name in VARIANTS:
                found = make_search(self.player(POLICY), self.game, SearchSettings(**VARIANTS[name]))
            else:
                found = envs.make_bot(name, self.game)
            self._players[name] = found
        return self._players[name]

    def check(self) -> None:
        """Makes the working folder and notes the players in it.

        Raises:
          InputError: the folder holds rounds of other players or code, or one that is damaged.
        """
        place = self.work / "players.json"
        identity = json.dumps(described(self) | {"block": self.block}, indent=1)
        if place.exists() and place.read_text() != identity:
            raise InputError(
                f"{self.work} holds rounds of another policy, rules, settings or --block; choose another --work"
            )
        for one in pairings(deals=0):
            for number in range(self.played(one)):
                blocks.check(self.file(one, number), self.made)
        self.work.mkdir(parents=True, exist_ok=True)
        write_text(place, identity)

    def file(self, one: Pairing, number: int) -> pathlib.Path:
        """Returns where a block is kept."""
        return self.work / f"{one.player}_{one.opponent}_{number}.npz".replace(" ", "-").replace(",", "")

    def played(self, one: Pairing) -> int:
        """Returns the blocks of a pairing that have been played."""
        count = 0
        while self.file(one, count).exists():
            count += 1
        return count

    def play(self, one: Pairing) -> None:
        """Plays one more block; the deals depend on the opponent and the block alone."""
        number = self.played(one)
        seed = zlib.crc32(json.dumps([SEED, one.opponent, number]).encode())
        players = [self.player(name) for name in (one.player, one.opponent)]
        started, busy = time.monotonic(), time.process_time()
        play = functools.partial(play_for_gains, playouts=PLAYOUTS) if one.opponent == POLICY else play_hands
        values = play(self.game, *players, games=2 * self.block, seed=seed)
        spent = np.array([time.monotonic() - started, time.process_time() - busy])
        arrays = {"seconds": spent, **{name: np.asarray(values[name]) for name in one.kept}}
        blocks.write(self.file(one, number), arrays, self.made)
        print(f"{one.player} {one.opponent} block {number}: {spent[0]:.0f} s, {spent[1]:.0f} s of a core", flush=True)

    def values(self, one: Pairing) -> dict[str, np.ndarray]:
        """Returns all rounds of a pairing by name, and the seconds of its blocks."""
        parts = [blocks.read(self.file(one, n)) for n in range(self.played(one))]
        rounds = {name: np.concatenate([part[name] for part in parts]) for name in one.kept}
        return rounds | {"seconds": np.stack([part["seconds"] for part in parts])}


def report(bench: Bench, one: Pairing) -> dict[str, Any]:
    """Returns what a pairing's blocks come to, and how much more the player won than the policy on the same deals."""
    values = bench.values(one)
    points = values["points_per_hand"].astype(float)
    found = Result(points).report()
    same = Pairing(POLICY, one.opponent, one.deals)
    record = {
        "player": one.player,
        "opponent": one.opponent,
        "deals": len(points),
        "points_per_hand": list(found["points_per_hand"]),
        "win_rate_excluding_ties": list(found["win_rate_excluding_ties"] or ()),
        **{name: float(values[name].mean()) for name in one.kept[1:] if name != GAIN},
        "seconds": values["seconds"][:, 0].tolist(),
        "core_seconds": values["seconds"][:, 1].tolist(),
    }
    if one.opponent == POLICY:
        record[GAIN] = list(mean_interval(values[GAIN].astype(float).mean(axis=1)))
    if one.player != POLICY and one.opponent != POLICY and bench.played(same):
        other = bench.values(same)["points_per_hand"].astype(float)
        both = min(len(points), len(other))
        record["more_than_policy"] = list(mean_interval((points[:both] - other[:both]).mean(axis=1)))
    return record


def described(bench: Bench) -> dict[str, Any]:
    """Returns what the policy and the players are."""
    meta = {} if bench.reference in envs.bot_names(bench.game) else find(bench.reference).meta
    policy = {"name": pathlib.Path(bench.reference).name, "iteration": meta.get("iteration")}
    usual = dataclasses.asdict(SearchSettings())
    variants = {name: usual | changed for name, changed in VARIANTS.items() if changed is not None}
    return {"policy": policy | {"checksum": meta.get("checksum")}, "game": bench.game.identity, "settings": variants}


def kept(path: pathlib.Path, bench: Bench) -> dict[str, Any]:
    """Returns what a result file holds; {} where there is none.

    Raises:
      InputError: it is of another policy, rules or settings, so that it cannot stand beside new pairings.
    """
    stored, now = stored_result(path), json.loads(json.dumps(described(bench)))
    if stored and (differing := difference(flat({name: stored.get(name) for name in now}), flat(now))):
        raise InputError(f"{path} holds pairings of other players: {differing}; give another --out")
    return stored


def _check_known(option: str, names: list[str] | None, known: list[str]) -> None:
    for name in names or ():
        if name not in known:
            raise InputError(f"{option} {name} is in no pairing; known: {', '.join(dict.fromkeys(known))}")


def main() -> None:
    """Plays for so many seconds, and writes the results."""
    parser = Parser(__doc__.splitlines()[0])
    parser.add_argument("--policy", default="gin_rummy/points", help="any player by name, run or file")
    parser.add_argument("--preset", default="dream", help="rules of the rounds")
    parser.add_argument("--deals", type=at_least(2), default=1024, help="of each pairing")
    parser.add_argument("--block", type=at_least(2), default=128, help="deals played at once")
    parser.add_argument("--seconds", type=float, default=3600, help="no block is begun after so many")
    parser.add_argument("--only", nargs="*", help="players to be played; all by default")
    parser.add_argument("--against", nargs="*", help="opponents to be played; all by default")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("runs/gin_search"))
    parser.add_argument("--out", type=result_file, default=RESULT)
    arguments = parser.parse_args()
    try:
        records = played(arguments)
    except InputError as error:
        parser.exit(2, f"error: {error}\n")
    for record in records:
        print({key: record[key] for key in ("player", "opponent", "deals", "points_per_hand")})


def played(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Plays what is asked for and writes the results; returns the records of the file.

    Raises:
      InputError: an unknown player, rounds or results of others, or a stored pairing of more deals.
    """
    everything, started = pairings(arguments.deals), time.monotonic()
    _check_known("--only", arguments.only, [one.player for one in everything])
    _check_known("--against", arguments.against, [one.opponent for one in everything])
    game = envs.make("gin_rummy", preset=arguments.preset)
    bench = Bench(game, arguments.policy, arguments.work, arguments.block)
    bench.check()
    stored = kept(arguments.out, bench)
    earlier = stored.get("pairings", [])
    chosen = [one for one in everything
              if (arguments.only is None or one.player in arguments.only)
              and (arguments.against is None or one.opponent in arguments.against)]  # fmt: skip
    here = {one[:2]: bench.block * bench.played(one) for one in everything if bench.played(one)}
    asked = {one[:2]: max(one.deals, here.get(one[:2], 0)) for one in chosen}
    blocks.check_not_fewer(arguments.out, earlier, here | asked)  # what will be too few is not played
    while left := [one for one in chosen if bench.block * bench.played(one) < one.deals]:
        if time.monotonic() - started > arguments.seconds:
            break
        bench.play(min(left, key=lambda one: bench.played(one) / one.deals))
    found = {one[:2]: report(bench, one) | {"made": bench.made} for one in everything if bench.played(one)}
    blocks.check_not_fewer(arguments.out, earlier, {pairing: record["deals"] for pairing, record in found.items()})
    return _written(arguments, bench, stored, found)


def _written(
    arguments: argparse.Namespace, bench: Bench, stored: dict[str, Any], found: dict[tuple[str, str], dict[str, Any]]
) -> list[dict[str, Any]]:
    """Writes new records beside the stored ones, whose command stays where some do; returns all."""
    name = pathlib.Path(arguments.policy).name if pathlib.Path(arguments.policy).exists() else arguments.policy
    command = f"python experiments/gin_search.py --policy {name} --preset {arguments.preset} --deals {arguments.deals}"
    earlier = {(one["player"], one["opponent"]): one for one in stored.get("pairings", [])}
    if earlier.keys() - found.keys():
        command = stored["command"]
    both = earlier | found
    records = [both[one[:2]] for one in pairings(arguments.deals) if one[:2] in both]
    content = {"seed": SEED, "command": command, **described(bench), "pairings": records}
    write_text(arguments.out, json.dumps(content, indent=1) + "\n")
    return records


if __name__ == "__main__":
    main()
