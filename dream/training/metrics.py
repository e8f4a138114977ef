"""A run's record on disk: metrics.jsonl, one line per iteration; and the clock of its compilations."""

from __future__ import annotations

import json
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import jax

from dream.storage.files import append_lines, ends_cut_off, read_lines, scan_lines, write_text

FILE = "metrics.jsonl"
COUNTERS = ("episodes", "decisions", "nodes", "transitions", "network_rows", "gradient_steps")
"""What an iteration counts; a record holds the run's totals.

episodes: whole games. decisions: those learned from. nodes: decisions of all players, looked at or played. transitions:
histories entered, by a deal or by an action with what chance makes of it, played or only looked at. network_rows:
inputs that a network of the learner was applied to, forward passes only. See dream/algorithms/counters.py.
"""
_COMPILING = "/jax/core/compile/"


def append(run_dir: Path, *records: dict[str, Any]) -> None:
    """Adds records to a run's file."""
    append_lines(run_dir / FILE, records)


def read(run_dir: str | Path) -> list[dict[str, Any]]:
    """Returns the sound records of a run's file; damaged lines are left out, with one line on stderr."""
    return read_lines(Path(run_dir) / FILE, _is_sound)


def scan(run_dir: str | Path) -> tuple[list[dict[str, Any]], int]:
    """Returns the sound records of a run's file and how many lines are damaged."""
    return scan_lines(Path(run_dir) / FILE, _is_sound)


def droppable(run_dir: str | Path, iteration: int) -> list[str]:
    """Returns what `drop_after` drops from a run's file, in words."""
    records, damaged = scan(run_dir)
    later = sum(record["iteration"] > iteration for record in records)
    counts = {"later record": later, "damaged line": damaged}
    found = [f"{n} {what}{'s' * (n > 1)}" for what, n in counts.items() if n]
    return [*found, *(["a last line that was cut off"] if ends_cut_off(Path(run_dir) / FILE) else [])]


def _is_sound(record: dict[str, Any]) -> bool:
    iteration = record.get("iteration")
    return type(iteration) is int and iteration >= 1  # True is an int too


def drop_after(run_dir: Path, iteration: int) -> None:
    """Drops the records past an iteration, those of work that was lost, and damaged or cut-off lines."""
    kept = [json.dumps(record) + "\n" for record in scan(run_dir)[0] if record["iteration"] <= iteration]
    write_text(run_dir / FILE, "".join(kept))


class CompileClock:
    """Adds up the seconds in which JAX traces, lowers or compiles in this process.

    One compilation may happen inside another, and several at once in threads: the time counts once, as the length of
    the union of all their intervals. It starts with the clock, so that it never exceeds the time since then.

    Attributes:
      began: when it was started, by time.monotonic().
    """

    def __init__(self) -> None:
        """Starts listening."""
        self.began = time.monotonic()
        self._spans: list[tuple[float, float]] = []
        """Disjoint, in order."""
        _listen(self)

    @property
    def seconds(self) -> float:
        """So far."""
        return sum(end - start for start, end in self._spans)

    def add(self, end: float, duration: float) -> None:
        """Adds an interval that ended at `end`, by time.monotonic()."""
        start = max(end - duration, self.began)
        if end <= start:
            return
        later = []
        while self._spans and self._spans[-1][1] >= start:
            first, last = self._spans.pop()
            if first > end:
                later.append((first, last))
            else:
                start, end = min(start, first), max(end, last)
        self._spans += [(start, end), *reversed(later)]


_CLOCKS: weakref.WeakSet[CompileClock] = weakref.WeakSet()
_LOCK = threading.Lock()


def _listen(clock: CompileClock) -> None:
    """Has a clock hear of compilations as long as anyone holds it; JAX knows one listener for all of them."""
    with _LOCK:
        if _hear not in _REGISTERED:
            jax.monitoring.register_event_duration_secs_listener(_hear)
            _REGISTERED.append(_hear)
        _CLOCKS.add(clock)


def _hear(event: str, duration: float, **_: Any) -> None:
    if event.startswith(_COMPILING):
        end = time.monotonic()
        with _LOCK:
            for clock in _CLOCKS:
                clock.add(end, duration)


_REGISTERED: list[Any] = []
