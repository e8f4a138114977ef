#!/usr/bin/env python3
"""Compares what is believed of the opponent's hand with the hand it holds, in rounds between players by name.

    python experiments/gin_beliefs.py
    python experiments/gin_beliefs.py --game gin_rummy_mdp --decisions 64

A player meets each opponent, and is stopped at its first decision after so many actions. There worlds are drawn, as
uniform deals and as likely ones (Game.likely_world), and once weighed by the player's own policy as a search does, once
not. Each opponent and time is kept in a working folder as soon as it is done: the same command goes on after an
interruption. Written at the end, over no file of more decisions: experiments/results/gin_beliefs.json, or
gin_beliefs_<game>.json, with mean deadwood, how often it is within the knock limit, and the mean log score of who holds
each card that was never seen, in nats, lower is better.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import zlib
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scripting import blocks
from scripting.arguments import Parser, result_file
from scripting.run_records import check_as_many, flat, stored_result

import envs
from dream.equations.sampling import sample_action
from dream.evaluation.statistics import mean_interval
from dream.search import SearchSettings
from dream.search.worlds import drawn_worlds, log_likelihood, tempered
from dream.storage.files import write_text
from dream.storage.policies import find_player
from envs import Game, InputError, Policy, cards
from envs.gin_rummy.melding import melds

RESULTS = Path(__file__).resolve().parent / "results"
SEED = 241
PLAYERS = {"gin_rummy": "gin_rummy/points", "gin_rummy_mdp": "gin_rummy_mdp/strong"}
"""Who believes, by game; it meets itself too."""
OPPONENTS = ("lookahead", "marjj")
TIMES = (12, 20, 28)
"""Actions of both players before the decision."""
KINDS = ("uniform deals", "uniform deals, weighed", "likely deals", "likely deals, weighed")
SETTINGS = SearchSettings()


def stopped(game: Game, player: Policy, opponent: Policy, time: int, key: Array) -> tuple[Any, Array]:
    """Plays a round to the first decision of seat 0 after `time` actions: the state, and whether there is one, bool."""
    deal_key, play_key = jax.random.split(key)

    def is_asked(n: Array, state: Any) -> Array:
        return (n >= time) & (state.current_player == 0)

    def body(at: tuple[Array, Any]) -> tuple[Array, Any]:
        n, state = at
        view, legal = game.view(state, jnp.maximum(state.current_player, 0)), game.legal_actions(state)
        probs = jnp.where(state.current_player == 0, player(view, legal), opponent(view, legal))
        return n + 1, game.step(state, sample_action(jax.random.fold_in(play_key, n), probs))[0]

    n, state = jax.lax.while_loop(
        lambda at: (at[1].current_player >= 0) & ~is_asked(*at), body, (jnp.int32(0), game.init(deal_key))
    )
    return state, is_asked(n, state)


def believed(game: Game, policy: Policy, key: Array, state: Any) -> dict[str, Array]:
    """Returns by name what is true of the other hand, and seat 0's beliefs: float32[1 + len(KINDS)]."""
    view, truth = game.view(state, 0), game.view(state, 1).hand
    hidden = ~cards.to_cards(view.hand | view.pile | view.known)
    deadwood = melds.deadwood(truth.astype(jnp.int32))
    found = [[deadwood, deadwood <= game.rules.knock_limit, 0.0]]
    for likely in (False, True):
        worlds, corrections = drawn_worlds(game, view, key, SETTINGS.particles, likely)
        hands = jax.vmap(lambda world: game.view(world, 1).hand)(worlds)
        held, left = jax.vmap(cards.to_cards)(hands), jax.vmap(melds.deadwood)(hands.astype(jnp.int32))
        likelihood = functools.partial(log_likelihood, game, policy, seat=jnp.int32(0), mistakes=SETTINGS.mistakes)
        logs = jax.vmap(likelihood)(worlds)
        count = len(logs)
        for weights in (jnp.full(count, 1 / count), tempered(logs + corrections, SETTINGS.effective_share * count)):
            chance = jnp.clip(weights @ held, 0.5 / count, 1 - 0.5 / count)
            score = -jnp.where(cards.to_cards(truth), jnp.log(chance), jnp.log1p(-chance))
            mean = jnp.sum(jnp.where(hidden, score, 0)) / jnp.sum(hidden)
            found.append([weights @ left, weights @ (left <= game.rules.knock_limit), mean])
    return dict(zip(("deadwood", "may_knock", "log_score"), jnp.asarray(found).T, strict=True))


