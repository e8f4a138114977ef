"""Seconds that a whole training run of a learner takes on a small game, from the command to its end.

Each repeat starts `python -m dream.run` with an empty cache of compiled programs, in turn for every learner. The run
ends with the iteration that reaches its nodes (decisions of both players) and evaluates exactly once, at its end.
`run_s` is the process, `compile_s` what the run spent compiling, both with that evaluation.
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

from common import Parser, run, spread

from dream.training import metrics
from envs import InputError

_PPO = ["env=leduc_poker", "algo=ppo", "algo.learning_rate_decay.transition_steps=2240"]
LEARNERS = {
    "ppo": (10_000_000, _PPO),
    "ppo_one_pass": (10_000_000, [*_PPO, "algo.epochs=1", "algo.learning_rate=2e-3"]),
    "dream": (5_000_000, ["env=leduc_poker", "algo=dream"]),
}
"""Nodes, and what is run: PPO's step falls over as many iterations as it makes of these nodes."""
_NEVER = 10**9


def main() -> None:
    """Reads the arguments and measures."""
    parser = Parser(__doc__, repeats=3)
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS), choices=LEARNERS)
    parser.add_argument("--nodes", type=float, help="for all (default 10 M of ppo, 5 M of dream)")
    run(parser, measure)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Times every learner in turn, as often as repeats says."""
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in arguments.learners}
    for _ in range(arguments.repeats):
        for name, measured in rows.items():
            nodes, overrides = LEARNERS[name]
            with tempfile.TemporaryDirectory() as folder:
                measured.append(_whole_run([*overrides, f"budget.nodes={arguments.nodes or nodes}"], Path(folder)))
    return {name: _spreads(measured) for name, measured in rows.items()}


def _whole_run(overrides: list[str], folder: Path) -> dict[str, float]:
    """Returns the seconds of one run, and what it did.

    Raises:
      InputError: the run failed.
    """
    never = [f"{name}={_NEVER}" for name in ("iterations", "eval.every", "checkpoint.every")]
    end = ["eval.opponents=[]", "tracking.mode=disabled", f"run_dir={folder / 'run'}"]
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(folder / "cache")}
    began = time.perf_counter()
    command = [sys.executable, "-m", "dream.run", *overrides, *never, *end]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    seconds = time.perf_counter() - began
    if done.returncode:
        said = done.stderr.splitlines() or ["it printed nothing"]
        raise InputError(f"the run failed: {said[-1].removeprefix('error: ')}")
    last = metrics.read(folder / "run")[-1]
    counts = {name: last[name] for name in ("nodes", "iteration")}
    return {"run_s": seconds, "compile_s": last["compile_seconds"], **counts}


def _spreads(rows: list[dict[str, float]]) -> dict[str, Any]:
    """Returns the spread of the seconds, and the counts, which are the same in every run of one seed."""
    times = spread("run_s", [row["run_s"] for row in rows]) | spread("compile_s", [row["compile_s"] for row in rows])
    return times | {name: rows[0][name] for name in ("nodes", "iteration")}


if __name__ == "__main__":
    main()
