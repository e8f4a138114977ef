"""Trains: python -m dream.run [overrides]; conf/config.yaml tells what can be set."""

from __future__ import annotations

import sys

from dream.stopping import StopRequest


def main() -> None:
    """Runs the command; signals are taken over before the slow imports."""
    stop = StopRequest()
    from dream.commands import run_command
    from dream.starting import prepare_run, with_stored_choices
    from dream.training import Start, train

    def job(start: Start) -> None:
        train(start, stop)
        if stop.received is not None:
            sys.exit(stop.exit_code)

    run_command("config", prepare_run, job, with_stored_choices)


if __name__ == "__main__":
    main()
