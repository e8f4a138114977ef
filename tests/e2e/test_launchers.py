"""Do sweeps run on joblib, submitit and Optuna, and does a job that is run again go on?"""

from __future__ import annotations

import pathlib
import subprocess

import command_support
import pytest
from command_support import TINY

import dream

KUHN = (*TINY, "algo=cfr", "env=kuhn_poker", "eval.opponents=[]", "checkpoint.every=1")


def _sweep(cwd: pathlib.Path, *options: str) -> subprocess.CompletedProcess[str]:
    return command_support.command(
        "dream.run", "-m", *KUHN, *options, cwd=cwd, PYTHONPATH=str(command_support.REPO), JAX_PLATFORMS="cpu"
    )


@pytest.mark.parametrize(("launcher", "package"), [("processes", "joblib"), ("local", "submitit")])
def test_jobs_run_in_processes_of_their_own_and_go_on(tmp_path: pathlib.Path, launcher: str, package: str) -> None:
    """The table is read from the folders; the same sweep with more iterations goes on, here and in other processes."""
    pytest.importorskip(package)
    pytest.importorskip(f"hydra_plugins.hydra_{package}_launcher")
    done = _sweep(tmp_path, f"hydra/launcher={launcher}", "seed=1,2", "iterations=1", "run_dir=sweep")
    assert done.returncode == 0, done.stderr
    rows = dream.load_sweep(tmp_path / "sweep")
    assert [(row["seed"], row["iteration"], row["status"]) for row in rows] == [(1, 1, "finished"), (2, 1, "finished")]
    assert (
        len([line for line in done.stdout.splitlines() if line.split()[:2] in (["1", "seed=1"], ["2", "seed=2"])]) == 2
    )
    done = _sweep(tmp_path, f"hydra/launcher={launcher}", "seed=1,2", "iterations=3", "run_dir=sweep")
    assert done.returncode == 0, done.stderr
    assert [row["iteration"] for row in dream.load_sweep(tmp_path / "sweep")] == [3, 3]


def test_optuna_picks_settings_by_what_runs_came_to(tmp_path: pathlib.Path) -> None:
    """Two trials, each judged by exact exploitability."""
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    done = _sweep(
        tmp_path, "hydra/sweeper=search", "hydra.sweeper.n_trials=2", "iterations=choice(1,4)",
        "hydra.sweeper.sampler.seed=1", "run_dir=search",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = dream.load_sweep(tmp_path / "search")
    assert len(rows) == 2
    assert all(row["objective"] > 0 for row in rows)
