"""Games and runs where JAX has double precision: states keep their types, as loops need, networks stay in float32."""

from __future__ import annotations

import json
import pathlib

import command_support
import double_precision
import pytest

import envs


def test_types_are_those_of_single_precision(tmp_path: pathlib.Path) -> None:
    """Of what is dealt, stepped, dealt anew, observed and paid."""
    path = pathlib.Path(double_precision.__file__)
    done = command_support.succeed(
        str(path), cwd=tmp_path, JAX_ENABLE_X64="1", PYTHONPATH=f"{command_support.REPO}:{path.parent}"
    )
    assert json.loads(done.stdout) == {name: [] for name in envs.names()}


@pytest.mark.parametrize("algo", [["algo=rnad"], ["algo=mmd", "experiment=mmd_critic"]], ids=["rnad", "mmd_critic"])
def test_runs_are_those_of_single_precision(algo: list[str], tmp_path: pathlib.Path) -> None:
    """Of learners that mix integers and floats of default types: the same exploitability to the last digit."""
    found = []
    for switched in ("0", "1"):
        folder = tmp_path / switched
        command_support.succeed(
            "dream.run", "env=kuhn_poker", *algo, *command_support.TINY, f"run_dir={folder}",
            cwd=tmp_path, JAX_ENABLE_X64=switched,
        )  # fmt: skip
        found.append(json.loads((folder / "evaluation.json").read_text())["exact"])
    assert found[0] == found[1]
