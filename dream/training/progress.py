"""What a command shows while it works: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from dream.config.schema import BudgetConfig

_SHOWN = {
    "loss": "loss",
    "unseen_accuracy": "accuracy on unseen decisions",
    "value_explained_variance": "value EV",
    "self_play/knock_rate": "knocks",
    "self_play/length": "length",
}
"""Metric -> its short name on the progress line."""
MANY_INFOSETS = 100_000
"""Information sets beyond which evaluating a policy shows its progress."""
_SECONDS_BETWEEN_LINES = 5.0
_SHORTEST_KNOWN_BY_ONE = 1.0
"""Seconds of a first iteration, compiling left out, that are not mostly the tracing and starting of its programs."""


class RunProgress:
    """Progress of a training run."""

    def __init__(self, pace: Pace, done: int) -> None:
        """Opens the display.

        Args:
          pace: of the run.
          done: iterations completed before.
        """
        self._pace, self._lines = pace, Lines()
        self._bar: Progress | None = None
        if sys.stdout.isatty():
            columns = [BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()]
            self._bar = Progress(TextColumn("training"), *columns, TextColumn("{task.fields[shown]}"))
            self._task = self._bar.add_task("", total=pace.total, completed=done, shown="compiling")
            self._bar.start()

    def show(self, record: dict[str, Any]) -> None:
        """Shows an iteration's record; evaluations, the first iteration's time and an overrun are kept as lines."""
        iteration, evaluated = record["iteration"], any(name.startswith("eval/") for name in record)
        remarks, last = self._pace.remarks(record), evaluated or iteration == self._pace.total
        shown = "  ".join(f"{short} {record[name]:.3g}" for name, short in _SHOWN.items() if name in record)
        if self._bar is not None:
            self._bar.update(self._task, completed=iteration, shown=shown)
            for kept in ([self._line(record, shown)] if evaluated else []) + remarks:
                self._bar.console.print(kept, highlight=False)
            return
        if last or self._lines.are_due:
            left = self._pace.seconds_left(record)
            ahead = f"  about {duration(left)} left" if left and not remarks else ""
            self._lines.show(self._line(record, shown) + ahead, last=last)
        for remark in remarks:
            print(remark, flush=True)

    def _line(self, record: dict[str, Any], shown: str) -> str:
        """Returns what is said of an iteration."""
        line = f"iteration {record['iteration']}/{self._pace.total}  {record['seconds']:.0f} s  {shown}"
        return line.rstrip() + _evaluated(record)

    def close(self) -> None:
        """Takes the live display down."""
        if self._bar is not None:
            self._bar.stop()


class Pace:
    """How fast a run goes, and when it will be over."""

    def __init__(self, total: int, budget: BudgetConfig, before: dict[str, float]) -> None:
        """Starts from what was done before.

        Args:
          total: iterations of the whole run.
          budget: what may end it earlier.
          before: `seconds`, `compile_seconds` and the counters of the budget so far.
        """
        self.total, self._budget, self._before = total, budget, before
        self._newest, self._each, self._iterations, self._later = before, 0.0, 0, 0.0

    def remarks(self, record: dict[str, Any]) -> list[str]:
        """Takes in the record of the newest of the iterations since the last call, the first of them alone.

        Returns:
          What is to be said about the time they took. After the first iteration: seconds of an iteration without
          compiling, and when the run will be over, where that iteration was long enough to tell. After one that
          overran budget.seconds: by how much.
        """
        took = record["seconds"] - self._newest["seconds"]
        compiled = min(max(record["compile_seconds"] - self._newest["compile_seconds"], 0.0), took)
        alone = max(took - record.get("seconds_evaluate", 0.0), 0.0)
        self._iterations += record["iteration"] - self._newest["iteration"]
        if self._iterations == 1:
            self._each = max(alone - compiled, 0.0)
        else:  # the mean of those after the first
            self._later += alone
            self._each = self._later / (self._iterations - 1)
        self._newest = record
        if (limit := self._budget.seconds) is not None and record["seconds"] > limit:
            over = record["seconds"] - limit
            text = (
                f"budget.seconds={limit:g} is overrun by {duration(over)}: an iteration has some seconds to come "
                f"to its end, and cannot be left within a call; the last one took {duration(took)}"
            )
            return [text] if over > max(1.0, 0.1 * limit) else []
        if self._iterations == 1 and record["iteration"] < self.total:
            return [self._after_first(record, took, compiled)]
        return []

    def _after_first(self, record: dict[str, Any], took: float, compiled: float) -> str:
        text = f"the first iteration took {duration(took)}, {duration(compiled)} of them compiling"
        left = self.seconds_left(record)
        if left is None or self._each < _SHORTEST_KNOWN_BY_ONE:
            return text
        end = time.localtime(time.time() + left)
        clock = time.strftime("%H:%M" if left < 18 * 3600 else "%a %d %b %H:%M", end)
        return (
            f"{text}; about {duration(self._each)} per iteration, thus {duration(left)} for the rest, until {clock} "
            "(evaluations not counted)"
        )

    def seconds_left(self, record: dict[str, Any]) -> float | None:
        """Returns the seconds that the run will still take, evaluations left out; None where nothing is left."""
        iterations = float(self.total - record["iteration"])
        done = record["iteration"] - self._before.get("iteration", 0)
        for name in ("nodes", "episodes"):
            limit = getattr(self._budget, name)
            made = (record[name] - self._before.get(name, 0)) / done
            if limit is not None and made > 0:
                iterations = min(iterations, (limit - record[name]) / made)
        left = self._each * iterations
        if self._budget.seconds is not None:
            left = min(left, self._budget.seconds - record["seconds"])
        return left if left > 0 else None


_SOON_SECONDS = 60.0
"""How long the first hundredth may take before it says what the rest will take."""


class Lines:
    """Progress as lines, not more than one every few seconds."""

    def __init__(self) -> None:
        """Starts with a line at once."""
        self._began, self._printed = time.monotonic(), -_SECONDS_BETWEEN_LINES
        self._first: tuple[float, int] | None = None

    @property
    def are_due(self) -> bool:
        """Whether it is time for one."""
        return time.monotonic() - self._printed > _SECONDS_BETWEEN_LINES

    def show(self, line: str, *, last: bool = False) -> None:
        """Prints a line if it is time for one, or the last."""
        if last or self.are_due:
            self._printed = time.monotonic()
            print(line, flush=True)

    def left(self, done: int, total: int) -> str:
        """Returns how long the rest will take, by the time since the first call that something was done before.

        Up to that call programs are compiled, so that it only says what is more than the rest. It is "" at the end, and
        before a hundredth of all is done within the first minute.
        """
        now = time.monotonic()
        if not 0 < done < total:
            return ""
        self._first = self._first or (now, done)
        first, then = self._first
        if 100 * done < total and now - self._began < _SOON_SECONDS:
            return ""
        if done == then:
            return f"  less than {duration((now - self._began) * (total - done) / done)} left"
        return f"  about {duration((now - first) * (total - done) / (done - then))} left"


def of_infosets(what: str, infosets: int) -> Callable[[int, int], None]:
    """Returns what shows how many information sets a policy has been asked about; nothing where they are few."""
    lines = Lines()

    def show(done: int, all_of_them: int) -> None:
        if infosets > MANY_INFOSETS:
            lines.show(
                f"{what}: {done:,}/{all_of_them:,} information sets{lines.left(done, all_of_them)}",
                last=done == all_of_them,
            )

    return show


def duration(seconds: float) -> str:
    """Returns a time in a few characters, in the unit that fits."""
    if seconds < 10:
        return f"{seconds:.2g} s"
    for unit, name in ((1, "s"), (60, "min"), (3600, "h")):
        if seconds < 100 * unit:
            return f"{seconds / unit:.0f} {name}" if unit < 3600 else f"{seconds / unit:.1f} {name}"
    return f"{seconds / 86400:.1f} days"


def _evaluated(record: dict[str, Any]) -> str:
    """Returns win rates and exploitability in a few words."""
    words = ""
    for name, value in record.items():
        if name.startswith("eval/") and name.endswith("/win_rate"):
            words += f"  wins against {name.removeprefix('eval/').removesuffix('/win_rate')} {100 * value:.1f} %"
        elif name.startswith("eval/exploitability/"):
            words += f"  exploitability of {name.removeprefix('eval/exploitability/')} {value:.4g}"
    return words
