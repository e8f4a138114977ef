"""A run's record on disk: metrics.jsonl, one line an iteration, and the small JSON files beside it."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import jax

FILE = "metrics.jsonl"
COUNTERS = ("episodes", "decisions", "nodes", "transitions", "network_rows", "gradient_steps")
"""What an iteration counts; a record holds the run's totals.

episodes: whole games. decisions: those learned from. nodes: decisions of all players, looked at or played. transitions:
moves of the game, chance's and those only looked at included. network_rows: inputs a network was applied to.
"""


def append(run_dir: Path, record: dict[str, Any], name: str = FILE) -> None:
    """Adds one line to a file; values that are not finite become null."""
    with (run_dir / name).open("a") as file:
        file.write(json.dumps(_finite(record)) + "\n")


def read(run_dir: str | Path, name: str = FILE) -> list[dict[str, Any]]:
    """Returns the records of a run's file, leaving out a last line that was cut off."""
    path = Path(run_dir) / name
    lines = path.read_text().splitlines() if path.exists() else []
    records = []
    for line in lines:
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return records


def drop_after(run_dir: Path, iteration: int) -> None:
    """Drops the records past an iteration, those of work that was lost."""
    kept = [json.dumps(record) + "\n" for record in read(run_dir) if record["iteration"] <= iteration]
    write_text(run_dir / FILE, "".join(kept))


def write_json(path: Path, value: Any) -> None:
    """Writes a JSON file whole or not at all."""
    write_text(path, json.dumps(_finite(value), indent=2) + "\n")


def write_text(path: Path, text: str) -> None:
    """Writes a text file whole or not at all."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.replace(path)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if hasattr(value, "_asdict"):
        return _finite(value._asdict())
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class CompileClock:
    """Adds up the seconds JAX spends tracing, lowering and compiling in this process."""

    def __init__(self) -> None:
        """Starts listening."""
        self.seconds = 0.0
        jax.monitoring.register_event_duration_secs_listener(self._add)

    def _add(self, event: str, duration: float, **_: Any) -> None:
        if event.startswith("/jax/core/compile/"):
            self.seconds += duration
