"""Seconds of one training iteration by part: generate, fit, evaluate, save a checkpoint; compilation apart.

Where the learner plays and then fits, also the seconds that the matrix products of either part take alone, each product
measured by itself (`generate_products_s`, `fit_products_s`), and how often a part takes as long as its products.
Opponents' products are not among them, nor is the first layer where it is carried along the log.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
from common import Parser, run, spread
from products import over_products

import envs
from dream import algorithms
from dream.config.compose import compose_config
from dream.evaluation import match
from dream.storage.checkpoint_writer import CheckpointWriter
from dream.storage.policies import chosen_policy, find_player
from dream.training.metrics import CompileClock
from dream.training.start import build_run

_RATES = (
    ("games_per_s", "episodes", "seconds_generate"),
    ("decisions_per_s", "decisions", "seconds_generate"),
    ("gradient_steps_per_s", "gradient_steps", "seconds_fit"),
)
"""(rate, what is counted, the part whose seconds count)."""


def main() -> None:
    """Reads the arguments and measures."""
    parser = Parser(__doc__)
    parser.add_argument("overrides", nargs="*", help="of the configuration, e.g. algo=dueling_dream preset=laptop")
    run(parser, measure)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Times the run's own parts over iterations after the first; every one is evaluated and saved here."""
    config = build_run(compose_config("config", arguments.overrides).node).config
    clock = CompileClock()
    game = envs.make(config.env.name, **config.env.rules)
    algorithm = algorithms.make(config.algo, config.network, game)
    name = next(iter(config.eval.opponents), "random")
    opponent, state = find_player(name, game), algorithm.init(jax.random.key(config.seed))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        writer = CheckpointWriter(Path(folder), config.checkpoint.keep)
        for n in range(arguments.repeats + 1):
            (state, info), seconds = _clocked(lambda state=state: algorithm.iterate(state))
            row = {**info, "seconds_iteration": seconds}
            player = chosen_policy(algorithm.policies(state))
            row["seconds_evaluate"] = _clocked(
                lambda player=player: match(game, player, opponent, games=config.eval.games, seed=config.seed)
            )[1]
            row["seconds_checkpoint"] = _clocked(lambda n=n, state=state: writer.save(n, state, {"config": {}}))[1]
            rows.append(row)
        writer.close()
    return {
        "overrides": " ".join(arguments.overrides),
        "env": game.name,
        "evaluation_games": config.eval.games,
        "algo": config.algo["name"],
        **_figures(rows[0], rows[1:]),
        **over_products(algorithm, state, rows[1:]),
        "jax_compile_seconds": clock.seconds,
    }


def _figures(first: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns seconds and rates by part, and what the first iteration took longer."""
    parts = [name for name in first if name.startswith("seconds_")]
    seconds = {part: [row[part] for row in rows] for part in parts}
    figures: dict[str, Any] = {}
    for part in parts:
        figures |= spread(part, seconds[part])
    for rate, count, part in _RATES:
        if count in first and part in first:
            figures |= spread(count, [row[count] for row in rows])
            figures |= spread(rate, [row[count] / row[part] for row in rows])
    extra = {part: max(0.0, first[part] - statistics.median(seconds[part])) for part in parts}
    return figures | {"compile_seconds": {part.removeprefix("seconds_"): value for part, value in extra.items()}}


def _clocked(function: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    out = jax.block_until_ready(function())
    return out, time.perf_counter() - began


if __name__ == "__main__":
    main()
