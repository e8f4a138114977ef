"""Do the benchmarks of random play split games over devices, and refuse numbers that do not go?"""

from __future__ import annotations

import json
import pathlib

import command_support
import pytest

FOLDER = command_support.REPO / "experiments" / "benchmarks"


def test_games_are_split_over_devices(tmp_path: pathlib.Path) -> None:
    """Two devices of the CPU play half of the games each: all are counted."""
    arguments = ("--env", "kuhn_poker", "--batches", "64", "--devices", "2", "--repeats", "1", "--json")
    done = command_support.succeed(
        str(FOLDER / "random_play.py"), *arguments, cwd=tmp_path, PYTHONPATH=str(command_support.REPO)
    )
    found = json.loads(done.stdout)
    assert found["machine"]["device"].startswith("2 x cpu")
    assert 2 <= found["decisions_per_s"] / found["games_per_s"] <= 3  # decisions of a game of Kuhn poker


def test_a_games_version_is_played(tmp_path: pathlib.Path) -> None:
    """An abrupt game takes another number of decisions than a classical one; other games have no version."""
    script, per_game = str(FOLDER / "random_play.py"), {}
    for version in ("classical", "abrupt"):
        arguments = ("--env", "dark_hex", "--version", version, "--batches", "4096", "--repeats", "1", "--json")
        done = command_support.succeed(script, *arguments, cwd=tmp_path, PYTHONPATH=str(command_support.REPO))
        found = json.loads(done.stdout)
        assert found["version"] == version
        per_game[version] = found["decisions_per_s"] / found["games_per_s"]
    assert abs(per_game["abrupt"] - per_game["classical"]) > 0.1
    wrong = ("--env", "kuhn_poker", "--version", "abrupt")
    done = command_support.command(script, *wrong, cwd=tmp_path, PYTHONPATH=str(command_support.REPO))
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["error: unknown rule 'version'; known: none"]


@pytest.mark.parametrize(
    ("script", "arguments"), [("random_play.py", ("--batches", "64", "7")), ("openspiel_gin.py", ("--batch", "7"))]
)
def test_uneven_shares_are_refused(tmp_path: pathlib.Path, script: str, arguments: tuple[str, ...]) -> None:
    """In one line, before anything is played."""
    done = command_support.command(
        str(FOLDER / script), *arguments, "--devices", "2", cwd=tmp_path, PYTHONPATH=str(command_support.REPO)
    )
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["error: 7 games cannot be split evenly over 2 devices"]
