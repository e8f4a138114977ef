"""Seconds from the start of a training run's process to its first record, the first line of metrics.jsonl.

Each repeat starts `python -m dream.run` with an empty cache of compiled programs, and then again with the cache that
the first left; each process is ended after its first record. `import_s` is a process that only imports `dream`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import Parser, run, spreads

from envs import InputError

_PAUSE = 0.005
"""Seconds between two looks for the record."""


def main() -> None:
    """Reads the arguments and measures."""
    parser = Parser(__doc__, repeats=3)
    parser.add_argument("overrides", nargs="*", default=["preset=laptop"], help="of the run (default preset=laptop)")
    run(parser, measure)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Times a run with an empty cache and with what it left, and an import, as often as repeats says."""
    rows = []
    for _ in range(arguments.repeats):
        with tempfile.TemporaryDirectory() as folder:
            cold, warm = (_first_record(arguments.overrides, Path(folder), name) for name in ("cold", "warm"))
        rows.append({"first_record_cold_s": cold, "first_record_warm_s": warm, "import_s": _import()})
    return {"overrides": " ".join(arguments.overrides), **spreads(rows)}


def _first_record(overrides: list[str], folder: Path, name: str) -> float:
    """Returns the seconds of one run until its first record, and ends it.

    Args:
      overrides: of the run.
      folder: of the cache, and of the run directory and the errors that it gets.
      name: of the run.
    Raises:
      InputError: the run ended without a record.
    """
    run_dir, errors = folder / name, folder / f"{name}.txt"
    command = [sys.executable, "-m", "dream.run", *overrides, f"run_dir={run_dir}", "tracking.mode=disabled"]
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(folder / "cache")}
    with errors.open("w") as file:
        began = time.perf_counter()
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=file) as child:
            try:
                while not _has_line(run_dir / "metrics.jsonl"):
                    if child.poll() is not None:
                        said = errors.read_text().splitlines() or ["it printed nothing"]
                        raise InputError(f"the run ended without a record: {said[-1].removeprefix('error: ')}")
                    time.sleep(_PAUSE)
                return time.perf_counter() - began
            finally:
                child.kill()  # nothing that it would save is kept


def _has_line(path: Path) -> bool:
    return path.exists() and b"\n" in path.read_bytes()


def _import() -> float:
    """Returns the seconds of a process that imports the package."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import dream"], check=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
