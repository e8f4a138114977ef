"""Operations and bytes of one iteration by number of devices, from shapes; seconds, from what one machine measured.

    python experiments/cost_model.py        writes experiments/results/cost_model.json; result_pages.py makes the table

P parameters, B rows of a minibatch, S gradient steps, n decisions, R rows of V bytes recorded, D devices:

    operations of a device   2 P n / D in play; 6 P B S / D in the fit, 2 P B S / D more where a target network reads
                             too
    bytes it receives        R V (D - 1) / D, the record, which every device then holds whole; 2 * 4 P (D - 1) / D for
                             every gradient step, the all-reduce of the gradient in a ring

Products with the parameters alone are counted, every parameter once, which is too few where a network convolves; rules,
deals and the optimiser are not.

Where experiments/results/iteration_h200.json has an accelerator's iteration of a recipe by part, as measured by
benchmarks/iteration.py, seconds follow:

    play and fit as measured, divided by D; (bytes of the record + of the gradients) / LINK

that is, as many machines like that one, each as fast on its share, and nothing overlapped.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import jax

from dream.config.compose import compose_config
from dream.networks import make_network
from dream.rollout.self_play import longest
from dream.storage.files import write_json
from dream.training.start import build_run

RESULT = Path(__file__).resolve().parent / "results" / "cost_model.json"
RECIPES = {
    "the DREAM document, preset=h200": ["preset=h200"],
    "OpenSpiel's document, experiment=openspiel_ppo": ["experiment=openspiel_ppo"],
}
MEASURED = RESULT.with_name("iteration_h200.json")
LINK = 12.5e9
"""Bytes per second between machines: 100 Gbit/s."""
DEVICES = (1, 8, 16, 64, 256, 1024)


def sizes(overrides: list[str]) -> dict[str, float]:
    """Returns what the model needs of a recipe: parameters, rows, bytes of a row, minibatch, steps, networks."""
    parts = build_run(compose_config("config", overrides).node)
    game, config = parts.game, parts.algorithm.iterate.__self__
    config = getattr(config, "config", None) or config.parts.config
    shapes = jax.eval_shape(make_network(parts.config.network, game).init, jax.random.key(0))
    view = jax.eval_shape(lambda key: game.view(game.init(key), 0), jax.random.key(0))
    dueling = config.name == "dueling_dream"
    kept = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(view)) + -(-game.num_actions // 8) + 2
    kept += 4 + 2 * game.num_actions if dueling else 3 * 4
    lanes = config.num_envs or config.episodes_per_iteration
    length = getattr(config, "rollout_length", None) or longest(game, config.episodes_per_iteration, lanes)
    steps = config.epochs if dueling else config.epochs * -(-length * lanes // config.batch_size)
    return {
        "parameters": sum(x.size for x in jax.tree.leaves(shapes)),
        "record_rows": length * lanes,
        "row_bytes": kept,
        "batch_size": config.batch_size,
        "gradient_steps": steps,
        "passes": 4 if dueling else 3,
    }


def costs(size: dict[str, float], devices: int) -> dict[str, float]:
    """Returns the operations of one device and the bytes that it receives in an iteration; play is at most all rows."""
    share = (devices - 1) / devices
    fitted = 2 * size["passes"] * size["parameters"] * size["batch_size"] * size["gradient_steps"]
    return {
        "play_operations": 2 * size["parameters"] * size["record_rows"] / devices,
        "fit_operations": fitted / devices,
        "record_bytes": size["record_rows"] * size["row_bytes"] * share,
        "gradient_bytes": 8 * size["parameters"] * size["gradient_steps"] * share,
    }


def seconds(measured: dict[str, float], cost: dict[str, float], devices: int) -> dict[str, float]:
    """Returns the seconds of the parts of an iteration on machines like the measured one."""
    moved = (cost["record_bytes"] + cost["gradient_bytes"]) / LINK
    play, fit = (measured[f"seconds_{part}"] / devices for part in ("generate", "fit"))
    return {"play_seconds": play, "fit_seconds": fit, "exchange_seconds": moved}


def measured_of(overrides: list[str]) -> dict[str, Any] | None:
    """Returns what benchmarks/iteration.py measured of a recipe, None where that is not stored."""
    found = json.loads(MEASURED.read_text()) if MEASURED.exists() else None
    # Without it the first iterations play at random and read no network.
    plays = [*overrides, "algo.uniform_iterations=0"]
    return found if found is not None and found["overrides"].split() == plays else None


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    report: dict[str, Any] = {}
    for name, overrides in RECIPES.items():
        size, measured = sizes(overrides), measured_of(overrides)
        by_devices = {n: costs(size, n) for n in DEVICES}
        if measured is not None:
            by_devices = {n: cost | seconds(measured, cost, n) for n, cost in by_devices.items()}
        report[name] = {"sizes": size, "by_devices": {str(n): cost for n, cost in by_devices.items()}}
    write_json(RESULT, report)
    print(RESULT)


if __name__ == "__main__":
    main()
