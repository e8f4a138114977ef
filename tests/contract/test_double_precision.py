"""Games where JAX has double precision: states keep their types, as loops need, and networks read float32."""

from __future__ import annotations

import json
import pathlib

import command_support
import double_precision

import envs


def test_types_are_those_of_single_precision(tmp_path: pathlib.Path) -> None:
    """Of what is dealt, stepped, dealt anew, observed and paid."""
    path = pathlib.Path(double_precision.__file__)
    done = command_support.succeed(
        str(path), cwd=tmp_path, JAX_ENABLE_X64="1", PYTHONPATH=f"{command_support.REPO}:{path.parent}"
    )
    assert json.loads(done.stdout) == {name: [] for name in envs.names()}
