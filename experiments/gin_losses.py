#!/usr/bin/env python3
"""Where a gin player's points go: by how rounds end, when it knocks, what it holds when others do, how it lays off.

    python experiments/gin_losses.py --player gin_rummy/strong --opponents lookahead camper --deals 4096

Mirrored deals; every round is played again from its record, so that the causes add up to the points per round. Blocks
are kept in the working folder; a second call, or one with another player, goes on with what is missing. A block keeps
the rules, the checksums of its players and the commit of their code, and so does its result; one of others is refused.
experiments/results/gin_losses.json holds all players that were looked at, so that before and after stand together; none
is replaced by one of fewer rounds.
"""

from __future__ import annotations

import argparse
import functools
import json
import pathlib
import zlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from scripting import blocks
from scripting.arguments import Parser, at_least, result_file
from scripting.run_records import check_as_many, stored_result

import envs
from dream.evaluation.matches import play_hands
from dream.evaluation.statistics import mean_interval
from dream.storage.files import write_text
from dream.storage.policies import find_player
from envs import InputError
from envs.gin_rummy.core import scoring, table

RESULT = pathlib.Path(__file__).resolve().parent / "results" / "gin_losses.json"
SEED = 196
_TIE, _KNOCK, _GIN, _UNDERCUT = scoring.TIE, scoring.KNOCK, scoring.GIN, scoring.UNDERCUT
CAUSES = (
    "gin", "knock", "undercuts", "stock exhausted", "undercut", "knocked against, 10 or less",
    "knocked against, 11 to 20", "knocked against, 21 to 30", "knocked against, more than 30", "gin against",
)  # fmt: skip
"""How a round ended for the player: what it did, and from `undercut` on what it suffered, with the deadwood it had."""
KNOCKS = ((0, 0), (1, 3), (4, 6), (7, 10))
"""Deadwood that is knocked with, from and to."""
TURNS = ((1, 4), (5, 8), (9, 12), (13, 40))
"""The knocker's turn, from and to."""


@functools.partial(jax.jit, static_argnums=0)
def replayed(game: envs.Game, decks: Array, actions: Array) -> dict[str, Array]:
    """Plays rounds again.

    Args:
      game: `gin_rummy`.
      decks: int[N, cards].
      actions: int[N, T], -1 after the end.
    Returns:
      By name, int32[N] or int32[N, 2] by seat: `ending`, `knocker`, `deadwood` at the end before layoffs, `turns`
      begun, `stock` left, and `waited`, turns in which a player could have knocked and did not.
    """

    def one(deck: Array, played: Array) -> dict[str, Array]:
        def body(carry: tuple[Any, Array, Array], action: Array) -> tuple[tuple[Any, Array, Array], None]:
            state, turns, waited = carry
            seat, legal = jnp.maximum(state.current_player, 0), game.legal_actions(state)
            first_knock = 3 + game.rules.num_cards
            can_knock, discards = jnp.any(legal[first_knock:]), (action >= 3) & (action < first_knock)
            ends_turn = action >= 3
            turns = turns.at[seat].add(ends_turn)
            waited = waited.at[seat].add(can_knock & discards)
            after, _, _ = game.step(state, jnp.maximum(action, 0))
            state = jax.tree.map(lambda old, new: jnp.where(action < 0, old, new), state, after)
            return (state, turns, waited), None

        nothing = jnp.zeros(2, jnp.int32)
        (state, turns, waited), _ = lax.scan(body, (game.from_deck(deck), nothing, nothing), played)
        return {
            "ending": state.ending,
            "knocker": state.knocker,
            "deadwood": state.table.deadwood,
            "turns": turns,
            "waited": waited,
            "stock": table.stock_left(game.rules, state.table),
        }

    return jax.vmap(one)(decks, actions.astype(jnp.int32))


