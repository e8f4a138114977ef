"""Rates players by cross-play: python -m dream.ladder env=gin_rummy players=[heuristic,simple_bot] games=1000."""

from __future__ import annotations

import sys

from dream.commands.help import answered
from dream.training.signals import StopRequest


def main() -> None:
    """Runs the command; signals are taken over before the slow imports, which help and version do without."""
    if answered("ladder", sys.argv[1:]):
        return
    StopRequest()
    from dream.commands.ladder import play_ladder, prepare_ladder
    from dream.commands.main import run_command

    run_command("ladder", prepare_ladder, play_ladder)


if __name__ == "__main__":
    main()
