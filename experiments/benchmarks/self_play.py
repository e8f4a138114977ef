"""Decisions per second of self-play with records: the first layer carried along the log, against dense observations."""

from __future__ import annotations

import argparse
import functools
from typing import Any

import jax
import jax.numpy as jnp
from common import Parser, Work, at_least_one, interleaved, parameters, ratio, run, spread
from jax import Array

import envs
from dream.algorithms.dueling_dream import ActorOutput
from dream.config.compose import compose_config
from dream.equations.regret_matching import soft_regret_matching
from dream.equations.sampling import sample_action
from dream.networks import make_network
from dream.networks.network import Reader, dense_reader, make_reader
from dream.rollout import self_play
from dream.training.start import build_run
from envs import Game, InputError


def main() -> None:
    """Reads the arguments and measures."""
    parser = Parser(__doc__)
    parser.add_argument("overrides", nargs="*", help="of the configuration, e.g. network.hidden=[256,256]")
    parser.add_argument("--games", type=at_least_one, default=1024, help="in one call (default %(default)s)")
    parser.add_argument("--lanes", type=at_least_one, default=1024, help="games at once (default %(default)s)")
    parser.add_argument("--temperature", type=_temperature, default=float("inf"), help="default: inf, uniform play")
    run(parser, measure)


def _temperature(text: str) -> float:
    """Reads a number above 0, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not valid; it must be a number above 0, or inf")
    return value


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Times playing whole games, every decision recorded with view and policy, with both readers in turn."""
    config = build_run(compose_config("config", arguments.overrides).node).config
    game = envs.make(config.env.name, **config.env.rules)
    network = make_network(config.network, game)
    if not network.inputs.carries_log:
        raise InputError("this network reads no whole log, so nothing can be carried; network.log_window must be null")
    games, lanes = arguments.games, arguments.lanes
    if games < lanes:
        raise InputError(f"--games {games} is less than --lanes {lanes}; every lane must play a game")
    params = jax.jit(network.init)(jax.random.key(config.seed))
    readers = {"carried": make_reader(game, network), "dense": dense_reader(network)}
    works = {
        name: _generation(game, reader, params, jnp.float32(arguments.temperature), games=games, lanes=lanes)
        for name, reader in readers.items()
    }
    timings = interleaved(works, arguments.repeats)
    carried, dense = (timings[name].rates("decisions") for name in readers)
    return {
        "env": game.name,
        "network": config.network,
        "parameters": parameters(config.network, game),
        "games": games,
        "num_envs": lanes,
        "temperature": str(arguments.temperature),
        **spread("decisions_per_s", carried),
        **spread("dense_decisions_per_s", dense),
        **ratio(carried, dense),
        **spread("games_per_s", timings["carried"].rates("games")),
        **spread("dense_games_per_s", timings["dense"].rates("games")),
        "compile_seconds": timings["carried"].compile_seconds,
        "dense_compile_seconds": timings["dense"].compile_seconds,
    }


def _generation(game: Game, reader: Reader, params: Any, temperature: Array, *, games: int, lanes: int) -> Work:
    """Plays `games` whole games and keeps the whole record, as the learner's generation does."""

    @jax.jit
    def generate(params: Any, key: Array, temperature: Array) -> self_play.Record:
        act = functools.partial(_act, reader, reader.prepare(params), temperature)
        return self_play.play(game, self_play.Actor(lambda key: reader.start(), act), key, games=games, num_envs=lanes)

    return Work(
        lambda n: generate(params, jax.random.key(n), temperature),
        lambda record: {"games": record.results["games"], "decisions": jnp.sum(record.valid)},
    )


def _act(
    reader: Reader, weights: Any, temperature: Array, carry: Any, view: Any, legal: Array, player: Array, key: Array
) -> tuple[Array, Any, ActorOutput]:
    """Draws from the network's soft regret matching policy, noting policy and value."""
    (advantages, value), carry = reader.read(weights, carry, view, player)
    policy = soft_regret_matching(advantages, legal, temperature)
    output = ActorOutput(policy.astype(jnp.float16), value, ratio=jnp.float32(1), is_learner=jnp.bool_(True))
    return sample_action(key, policy), carry, output


if __name__ == "__main__":
    main()
