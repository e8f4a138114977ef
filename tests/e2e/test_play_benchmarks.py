"""Do the benchmarks of play measure at toy size, split games over devices, and refuse numbers that do not go?"""

from __future__ import annotations

import json
import pathlib
from typing import Any

import command_support
import pytest

FOLDER = command_support.REPO / "experiments" / "benchmarks"


def _measured(script: str, *arguments: str, cwd: pathlib.Path) -> dict[str, Any]:
    command = (str(FOLDER / script), *arguments, "--repeats", "1", "--json")
    done = command_support.succeed(*command, cwd=cwd, PYTHONPATH=str(command_support.REPO))
    return json.loads(done.stdout)


def test_games_are_split_over_devices(tmp_path: pathlib.Path) -> None:
    """Two devices of the CPU play half of the games each: all are counted."""
    found = _measured("random_play.py", "--env", "kuhn_poker", "--batches", "64", "--devices", "2", cwd=tmp_path)
    assert found["machine"]["device"].startswith("2 x cpu")
    assert 2 <= found["decisions_per_s"] / found["games_per_s"] <= 3  # decisions of a game of Kuhn poker


def test_a_games_version_is_played(tmp_path: pathlib.Path) -> None:
    """An abrupt game takes another number of decisions than a classical one; other games have no version."""
    per_game = {}
    for version in ("classical", "abrupt"):
        arguments = ("--env", "dark_hex", "--version", version, "--batches", "4096")
        found = _measured("random_play.py", *arguments, cwd=tmp_path)
        assert found["version"] == version
        per_game[version] = found["decisions_per_s"] / found["games_per_s"]
    assert abs(per_game["abrupt"] - per_game["classical"]) > 0.1
    wrong = ("--env", "kuhn_poker", "--version", "abrupt")
    script = str(FOLDER / "random_play.py")
    done = command_support.command(script, *wrong, cwd=tmp_path, PYTHONPATH=str(command_support.REPO))
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["error: unknown rule 'version'; there are none here"]


def test_environments_are_timed_beside_random_play(tmp_path: pathlib.Path) -> None:
    """Of one game and of many over two devices, with the seconds of the first calls."""
    arguments = ("--env", "kuhn_poker", "--copies", "8", "--observations", "view", "--devices", "2")
    found = _measured("gymnasium_envs.py", *arguments, cwd=tmp_path)
    assert found["machine"]["device"].startswith("2 x cpu")
    rates = (found["single"]["steps_per_s"], found["view"]["steps_per_s"], found["random_play"]["decisions_per_s"])
    assert min(*rates, found["single"]["reset_seconds"], found["single"]["step_seconds"]) > 0


def test_self_play_is_timed_with_both_readers(tmp_path: pathlib.Path) -> None:
    """Carried along the log and dense: the same games, so that decisions per game are equal."""
    found = _measured("self_play.py", "network.hidden=[8]", "--games", "4", "--lanes", "4", cwd=tmp_path)
    carried, dense = (found[f"{name}decisions_per_s"] / found[f"{name}games_per_s"] for name in ("", "dense_"))
    assert carried == pytest.approx(dense)
    assert found["ratio"] > 0


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ("random_play.py", ("--batches", "64", "7")),
        ("openspiel_gin.py", ("--batch", "7")),
        ("gymnasium_envs.py", ("--copies", "7")),
    ],
)
def test_uneven_shares_are_refused(tmp_path: pathlib.Path, script: str, arguments: tuple[str, ...]) -> None:
    """In one line, before anything is played."""
    done = command_support.command(
        str(FOLDER / script), *arguments, "--devices", "2", cwd=tmp_path, PYTHONPATH=str(command_support.REPO)
    )
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["error: 7 games cannot be split evenly over 2 devices"]
