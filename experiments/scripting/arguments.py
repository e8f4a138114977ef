"""The arguments of scripts: wrong ones are refused in one line, before any work is done."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from dream.commands.folders import check_can_be_folder
from envs.errors import InputError


class Parser(argparse.ArgumentParser):
    """Reads a script's arguments; ends the process with one line and exit code 2 where one is wrong."""

    def __init__(self, description: str | None = None, **others: Any) -> None:
        """Takes the description as it is, with its line breaks."""
        super().__init__(description=description, formatter_class=argparse.RawDescriptionHelpFormatter, **others)

    def error(self, message: str) -> NoReturn:
        """Ends the process."""
        self.exit(2, f"error: {message}\n")


def at_least(least: int) -> Callable[[str], int]:
    """Returns what reads a whole number of at least so many, for argparse."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit()) or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not valid; it must be a whole number, at least {least}")
        return int(text)

    return read


at_least_one = at_least(1)


def above_zero(text: str) -> float:
    """Reads a finite number above 0.

    Raises:
      argparse.ArgumentTypeError: it is none.
    """
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not valid; it must be a number above 0")
    return number


def result_file(text: str) -> Path:
    """Reads the path of a result file.

    Raises:
      argparse.ArgumentTypeError: no file can be written there.
    """
    path = Path(text)
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{path} is a folder; it must be a file")
    try:
        check_can_be_folder(path.absolute().parent, "its folder")
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return path