def causes(ending: np.ndarray, knocked: np.ndarray, deadwood: np.ndarray) -> np.ndarray:
    """Returns the number in CAUSES of each round: int[N].

    Args:
      ending: int[N], of scoring.
      knocked: bool[N], whether the player knocked.
      deadwood: int[N], the player's.
    """
    against = np.searchsorted([10, 20, 30], deadwood) + CAUSES.index("knocked against, 10 or less")
    mine = np.select([ending == _GIN, ending == _KNOCK, ending == _UNDERCUT], [0, 1, CAUSES.index("undercut")], 3)
    theirs = np.select([ending == _GIN, ending == _KNOCK, ending == _UNDERCUT], [len(CAUSES) - 1, against, 2], 3)
    return np.where(ending == _TIE, CAUSES.index("stock exhausted"), np.where(knocked, mine, theirs))


def played(game: envs.Game, player: str, opponent: str, block: int, number: int) -> dict[str, np.ndarray]:
    """Plays a block of mirrored deals, and each round again: what `replayed` returns, `seat` and `points`."""
    seed = zlib.crc32(json.dumps([SEED, opponent, number]).encode())
    rounds: list[dict[str, Any]] = []
    policies = [find_player(name, game) for name in (player, opponent)]
    play_hands(game, *policies, games=2 * block, seed=seed, on_hand=rounds.append)
    actions = np.full((len(rounds), game.max_length), -1, np.int16)
    for row, one in zip(actions, rounds, strict=True):
        row[: len(one["actions"])] = one["actions"]
    found = replayed(game, np.array([one["deal"] for one in rounds]), actions)
    points = np.array([one["points"] for one in rounds])
    return jax.device_get(found) | {"seat": np.array([one["seat"] for one in rounds]), "points": points}


def looked_at(rounds: dict[str, np.ndarray], undercut_bonus: int) -> dict[str, Any]:
    """Returns where the points went, from the player's side; rounds stand in pairs of one deal."""
    seat, points = rounds["seat"], rounds["points"]
    places = np.arange(len(seat))
    own, theirs = ({name: rounds[name][places, side] for name in ("deadwood", "turns", "waited")}
                   for side in (seat, 1 - seat))  # fmt: skip
    knocked, ended = rounds["knocker"] == seat, rounds["ending"]
    cause = causes(ended, knocked, own["deadwood"])
    lays_off, bonus = np.isin(ended, (_KNOCK, _UNDERCUT)), np.where(ended == _UNDERCUT, undercut_bonus, 0)
    return {
        "rounds": len(points),
        "points_per_hand": list(mean_interval(points.reshape(-1, 2).mean(axis=1))),
        "causes": {name: _share(cause == n, points) for n, name in enumerate(CAUSES)},
        "knocks": {f"{low} to {high}" if high else "0": _share(
            knocked & (own["deadwood"] >= low) & (own["deadwood"] <= high), points) for low, high in KNOCKS},
        "knock_turns": {f"{low} to {high}": _share(
            knocked & (own["turns"] >= low) & (own["turns"] <= high), points) for low, high in TURNS},
        "knocks_against_by_turn": {f"{low} to {high}": _share(
            (rounds["knocker"] == 1 - seat) & (theirs["turns"] >= low) & (theirs["turns"] <= high), points)
            for low, high in TURNS},
        "waited": {
            "player": _share(own["waited"] > 0, points),
            "opponent": _share(theirs["waited"] > 0, points),
        },
        "endgame": _share(rounds["stock"] <= 8, points),
        "layoffs": {
            "player": _laid_off(~knocked & lays_off, own["deadwood"], theirs["deadwood"], points - bonus, ended),
            "opponent": _laid_off(knocked & lays_off, theirs["deadwood"], own["deadwood"], -points - bonus, ended),
        },
    }  # fmt: skip


def _share(chosen: np.ndarray, points: np.ndarray) -> dict[str, Any]:
    """Returns how many rounds these are, what they add to the points per round with a 95 % interval, and their mean."""
    part = np.where(chosen, points, 0.0).reshape(-1, 2).mean(axis=1)
    mean = float(points[chosen].mean()) if chosen.any() else None
    return {"share": float(chosen.mean()), "per_hand": list(mean_interval(part)), "mean": mean}


