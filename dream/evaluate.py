"""Plays a match: python -m dream.evaluate checkpoint=<run or checkpoint> opponent=random games=10000."""

from __future__ import annotations

import sys

from dream.commands.help import answered
from dream.training.signals import StopRequest


def main() -> None:
    """Runs the command; signal handlers are set before the slow imports, which help and version do not need."""
    if answered("evaluate", sys.argv[1:]):
        return
    StopRequest()
    from dream.commands.evaluate import play_match, prepare_match
    from dream.commands.main import run_command

    run_command("evaluate", prepare_match, play_match)


if __name__ == "__main__":
    main()
