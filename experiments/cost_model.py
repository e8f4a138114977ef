"""Operations and bytes of one iteration by number of devices, from shapes; seconds, from what one machine measured.

    python experiments/cost_model.py        writes experiments/results/cost_model.json; result_pages.py makes the tables

P weights of matrix products, F of them in the first layer, C of those of the log, W parameters in all, B rows of a
minibatch, S gradient steps, T turns of play, R rows of V bytes recorded, k reads of a row in the fit, D devices:

    operations of a device   2 (P - C) R / D in play, whose first layer is carried along the log
                             2 ((k + 2) P - F) B S / D in the fit: k reads, the gradients of all weights, and those
                             of all inputs but the first layer's
    bytes it receives        R V (D - 1) / D, the record, which every device then holds whole; 2 * 4 W (D - 1) / D for
                             every gradient step, the all-reduce of the gradient in a ring
    messages one by one      log2 D, rounded up, for every turn (which lanes are over) and for the record; twice that
                             for every gradient step: trees

Products with weights alone are counted, every weight once, which is too few where a network convolves; rules, deals and
the optimiser are not.

Where an iteration of the same sizes was measured by part (benchmarks/iteration.py), seconds follow, of as many machines
like that one as there are devices:

    operations / rate of the part, that of its own products, as measured; bytes / `--link` + messages * `--latency`

Each machine is as fast on its share, and nothing is overlapped. Link and latency are assumed, not measured.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import jax
from scripting.arguments import Parser, above_zero, result_file
from scripting.run_records import stored_result

from dream.config.compose import compose_config
from dream.networks import make_network
from dream.rollout.self_play import longest
from dream.storage.files import write_json
from dream.training.start import build_run

RESULT = Path(__file__).resolve().parent / "results" / "cost_model.json"
RECIPES = {
    "the DREAM document, 40 minibatches": [],
    "the same, each decision once, preset=h200": ["preset=h200"],
    "OpenSpiel's document, experiment=openspiel_ppo": ["experiment=openspiel_ppo"],
}
MEASURED = ("iteration_h200", "iteration")
"""Result files of measured iterations, of those that are there."""
LINK = 12.5e9
"""Bytes per second between machines: 100 Gbit/s. Assumed."""
LATENCY = 2e-5
"""Seconds of a message between machines. Assumed."""
DEVICES = (1, 8, 16, 64, 256, 1024)


def sizes(overrides: list[str]) -> dict[str, float]:
    """Returns what the model needs of a recipe: weights, rows, bytes of a row, minibatch, steps, reads, turns."""
    parts = build_run(compose_config("config", overrides).node)
    game, learner = parts.game, parts.algorithm.iterate.__self__
    config = getattr(learner, "config", None) or learner.parts.config
    network = make_network(parts.config.network, game)
    arrays = jax.tree.leaves(jax.eval_shape(network.init, jax.random.key(0)))
    linear, carries = network.first_layer is not None, network.inputs.carries_log
    by_log = network.inputs.size - len(game.event_log.dense_indices) if carries else 0
    dueling = config.name == "dueling_dream"
    lanes = config.num_envs or config.episodes_per_iteration
    length = getattr(config, "rollout_length", None) or longest(game, config.episodes_per_iteration, lanes)
    passes = not dueling or config.epoch_unit == "passes"
    steps = config.epochs * (-(-length * lanes // config.batch_size) if passes else 1)
    return {
        "parameters": sum(x.size for x in arrays),
        "weights": sum(x.size for x in arrays if x.ndim > 1),
        "first_layer": network.inputs.size * network.width if linear else 0,
        "carried": by_log * network.width,
        "record_rows": length * lanes,
        "row_bytes": _row_bytes(game, learner.parts.keeps_advantages if dueling else None),
        "batch_size": config.batch_size,
        "gradient_steps": steps,
        "reads": learner.parts.reads if dueling else 1,
        "turns": length,
    }


def _row_bytes(game: Any, keeps_advantages: bool | None) -> int:
    """Returns the bytes of a recorded decision: view, legal actions, what dueling DREAM or, where None, PPO keeps."""
    view = jax.eval_shape(lambda key: game.view(game.init(key), 0), jax.random.key(0))
    kept = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(view)) + -(-game.num_actions // 8) + 2
    if keeps_advantages is None:
        return kept + 3 * 4
    return kept + 4 * 4 + (2 + 4 * keeps_advantages) * game.num_actions


def costs(size: dict[str, float], devices: int) -> dict[str, float]:
    """Returns a device's operations, and the bytes and messages that it waits for; play is at most all rows."""
    share, depth = (devices - 1) / devices, math.ceil(math.log2(devices))
    fitted = (size["reads"] + 2) * size["weights"] - size["first_layer"]
    return {
        "play_operations": 2 * (size["weights"] - size["carried"]) * size["record_rows"] / devices,
        "fit_operations": 2 * fitted * size["batch_size"] * size["gradient_steps"] / devices,
        "record_bytes": size["record_rows"] * size["row_bytes"] * share,
        "gradient_bytes": 8 * size["parameters"] * size["gradient_steps"] * share,
        "messages": depth * (size["turns"] + 1 + 2 * size["gradient_steps"]),
    }


