"""Plays a match: python -m dream.evaluate checkpoint=<run or checkpoint> opponent=random games=10000."""

from __future__ import annotations

from dream.stopping import StopRequest


def main() -> None:
    """Runs the command; signals are taken over before the slow imports."""
    StopRequest()
    from dream.commands import run_command
    from dream.matching import play_match, prepare_match

    run_command("evaluate", prepare_match, play_match)


if __name__ == "__main__":
    main()
