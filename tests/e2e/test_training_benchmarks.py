"""Do the benchmarks of a run's start, memory and loop measure at toy size, and refuse what is wrong in one line?"""

from __future__ import annotations

import importlib.util
import json
import pathlib
import sys
from typing import Any

import command_support
import pytest

FOLDER = command_support.REPO / "experiments" / "benchmarks"
TOY = ("preset=tiny", "algo=cfr", "env=kuhn_poker")


def _measured(script: str, *arguments: str, cwd: pathlib.Path) -> dict[str, Any]:
    command = (str(FOLDER / script), *arguments, "--repeats", "1", "--json")
    done = command_support.succeed(*command, cwd=cwd, PYTHONPATH=str(command_support.REPO))
    return json.loads(done.stdout)


def test_the_first_record_is_timed(tmp_path: pathlib.Path) -> None:
    """With an empty cache and with a full one; nothing of the runs is left."""
    found = _measured("first_record.py", *TOY, cwd=tmp_path)
    assert found["first_record_cold_s"] > found["import_s"] > 0
    assert found["first_record_warm_s"] > found["import_s"]
    assert not list(tmp_path.iterdir())


def test_whole_runs_of_learners_are_timed(tmp_path: pathlib.Path) -> None:
    """Until their nodes are reached; nothing of the runs is left."""
    found = _measured("learners.py", "--learners", "ppo", "--nodes", "5000", cwd=tmp_path)["ppo"]
    assert found["run_s"] > found["compile_s"] > 0
    assert found["nodes"] * (found["iteration"] - 1) / found["iteration"] < 5000 <= found["nodes"]
    assert not list(tmp_path.iterdir())


def test_the_memory_of_presets_is_told_by_preset(tmp_path: pathlib.Path) -> None:
    """With the figures of a single recipe in each."""
    found = _measured("memory.py", *TOY[1:], "--presets", "tiny", cwd=tmp_path)["tiny"]
    assert found["peak_gib"] > found["before_gib"] > 0
    assert sys.platform != "linux" or found["steady_gib"] > found["before_gib"]


def test_the_run_loop_is_timed_beside_the_loop_it_runs(tmp_path: pathlib.Path) -> None:
    """By their ratio, and for a learner that does nothing; nothing of the runs is left."""
    found = _measured("run_loop.py", "--games", "kuhn_poker", cwd=tmp_path)
    kuhn = found["kuhn_poker"]
    assert min(kuhn["iterations_per_s"], kuhn["alone_iterations_per_s"]) > 0
    assert kuhn["ratio"] == pytest.approx(kuhn["iterations_per_s"] / kuhn["alone_iterations_per_s"])
    assert found["empty"]["us_per_iteration"] > 0
    assert not list(tmp_path.iterdir())


def test_a_donated_buffer_is_timed_beside_one_that_is_kept(tmp_path: pathlib.Path) -> None:
    """In the same rounds, with the bytes of both."""
    found = _measured("buffers.py", "--env", "kuhn_poker", "--capacity", "1000", "--rows", "10", cwd=tmp_path)
    assert min(found["kept_ms"], found["donated_ms"], found["buffer_mib"]) > 0
    assert found["kept_over_donated"]["ratio"] == pytest.approx(found["kept_ms"] / found["donated_ms"])


@pytest.mark.skipif(importlib.util.find_spec("eas") is not None, reason="the peer is installed")
def test_a_peer_that_is_not_installed_is_named(tmp_path: pathlib.Path) -> None:
    """In one line, with how to install it."""
    done = command_support.command(
        str(FOLDER / "exact.py"), "--peer", cwd=tmp_path, PYTHONPATH=str(command_support.REPO)
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "--peer needs exp-a-spiel" in done.stderr


def test_a_run_that_fails_says_why(tmp_path: pathlib.Path) -> None:
    """In the run's own words."""
    done = command_support.command(
        str(FOLDER / "learners.py"), "--nodes", "-1", cwd=tmp_path, PYTHONPATH=str(command_support.REPO)
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "budget.nodes=-1.0" in done.stderr


@pytest.mark.parametrize("arguments", [("first_record.py", "preset=nope"), ("memory.py", "--presets", "tiny", "nope")])
def test_a_wrong_preset_gets_one_line(tmp_path: pathlib.Path, arguments: tuple[str, ...]) -> None:
    """Of which the benchmark's own process, or the one it starts, has the words."""
    script, *others = arguments
    done = command_support.command(str(FOLDER / script), *others, cwd=tmp_path, PYTHONPATH=str(command_support.REPO))
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "unknown preset 'nope'" in done.stderr
