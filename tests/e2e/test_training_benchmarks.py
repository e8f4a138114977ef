"""Does the benchmark of a run's start measure at toy size, and refuse what is wrong in one line?"""

from __future__ import annotations

import json
import pathlib
from typing import Any

import command_support

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


def test_a_wrong_override_gets_one_line(tmp_path: pathlib.Path) -> None:
    """What the run says of it is passed on."""
    script = str(FOLDER / "first_record.py")
    done = command_support.command(script, "preset=nope", cwd=tmp_path, PYTHONPATH=str(command_support.REPO))
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "unknown preset 'nope'" in done.stderr
