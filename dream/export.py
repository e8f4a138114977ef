"""Exports a policy: python -m dream.export checkpoint=<run or checkpoint> out=agent.safetensors."""

from __future__ import annotations

import sys

from dream.commands.help import answered
from dream.training.signals import StopRequest


def main() -> None:
    """Runs the command; signal handlers are set before the slow imports, which help and version do not need."""
    if answered("export", sys.argv[1:]):
        return
    StopRequest()
    from dream.commands.export import export, prepare_export
    from dream.commands.main import run_command

    run_command("export", prepare_export, export)


if __name__ == "__main__":
    main()
