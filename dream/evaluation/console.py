"""Where tables are printed: plain text, in notebooks too."""

from __future__ import annotations

from typing import NoReturn

from rich.console import Console


class PlainConsole(Console):
    """A console that takes text as it is, and lets the command end as others do where nobody reads its output."""

    def __init__(self) -> None:
        """Writes to standard output."""
        super().__init__(force_jupyter=False, markup=False, emoji=False)

    def on_broken_pipe(self) -> NoReturn:
        """Raises BrokenPipeError, where rich itself would end the process with code 1."""
        raise BrokenPipeError
