"""Runs of dream.run in processes of their own: started, or resumed from their last checkpoint."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from dream.config.compose import as_value
from dream.storage.checkpoint import has_checkpoint


def go_on(overrides: Sequence[str], run_dir: Path, *also: str) -> int:
    """Starts a run, or resumes it from its last checkpoint; returns the exit code.

    Args:
      overrides: of a run that starts.
      run_dir: its directory.
      *also: overrides in both cases.
    """
    place = as_value(str(run_dir))
    own = [f"resume={place}"] if has_checkpoint(run_dir) else [*overrides, f"run_dir={place}"]
    return call([*own, *also])


def call(overrides: Sequence[str]) -> int:
    """Calls dream.run; returns the exit code, 128 and its number of a signal, as a shell. The run saves first."""
    child = subprocess.Popen([sys.executable, "-m", "dream.run", *overrides])
    taken = {signal.SIGINT: lambda *_: None, signal.SIGTERM: lambda *_: child.terminate()}
    before = {number: signal.signal(number, handler) for number, handler in taken.items()}
    try:
        code = child.wait()
        return code if code >= 0 else 128 - code
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
