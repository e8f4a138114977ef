"""Trains: python -m dream.run [overrides]; --help says what can be set."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dream.commands.help import answered
from dream.training.signals import StopRequest

if TYPE_CHECKING:
    from dream.training.beginning import Start


def main() -> None:
    """Runs the command; signals are taken over before the slow imports, which help and version do without."""
    if answered("run", sys.argv[1:]):
        return
    StopRequest()
    from dream.commands.main import run_command
    from dream.training.start import prepare_run, with_stored_choices

    run_command("config", prepare_run, job, with_stored_choices)


def job(start: Start) -> float | None:
    """Trains and returns what the run is judged by; a sweep's launcher may call it in another process."""
    from dream.training.loop import train

    stop = StopRequest.current()
    run = train(start, stop)
    if stop.received is not None:
        stop.hand_on()
        sys.exit(stop.exit_code)
    return run.objective


if __name__ == "__main__":
    main()
