"""Trains: python -m dream.run [overrides]; --help says what can be set."""

from __future__ import annotations

import sys

from dream.commands.help import answered
from dream.training.signals import StopRequest


def main() -> None:
    """Runs the command; signals are taken over before the slow imports, which help and version do without."""
    if answered("run", sys.argv[1:]):
        return
    stop = StopRequest()
    from dream.commands.main import run_command
    from dream.training.beginning import Start
    from dream.training.loop import train
    from dream.training.start import prepare_run, with_stored_choices

    def job(start: Start) -> float | None:
        run = train(start, stop)
        if stop.received is not None:
            sys.exit(stop.exit_code)
        return run.objective

    run_command("config", prepare_run, job, with_stored_choices)


if __name__ == "__main__":
    main()
