"""Do sweeps run on joblib, submitit and Optuna, and does a job that is run again go on?"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
from collections.abc import Iterator

import command_support
import pytest
from command_support import TINY, wait_for

import dream
from dream.storage import lock
from dream.storage.checkpoint import find
from dream.training import metrics

KUHN = (*TINY, "algo=cfr", "env=kuhn_poker", "eval.opponents=[]", "checkpoint.every=1")


def _start(cwd: pathlib.Path, *options: str) -> subprocess.Popen[str]:
    return command_support.start(
        "dream.run", "-m", *KUHN, *options, cwd=cwd, PYTHONPATH=str(command_support.REPO), JAX_PLATFORMS="cpu"
    )


def _sweep(cwd: pathlib.Path, *options: str) -> subprocess.CompletedProcess[str]:
    return command_support.finish(_start(cwd, *options))


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
        len([line for line in done.stdout.splitlines() if line.split()[:2] in (["0", "seed=1"], ["1", "seed=2"])]) == 2
    )
    done = _sweep(tmp_path, f"hydra/launcher={launcher}", "seed=1,2", "iterations=3", "run_dir=sweep")
    assert done.returncode == 0, done.stderr
    assert [row["iteration"] for row in dream.load_sweep(tmp_path / "sweep")] == [3, 3]


def test_a_sweep_that_hydra_could_not_begin_is_refused(tmp_path: pathlib.Path) -> None:
    """In one line, without a table of jobs that never were, and nothing is written; more in test_wrong_input.py."""
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    options = ("hydra/launcher=processes", "algo=cfr,cfr_pluss", "seed=1,2", "run_dir=sweep")
    done = _sweep(tmp_path, *options)
    assert done.returncode == 2
    (error,) = done.stderr.splitlines()
    assert "unknown algo 'cfr_pluss'; did you mean 'cfr_plus'?" in error
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_jobs_refused_in_processes_of_their_own_are_told(tmp_path: pathlib.Path) -> None:
    """Exit code 1 and a row for each job asked for, none for what an earlier sweep left in the folder."""
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    command = ("hydra/launcher=processes", "iterations=1", "run_dir=sweep")
    assert _sweep(tmp_path, *command, "seed=1,2").returncode == 0
    done = _sweep(tmp_path, *command, "seed=1,3", "algo.average_power=-1,0")
    assert done.returncode == 1
    rows = [
        line.split(maxsplit=3) for line in done.stdout.splitlines() if line.split()[:1] in (["0"], ["1"], ["2"], ["3"])
    ]
    assert [(row[0], row[1]) for row in rows] == [("0", "seed=1"), ("1", "seed=1"), ("2", "seed=3"), ("3", "seed=3")]
    assert [row[3] == "refused" for row in rows] == [True, True, True, False]
    assert "error: job 2 (seed=3 algo.average_power=-1): refused: algo.average_power=-1" in done.stderr
    foreseen = "warning: jobs 0, 2 (seed=1 algo.average_power=-1 and so on) will be refused: algo.average_power=-1.0 is"
    assert any(line.startswith(foreseen) for line in done.stderr.splitlines())
    assert sorted(path.name for path in (tmp_path / "sweep").iterdir() if path.is_dir()) == ["0", "1", "3"]


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


def _owner(run_dir: pathlib.Path) -> int | None:
    """Returns the process that works in a run directory; None where none does."""
    try:
        return json.loads((run_dir / lock.FILE).read_text())["pid"]
    except (OSError, ValueError):
        return None


def _done(run_dir: pathlib.Path) -> int:
    """Returns the newest iteration that is recorded."""
    records = metrics.read(run_dir) if (run_dir / metrics.FILE).exists() else []
    return records[-1]["iteration"] if records else 0


ENDLESS = ("hydra/launcher=local", "seed=1", "algo.updates=200", "eval.every=1000000000", "run_dir=sweep")


@pytest.fixture
def endless(tmp_path: pathlib.Path) -> Iterator[tuple[subprocess.Popen[str], pathlib.Path]]:
    """A sweep of one job on submitit that has done some iterations, of which none is saved."""
    pytest.importorskip("hydra_plugins.hydra_submitit_launcher")
    process = _start(tmp_path, *ENDLESS, "iterations=1000000000", "checkpoint.every=1000000000")
    run_dir = tmp_path / "sweep" / "0"
    try:
        wait_for(lambda: _done(run_dir) >= 3, process)
        yield process, run_dir
    finally:
        process.kill()
        if (owner := _owner(run_dir)) is not None:
            os.kill(owner, signal.SIGKILL)
        command_support.finish(process)


def test_a_preempted_job_saves_is_queued_again_and_goes_on(
    endless: tuple[subprocess.Popen[str], pathlib.Path],
) -> None:
    """After submitit's signal in the same sweep, after SIGTERM by the same command; no iteration is done twice."""
    process, run_dir = endless
    versions, owner, done = run_dir / "versions.json", _owner(run_dir), _done(run_dir)
    begun = versions.stat().st_mtime_ns
    os.kill(owner, signal.SIGUSR2)
    wait_for(lambda: versions.stat().st_mtime_ns > begun, process)
    resumed = [start["started_at_iteration"] for start in json.loads(versions.read_text()).get("resumed", [])]
    assert len(resumed) == 1
    assert resumed[0] == find(run_dir).meta["iteration"] >= done
    wait_for(lambda: _done(run_dir) > resumed[0], process)
    assert _owner(run_dir) != owner
    os.kill(_owner(run_dir), signal.SIGTERM)
    wait_for(lambda: _owner(run_dir) is None, process)
    saved = find(run_dir).meta["iteration"]
    assert saved == _done(run_dir) > resumed[0]
    again = _sweep(run_dir.parents[1], *ENDLESS, f"iterations={saved + 2}")
    assert again.returncode == 0, again.stderr
    assert [record["iteration"] for record in metrics.read(run_dir)] == list(range(1, saved + 3))
    logs = [log.read_text() for log in sorted(run_dir.parent.glob(".submitit/*/*_log.out"))]
    assert sum(text.count("from iteration") for text in logs) == 2
    assert not any("dropped from" in text for text in logs)
