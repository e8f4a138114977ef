"""Plays rummy 500 in the terminal, a person against rule-based players, to a target.

python -m envs.rummy500 --players 3 --opponent greedy --target 500
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NoReturn

import envs
from envs import records
from envs.errors import InputError


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Ends with one line and exit code 2."""
        self.exit(2, f"error: {message}\n")


def main(arguments: list[str] | None = None) -> None:
    """Plays; wrong input gets one line and exit code 2."""
    parser = _Parser(prog="python -m envs.rummy500", description=__doc__.splitlines()[0])
    parser.add_argument("--players", type=int, default=2, help="seats, 2 to 6 (%(default)s); you have the first")
    parser.add_argument("--opponent", default="greedy", help="heuristic, greedy or random (%(default)s)")
    parser.add_argument("--target", type=int, default=500, help="score that ends the match (%(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="of the deals (random)")
    parser.add_argument("--records", default=None, help="file that each finished round is added to")
    given = parser.parse_args(arguments)
    from envs.terminal import play_in_terminal  # compiles nothing before the options are read

    try:
        _check(given)
        game = envs.make("rummy500", num_players=given.players)
        bot = envs.make_bot(given.opponent, game)
        seats = [None, *[bot] * (given.players - 1)]
        play_in_terminal(game, seats, hint=bot, target=given.target, seed=given.seed, keep=given.records)
    except (InputError, OSError) as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        parser.exit(130)


def _check(given: argparse.Namespace) -> None:
    """Raises InputError where an option is wrong, before anything is played."""
    if given.target < 1:
        raise InputError(f"--target={given.target} is not valid; it must be 1 or more")
    if given.seed is not None and given.seed < 0:
        raise InputError(f"--seed={given.seed} is not valid; it must be 0 or more")
    if given.records is None:
        return
    path = Path(given.records)
    if path.is_dir() or not path.parent.is_dir():
        raise InputError(f"--records={given.records} is not valid; it must be a file in a folder that exists")
    records.check_lines(path)


if __name__ == "__main__":
    main()
