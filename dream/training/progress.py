"""What a command shows while it works: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

_SHOWN = {
    "loss": "loss",
    "value_explained_variance": "value EV",
    "self_play/knock_rate": "knocks",
    "self_play/length": "length",
}
"""Metric -> its short name on the progress line."""
_SECONDS_BETWEEN_LINES = 5.0


class RunProgress:
    """Progress of a training run."""

    def __init__(self, total: int, done: int) -> None:
        """Opens the display.

        Args:
          total: iterations of the whole run.
          done: iterations completed before.
        """
        self._total, self._lines = total, Lines()
        self._bar: Progress | None = None
        if sys.stdout.isatty():
            columns = [BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()]
            self._bar = Progress(TextColumn("training"), *columns, TextColumn("{task.fields[told]}"))
            self._task = self._bar.add_task("", total=total, completed=done, told="compiling")
            self._bar.start()

    def show(self, record: dict[str, Any]) -> None:
        """Shows an iteration's record; evaluations are always kept as a line."""
        iteration, evaluated = record["iteration"], [name for name in record if name.startswith("eval/")]
        told = "  ".join(f"{short} {record[name]:.3g}" for name, short in _SHOWN.items() if name in record)
        line = f"iteration {iteration}/{self._total}  {record['seconds']:.0f} s  {told}" + _evaluated(record)
        if self._bar is not None:
            self._bar.update(self._task, completed=iteration, told=told)
            if evaluated:
                self._bar.console.print(line, highlight=False)
        else:
            self._lines.show(line, last=bool(evaluated) or iteration == self._total)

    def close(self) -> None:
        """Takes the live display down."""
        if self._bar is not None:
            self._bar.stop()


class Lines:
    """Progress as lines, not more than one every few seconds."""

    def __init__(self) -> None:
        """Starts with a line at once."""
        self._printed = -_SECONDS_BETWEEN_LINES

    def show(self, line: str, *, last: bool = False) -> None:
        """Prints a line if it is time for one, or the last."""
        if last or time.monotonic() - self._printed > _SECONDS_BETWEEN_LINES:
            self._printed = time.monotonic()
            print(line, flush=True)


def _evaluated(record: dict[str, Any]) -> str:
    """Tells win rates and exploitability in a few words."""
    told = ""
    for name, value in record.items():
        parts = name.split("/")
        if name.startswith("eval/") and name.endswith("/win_rate"):
            told += f"  wins against {parts[1]} {100 * value:.1f} %"
        elif name.startswith("eval/exploitability/"):
            told += f"  exploitability of {parts[2]} {value:.4g}"
    return told
