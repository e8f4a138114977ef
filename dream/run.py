"""Trains: python -m dream.run [overrides]; --help lists the settings."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dream.commands.help import answered
from dream.training.signals import StopRequest

if TYPE_CHECKING:
    from dream.training.beginning import Start


def main() -> None:
    """Runs the command; signal handlers are set before the slow imports, which help and version do not need."""
    if answered("run", sys.argv[1:]):
        return
    StopRequest()
    from dream.commands.main import run_command
    from dream.training.start import prepare_run, with_stored_choices

    run_command("config", prepare_run, job, with_stored_choices)


def job(start: Start) -> float | None:
    """Trains and returns the objective of the run; the launcher of a sweep may call it in another process."""
    from dream.training.faults import closed_output_noted
    from dream.training.loop import train

    stop = StopRequest.current()
    with closed_output_noted(start.run_dir):
        run = train(start, stop)
    if stop.received is not None:
        stop.hand_on()
        sys.exit(stop.exit_code)
    return run.objective


if __name__ == "__main__":
    main()
