"""Is a sweep's folder read whole, whatever became of its jobs?"""

from __future__ import annotations

import json
import pathlib
import time
from typing import Any

import pytest

import dream
from envs import InputError


def _interval(mean: float) -> dict[str, float]:
    return {"mean": mean, "low": mean - 1, "high": mean + 1}


def _job(folder: pathlib.Path, settings: dict[str, Any], records: int, report: dict[str, Any] | None) -> None:
    """Writes what a run leaves in its folder."""
    folder.mkdir(parents=True)
    config = {"run_dir": str(folder), "env": {"name": "leduc_poker"}, **settings}
    (folder / "config.yaml").write_text(json.dumps(config))  # JSON is YAML
    lines = [json.dumps({"iteration": n + 1, "nodes": 10 * n, "seconds": 0.5 * n}) + "\n" for n in range(records)]
    (folder / "metrics.jsonl").write_text("".join(lines))
    if report is not None:
        (folder / "evaluation.json").write_text(json.dumps(report))
    if report is not None or records > 2:
        (folder / "checkpoints" / str(records)).mkdir(parents=True)


def test_every_job_is_a_row(tmp_path: pathlib.Path) -> None:
    """A finished job, one stopped, one that went on without measuring again, one just begun; in order of number."""
    exact = {"current": {"exploitability": 0.5}, "average": {"exploitability": 0.25}}
    points = {"random": {"points_per_hand": _interval(3.0), "n": 8}, "other": {"points_per_hand": _interval(-1.0)}}
    _job(tmp_path / "10", {"seed": 1, "algo": {"rate": 0.1}}, 4, {"iteration": 4, "by_opponent": points})
    _job(tmp_path / "2", {"seed": 1, "algo": {"rate": 0.2}}, 2, {"iteration": 2, "exact": exact, "by_opponent": points})
    _job(tmp_path / "3", {"seed": 2, "algo": {"rate": 0.2}}, 3, None)
    _job(tmp_path / "4", {"seed": 2, "algo": {"rate": 0.2}}, 5, {"iteration": 3, "exact": exact})
    _job(tmp_path / "5", {"seed": 2, "algo": {"rate": 0.2, "more": None}}, 0, None)
    (tmp_path / "notes").mkdir()
    (tmp_path / "6").mkdir()  # a job that was refused leaves no more than its folder
    rows = dream.load_sweep(tmp_path)
    assert [row["job"] for row in rows] == [2, 3, 4, 5, 10]
    assert [row["status"] for row in rows] == ["finished", "stopped", "stopped", "begun", "finished"]
    assert [row["iteration"] for row in rows] == [2, 3, 5, 0, 4]
    assert [row["objective"] for row in rows] == [0.25, None, None, None, -3.0]
    assert [(row["seed"], row["algo.rate"]) for row in rows] == [(1, 0.2), (2, 0.2), (2, 0.2), (2, 0.2), (1, 0.1)]
    assert "env.name" not in rows[0]
    assert "run_dir" not in rows[0]
    assert rows[0]["nodes"] == 10
    assert rows[0]["exploitability/average"] == 0.25
    assert "exploitability/average" not in rows[2], "it is of an earlier iteration than the row"
    assert rows[4]["other/points_per_hand/low"] == -2.0


def test_a_job_that_is_to_go_on_is_not_finished(tmp_path: pathlib.Path) -> None:
    """Evaluated at its former end, and given more iterations or nodes since; what a budget has ended is finished."""
    exact, budget = {"average": {"exploitability": 0.5}}, {"nodes": None, "episodes": None, "seconds": None}
    for number, settings in enumerate(
        (
            {"iterations": 4, "budget": budget},
            {"iterations": 9, "budget": budget},
            {"iterations": 9, "budget": budget | {"nodes": 30}},
            {"iterations": 9, "budget": budget | {"nodes": 31}},
            {"iterations": 9, "budget": budget | {"seconds": 2.0}},
        )
    ):
        _job(tmp_path / str(number), settings, 4, {"iteration": 4, "exact": exact})
    rows = dream.load_sweep(tmp_path)
    assert [row["status"] for row in rows] == ["finished", "stopped", "finished", "stopped", "finished"]
    assert [row["objective"] for row in rows] == [0.5, None, 0.5, None, 0.5]


def test_an_evaluation_that_says_what_was_asked_decides(tmp_path: pathlib.Path) -> None:
    """A run that ended by its seconds is finished until it is given more seconds or iterations."""
    asked = {"iterations": 4, "budget.nodes": None, "budget.episodes": None, "budget.seconds": 2.0}
    for number, (iterations, seconds) in enumerate(((4, 2.0), (9, 2.0), (4, 3.0), (4, None))):
        budget = {"nodes": None, "episodes": None, "seconds": seconds}
        _job(tmp_path / str(number), {"iterations": iterations, "budget": budget}, 3, {"iteration": 3, "asked": asked})
    assert [row["status"] for row in dream.load_sweep(tmp_path)] == ["finished", "stopped", "stopped", "stopped"]


def test_a_folder_without_runs_is_refused(tmp_path: pathlib.Path) -> None:
    """A run's own folder and one that is not there are none."""
    _job(tmp_path / "run", {"seed": 1}, 2, None)
    for folder in (tmp_path, tmp_path / "run", tmp_path / "nowhere"):
        with pytest.raises(InputError, match="holds no run; it must be a sweep's folder"):
            dream.load_sweep(folder)


def test_a_configuration_of_something_else_is_refused(tmp_path: pathlib.Path) -> None:
    """One line that names the file."""
    _job(tmp_path / "0", {"seed": 1}, 2, None)
    (tmp_path / "0" / "config.yaml").write_text("[1, 2]")
    with pytest.raises(InputError, match=r"0/config\.yaml holds no run's configuration"):
        dream.load_sweep(tmp_path)


def test_hundreds_of_runs_are_read_in_seconds(tmp_path: pathlib.Path) -> None:
    """Two hundred, without a checkpoint opened."""
    for number in range(200):
        _job(
            tmp_path / str(number), {"seed": number}, 3, {"iteration": 3, "exact": {"average": {"exploitability": 1.0}}}
        )
    began = time.process_time()
    rows = dream.load_sweep(tmp_path)
    assert len({row["seed"] for row in rows}) == 200
    assert time.process_time() - began < 10
