"""Dispatches: python -m dream <command> [overrides]; alone it lists the commands."""

from __future__ import annotations

import importlib
import sys

from dream.commands.help import COMMANDS, answered, overview
from envs.errors import unknown


def main() -> None:
    """Runs the command that the first argument names, as `python -m dream.<command>` would."""
    name, *arguments = sys.argv[1:] or [""]
    if name not in COMMANDS:
        if answered(None, [name, *arguments]):
            return
        if name:
            print(f"error: {unknown('command', name, COMMANDS)}", file=sys.stderr)
            sys.exit(2)
        print(overview())
        return
    sys.argv = [f"{sys.argv[0]} {name}", *arguments]
    importlib.import_module(f"dream.{name}").main()


if __name__ == "__main__":
    main()
