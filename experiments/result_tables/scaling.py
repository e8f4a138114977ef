"""The tables of docs/scaling.md, from experiments/results/cost_model.json."""

from __future__ import annotations

from result_tables import common


def cost_table() -> list[str]:
    """Returns operations of a device and the bytes that it receives, by recipe and number of devices."""
    rows = []
    for name, found in common.stored("cost_model")["recipes"].items():
        for devices, cost in found["by_devices"].items():
            operations = [f"{cost[f'{part}_operations'] / 1e12:.3g}" for part in ("play", "fit")]
            moved = [f"{cost[f'{part}_bytes'] / 1e6:,.0f}" for part in ("record", "gradient")]
            last = [f"{found['sizes']['batch_size'] / int(devices):g}", f"{cost['messages']:,}"]
            rows.append([name, devices, *operations, *moved, *last])
    return common.table(
        "recipe | devices | play, 10¹² operations | fit, 10¹² operations | record, MB | gradients, MB | batch rows | "
        "messages",
        rows,
    )


def seconds_table() -> list[str]:
    """Returns the modelled seconds of an iteration by number of machines like each that measured one."""
    stored, lines = common.stored("cost_model"), []
    link = f"{8 * stored['link'] / 1e9:g} Gbit/s and {1e6 * stored['latency']:g} µs a message between machines"
    for name, found in stored["recipes"].items():
        for file, timed in found["timed"].items():
            on, rate = timed["machine"], {part: x / 1e9 for part, x in timed["operations_per_s"].items()}
            took, rows = timed["seconds_by_devices"], []
            for devices, one in took.items():
                parts = [f"{one[part]:.3g}" for part in ("play", "fit", "exchange", "iteration")]
                rows.append([devices, *parts, f"{took['1']['iteration'] / one['iteration']:.3g}"])
            lines += common.table(
                "machines | play, s | fit, s | exchange, s | iteration, s | times faster than one",
                rows,
                f"Modelled: {name}, on machines like the one of `experiments/results/{file}.json` ({on['cores']} cores "
                f"of {on['cpu']}, {on['device']}). Fitted to its parts: {rate['play']:.0f} GFLOP/s in play and "
                f"{rate['fit']:.0f} in the fit. Assumed: {link}.",
            )
    return lines