def rates(measured: dict[str, float]) -> dict[str, float]:
    """Returns operations per second of the parts of a measured iteration."""
    parts = {"play": "generate", "fit": "fit"}
    return {part: 1e12 * measured[f"{name}_tflop"] / measured[f"seconds_{name}"] for part, name in parts.items()}


def seconds(rate: dict[str, float], cost: dict[str, float], link: float, latency: float) -> dict[str, float]:
    """Returns the seconds of the parts of an iteration.

    Args:
      rate: operations per second of a device, by part.
      cost: of a device.
      link: bytes per second.
      latency: seconds of a message.
    """
    moved = (cost["record_bytes"] + cost["gradient_bytes"]) / link + cost["messages"] * latency
    took = {part: cost[f"{part}_operations"] / rate[part] for part in ("play", "fit")} | {"exchange": moved}
    return took | {"iteration": sum(took.values())}


def timed(size: dict[str, float], by_devices: dict[int, Any], link: float, latency: float) -> dict[str, Any]:
    """Returns the seconds of a recipe on machines like each that measured an iteration of its sizes, by result file."""
    found = {}
    for name in MEASURED:
        path = RESULT.with_name(f"{name}.json")
        measured = stored_result(path)
        if not measured or sizes(measured["overrides"].split()) != size:
            continue
        rate = rates(measured)
        took = {str(n): seconds(rate, cost, link, latency) for n, cost in by_devices.items()}
        found[name] = {"machine": measured["machine"], "operations_per_s": rate, "seconds_by_devices": took}
    return found


def main() -> None:
    """Runs the command."""
    parser = Parser(__doc__)
    parser.add_argument("--link", type=above_zero, default=LINK, help="bytes/s between machines (default %(default)g)")
    parser.add_argument(
        "--latency", type=above_zero, default=LATENCY, help="seconds of a message (default %(default)g)"
    )
    parser.add_argument("--out", type=result_file, default=RESULT, help="default: the file that the tables are of")
    arguments = parser.parse_args()
    report: dict[str, Any] = {"link": arguments.link, "latency": arguments.latency, "recipes": {}}
    for name, overrides in RECIPES.items():
        size = sizes(overrides)
        by_devices = {n: costs(size, n) for n in DEVICES}
        report["recipes"][name] = {
            "sizes": size,
            "by_devices": {str(n): cost for n, cost in by_devices.items()},
            "timed": timed(size, by_devices, arguments.link, arguments.latency),
        }
    write_json(arguments.out, report)
    print(arguments.out)


if __name__ == "__main__":
    main()
