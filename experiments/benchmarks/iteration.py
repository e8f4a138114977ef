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
from common import Parser, ratio, run, spread
from products import floor, products_of

import envs
from dream import algorithms
from dream.algorithms.play_then_fit import PlayThenFit
from dream.algorithms.types import Algorithm
from dream.config.compose import compose_config
from dream.evaluation import match
from dream.storage.checkpoint import CheckpointWriter
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
        **_floors(algorithm, state, rows[1:]),
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


def _floors(algorithm: Algorithm, state: Any, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns seconds of the products of both parts and the parts' ratios to them; nothing for other learners."""
    learner = getattr(algorithm.iterate, "__self__", None)
    if not isinstance(learner, PlayThenFit):
        return {}
    last, arguments = rows[-1], learner.play_arguments(state)
    played = jax.eval_shape(learner.generate, *arguments)[0]
    found = {
        "generate": products_of(learner.generate, *arguments),
        "fit": products_of(learner.learn, *learner.fit_arguments(state, played)),
    }
    lanes = getattr(learner, "num_envs", None) or learner.parts.num_envs
    turns = {"generate": last["nodes"] / lanes, "fit": last["gradient_steps"]}
    figures: dict[str, Any] = {}
    for name, (straight, loops) in found.items():
        if name == "generate" and straight:
            loops = []  # a fixed number of decisions is a scan, and what loops inside it are opponents' moves
        if len(loops) > 1:
            continue  # how many turns each takes is not known here
        for loop in loops:
            straight.update({product: count * turns[name] for product, count in loop.items()})
        alone, taken = floor(straight, len(rows)), [row[f"seconds_{name}"] for row in rows]
        over = {key.replace("ratio", f"{name}_over_products"): x for key, x in ratio(taken, alone).items()}
        figures |= spread(f"{name}_products_s", alone) | over
        figures[f"{name}_tflop"] = 1e-12 * sum(count * product.operations for product, count in straight.items())
    return figures


def _clocked(function: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    out = jax.block_until_ready(function())
    return out, time.perf_counter() - began


if __name__ == "__main__":
    main()
