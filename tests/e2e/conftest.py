"""One finished run that the end-to-end tests share."""

from __future__ import annotations

import pathlib

import pytest
from command_support import succeed


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The run directory of `preset=tiny`, W&B offline as by default; not to be changed."""
    folder = tmp_path_factory.mktemp("whole")
    done = succeed("dream.run", "preset=tiny", "run_dir=whole", cwd=folder)
    (folder / "stdout").write_text(done.stdout)
    return folder / "whole"