def looked_at(
    game: Game, player: Policy, opponent: Policy, time: int, decisions: int, seed: int
) -> dict[str, np.ndarray]:
    """Returns by name what is true and believed at so many decisions at most: float32[decisions, 1 + len(KINDS)].

    Raises:
      InputError: fewer than two rounds come to such a decision, so that there is no interval.
    """
    keys = jax.random.split(jax.random.key(seed), 2 * decisions)
    play = jax.jit(jax.vmap(functools.partial(stopped, game, player, opponent, time)))
    states, asked = play(keys)
    chosen = np.flatnonzero(asked)[:decisions]
    if len(chosen) < 2:
        raise InputError(
            f"{len(chosen)} of {2 * decisions} rounds came to a decision after {time} actions; there must be two at "
            "least: give more --decisions"
        )
    states = jax.tree.map(lambda x: x[chosen], states)
    look = jax.jit(lambda keys, states: jax.lax.map(lambda at: believed(game, player, *at), (keys, states)))
    return jax.device_get(look(jax.random.split(jax.random.key(seed + 1), len(chosen)), states))


def averaged(found: dict[str, np.ndarray]) -> dict[str, Any]:
    """Returns the means over decisions by name, each (mean, low, high) of the truth and of each of KINDS."""
    kinds = ("truth", *KINDS)
    return {
        "decisions": len(found["deadwood"]),
        **{name: {kind: list(mean_interval(values[:, n].astype(float))) for n, kind in enumerate(kinds)}
           for name, values in found.items()},
    }  # fmt: skip


def believed_of_all(arguments: argparse.Namespace, game: Game, made: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns a record of each opponent and time; those that the working folder does not have are played.

    Raises:
      InputError: what is kept there is damaged, or of other players, rules, settings or code.
    """
    own = PLAYERS[arguments.game]
    asked = {"seed": SEED, "decisions": arguments.decisions, **flat({"settings": dataclasses.asdict(SETTINGS)})}
    cells = [(name, time) for name in (own, *OPPONENTS) for time in TIMES]
    paths = [
        arguments.work / f"{arguments.game}_{name.replace('/', '-')}_{time}_{arguments.decisions}.npz"
        for name, time in cells
    ]
    for path in filter(Path.exists, paths):
        blocks.check(path, made | asked)
    arguments.work.mkdir(parents=True, exist_ok=True)
    player, records = find_player(own, game), []
    for (name, time), path in zip(cells, paths, strict=True):
        seed = zlib.crc32(f"{SEED} {name} {time}".encode())
        play = functools.partial(looked_at, game, player, find_player(name, game), time, arguments.decisions, seed)
        records.append({"opponent": name, "actions": time, **averaged(blocks.kept(path, made | asked, play))})
        print(records[-1], flush=True)
    return records


def main() -> None:
    """Plays the rounds and writes what was believed in them."""
    parser = Parser(__doc__.splitlines()[0])
    parser.add_argument("--decisions", type=int, default=256, help="of each opponent and time, at most")
    parser.add_argument("--game", choices=PLAYERS, default="gin_rummy")
    parser.add_argument("--work", type=Path, default=Path("runs/gin_beliefs"))
    parser.add_argument("--out", type=result_file, help="instead of the file in experiments/results")
    arguments = parser.parse_args()
    if arguments.decisions < 2:
        parser.exit(2, f"error: --decisions={arguments.decisions} is out of range; it must be at least 2\n")
    is_first = arguments.game == "gin_rummy"
    out = arguments.out or RESULTS / ("gin_beliefs.json" if is_first else f"gin_beliefs_{arguments.game}.json")
    game, own = envs.make(arguments.game), PLAYERS[arguments.game]
    try:
        made = blocks.made_by(game, {own, *OPPONENTS})
        stored = stored_result(out, "beliefs").get("beliefs", ())
        before = {f"{one['opponent']} after {one['actions']} actions": one["decisions"] for one in stored}
        check_as_many(out, "decisions against", before, dict.fromkeys(before, arguments.decisions))
        records = believed_of_all(arguments, game, made)
    except InputError as error:
        parser.exit(2, f"error: {error}\n")
    out.parent.mkdir(parents=True, exist_ok=True)
    of_game = "" if is_first else f"--game {arguments.game} "
    command = f"python experiments/gin_beliefs.py {of_game}--decisions {arguments.decisions}"
    content = {"seed": SEED, "command": command, "player": own, "made": made, "beliefs": records}
    write_text(out, json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
