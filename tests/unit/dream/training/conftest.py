"""What tests of how runs begin and go on share."""

from __future__ import annotations

from pathlib import Path

import pytest
from stored_run import write_meta

from dream.config.compose import compose_config
from dream.training.start import prepare_run


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A run of PPO on Leduc that belonged to a sweep; its checkpoint holds the meta alone."""
    composed = compose_config("config", ["algo=ppo", "env=leduc_poker", "iterations=4"])
    write_meta(tmp_path / "run", prepare_run(composed), group="some_sweep")
    return tmp_path / "run"
