"""Runs the commands of docs/quickstart.md and puts what they print into the page, below each command.

    python experiments/record_quickstart.py

Only commands that a block of text follows are shown with their output; the others run too where later ones need them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from scripting.arguments import Parser

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "quickstart.md"
STEP = re.compile(
    r"^    python -m (?P<command>dream\.[^\n]*)\n(?P<output>\n```text\n.*?^```\n)?", re.MULTILINE | re.DOTALL
)
SKIPPED = ("preset=laptop", "experiment=", "runs/gin")
"""In commands that are not run: they take long."""
MOST_LINES = 40


def printed(command: str, folder: str) -> str:
    """Returns what a command prints in a folder, without the folder's own path and without trailing blanks."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "110", "WANDB_SILENT": "true"}
    words = [sys.executable, "-m", *command.split()]
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=True)
    lines = [line.rstrip() for line in done.stdout.replace(f"{Path(folder).resolve()}/", "").splitlines()]
    return "\n".join(lines[:MOST_LINES])


def main() -> None:
    """Runs the commands in order and writes the page."""
    Parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:

        def step(found: re.Match[str]) -> str:
            command, output = found["command"], found["output"]
            if any(text in command for text in SKIPPED):
                return found[0]
            text = printed(command, folder)
            return f"    python -m {command}\n" + (f"\n```text\n{text}\n```\n" if output else "")

        PAGE.write_text(STEP.sub(step, PAGE.read_text()))


if __name__ == "__main__":
    main()
