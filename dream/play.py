"""Opens a page to play on: python -m dream.play port=8123 open_browser=false."""

from __future__ import annotations

import sys

from dream.commands.help import answered


def main() -> None:
    """Runs the command; the slow imports are left out where help or the version is asked for."""
    if answered("play", sys.argv[1:]):
        return
    from dream.commands.main import run_command
    from dream.commands.play import play, prepare_play

    run_command("play", prepare_play, play)


if __name__ == "__main__":
    main()
