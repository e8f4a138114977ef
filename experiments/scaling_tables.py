"""The table of docs/scaling.md, from experiments/results/cost_model.json."""

from __future__ import annotations

import result_tables as tables

_TIMED = ("play", "fit", "exchange")


def cost_table() -> list[str]:
    """Returns operations of a device, the bytes that it receives and seconds, by recipe and number of devices."""
    stored = tables.stored("cost_model")
    timed = [part for part in _TIMED if any(f"{part}_seconds" in found["by_devices"]["1"] for found in stored.values())]
    head = ["recipe", "devices", "play, 10¹² operations", "fit, 10¹² operations", "record, MB", "gradients, MB"]
    head += ["batch rows", *(f"{part}, s" for part in timed)]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, found in stored.items():
        for devices, cost in found["by_devices"].items():
            operations = [f"{cost[f'{part}_operations'] / 1e12:.3g}" for part in ("play", "fit")]
            moved = [f"{cost[f'{part}_bytes'] / 1e6:,.0f}" for part in ("record", "gradient")]
            rows = f"{found['sizes']['batch_size'] / int(devices):g}"
            took = [f"{cost[key]:.3g}" if (key := f"{part}_seconds") in cost else "" for part in timed]
            lines.append(f"| {' | '.join([name, devices, *operations, *moved, rows, *took])} |")
    return lines
