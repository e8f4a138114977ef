"""Rates players by cross-play: python -m dream.ladder env=gin_rummy players=[heuristic,simple_bot] games=1000."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dream.commands.help import answered
from dream.training.signals import StopRequest

if TYPE_CHECKING:
    from dream.commands.ladder import Ladder


def main() -> None:
    """Runs the command; signal handlers are set before the slow imports, which help and version do not need."""
    if answered("ladder", sys.argv[1:]):
        return
    StopRequest()
    from dream.commands.ladder import prepare_ladder
    from dream.commands.ladder_folder import completed
    from dream.commands.main import run_command

    run_command("ladder", prepare_ladder, job, completed)


def job(prepared: Ladder) -> None:
    """Plays; a signal also ends the worker processes."""
    from dream.commands.ladder import play_ladder

    play_ladder(prepared, StopRequest.current())


if __name__ == "__main__":
    main()