def _laid_off(
    chosen: np.ndarray, deadwood: np.ndarray, knocker: np.ndarray, points: np.ndarray, ended: np.ndarray
) -> dict[str, Any]:
    """Returns the points that layoffs saved when the other side knocked without gin.

    Args:
      chosen: bool[N], these rounds.
      deadwood, knocker: int[N], of who lays off, before, and of who knocked.
      points: float[N], won by who lays off, without bonus.
      ended: int[N].
    """
    if not chosen.any():
        return {"rounds": 0, "saved": None, "undercuts": None}
    left = knocker - points
    saved, undercuts = (deadwood - left)[chosen], ended[chosen] == _UNDERCUT
    return {"rounds": int(chosen.sum()), "saved": float(saved.mean()), "undercuts": float(undercuts.mean())}


def main() -> None:
    """Plays what is missing, and writes the results."""
    parser = Parser(__doc__.splitlines()[0])
    parser.add_argument("--player", default="gin_rummy/strong", help="any player by name, run or file")
    parser.add_argument("--label", help="what the results call it; by default its name")
    parser.add_argument("--opponents", nargs="+", default=["lookahead", "camper"])
    parser.add_argument("--deals", type=at_least(2), default=4096)
    parser.add_argument("--block", type=at_least(2), default=1024, help="deals played at once")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("runs/gin_losses"))
    parser.add_argument("--out", type=result_file, default=RESULT)
    arguments = parser.parse_args()
    game, label = envs.make("gin_rummy"), arguments.label or pathlib.Path(arguments.player).name
    try:
        stored = stored_result(arguments.out, "players") or {"seed": SEED, "players": {}}
        made = {name: blocks.made_by(game, (arguments.player, name)) for name in arguments.opponents}
        of_label = stored["players"].setdefault(label, {})
        check_label(label, of_label, arguments.player, made[arguments.opponents[0]])
        rounds_here = 2 * arguments.block * len(_numbers(arguments))
        before = {name: one["rounds"] for name, one in of_label.items()}
        check_as_many(arguments.out, f"rounds of {label} against", before, dict.fromkeys(made, rounds_here))
        arguments.work.mkdir(parents=True, exist_ok=True)
        for opponent in arguments.opponents:
            rounds = _rounds(game, opponent, made[opponent], arguments)
            source = {"player": arguments.player, "made": made[opponent]}
            of_label[opponent] = looked_at(rounds, game.rules.undercut_bonus) | source
    except InputError as error:
        parser.exit(2, f"error: {error}\n")
    write_text(arguments.out, json.dumps(stored, indent=1) + "\n")


def check_label(label: str, stored: dict[str, Any], player: str, made: dict[str, Any]) -> None:
    """Raises InputError where a label is that of another player's results; those of older scripts do not say whose."""
    key = f"checksum of {player}"
    for one in stored.values():
        if "made" in one and (one["player"], one["made"].get(key)) != (player, made[key]):
            raise InputError(
                f"{label} is what the results call {one['player']}, of other weights or another place than {player}; "
                "give another --label"
            )


def _numbers(arguments: argparse.Namespace) -> range:
    """Returns the numbers of a pairing's blocks."""
    return range(-(-arguments.deals // arguments.block))


def _rounds(
    game: envs.Game, opponent: str, made: dict[str, Any], arguments: argparse.Namespace
) -> dict[str, np.ndarray]:
    """Returns all rounds of a pairing; blocks that are missing are played.

    Raises:
      InputError: a block that is damaged, or of other players, rules or code.
    """
    player, parts = arguments.player, []
    sources = [[name, made[f"checksum of {name}"]] for name in (player, opponent)]
    code = zlib.crc32(json.dumps([*sources, arguments.block]).encode())
    numbers = _numbers(arguments)
    kept = [arguments.work / f"{code:08x}_{number}.npz" for number in numbers]
    for path in filter(pathlib.Path.exists, kept):
        blocks.check(path, made)
    for number, path in zip(numbers, kept, strict=True):
        play = functools.partial(played, game, player, opponent, arguments.block, number)
        parts.append(blocks.kept(path, made, play))
        print(f"{player} {opponent} block {number}", flush=True)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


if __name__ == "__main__":
    main()
