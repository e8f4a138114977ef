"""The table of docs/scaling.md, from experiments/results/cost_model.json."""

from __future__ import annotations

import result_tables as tables

_TIMED = ("play", "fit", "exchange")


def cost_table() -> list[str]:
    """Returns operations of a device, the bytes that it receives and seconds, by recipe and number of devices."""
    lines = [
        "| recipe | devices | play, 10¹² operations | fit, 10¹² operations | record, MB | gradients, MB | batch rows | "
        "play, s | fit, s | exchange, s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, found in tables.stored("cost_model").items():
        for devices, cost in found["by_devices"].items():
            operations = [f"{cost[f'{part}_operations'] / 1e12:.3g}" for part in ("play", "fit")]
            moved = [f"{cost[f'{part}_bytes'] / 1e6:,.0f}" for part in ("record", "gradient")]
            rows = f"{found['sizes']['batch_size'] / int(devices):g}"
            took = [f"{cost[key]:.3g}" if (key := f"{part}_seconds") in cost else "" for part in _TIMED]
            lines.append(f"| {' | '.join([name, devices, *operations, *moved, rows, *took])} |")
    return lines
