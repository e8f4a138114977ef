"""A run's record on disk: metrics.jsonl, one line an iteration, and the small JSON files beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax

from dream.storage.files import append_line, read_lines, write_text

FILE = "metrics.jsonl"
COUNTERS = ("episodes", "decisions", "nodes", "transitions", "network_rows", "gradient_steps")
"""What an iteration counts; a record holds the run's totals.

episodes: whole games. decisions: those learned from. nodes: decisions of all players, looked at or played. transitions:
histories entered, by a deal or by an action with what chance makes of it, played or only looked at. network_rows:
inputs that a network of the learner was applied to, forward passes only. See dream/algorithms/counters.py.
"""


def append(run_dir: Path, record: dict[str, Any]) -> None:
    """Adds a record to a run's file."""
    append_line(run_dir / FILE, record)


def read(run_dir: str | Path) -> list[dict[str, Any]]:
    """Returns the records of a run's file, leaving out a last line that was cut off."""
    return read_lines(Path(run_dir) / FILE)


def drop_after(run_dir: Path, iteration: int) -> None:
    """Drops the records past an iteration, those of work that was lost."""
    kept = [json.dumps(record) + "\n" for record in read(run_dir) if record["iteration"] <= iteration]
    write_text(run_dir / FILE, "".join(kept))


class CompileClock:
    """Adds up the seconds JAX spends tracing, lowering and compiling in this process."""

    def __init__(self) -> None:
        """Starts listening."""
        self.seconds = 0.0
        jax.monitoring.register_event_duration_secs_listener(self._add)

    def _add(self, event: str, duration: float, **_: Any) -> None:
        if event.startswith("/jax/core/compile/"):
            self.seconds += duration
