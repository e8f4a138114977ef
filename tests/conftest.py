"""What all tests share: the compilation cache, set before a backend starts, and the full game."""

from __future__ import annotations

import pathlib

import jax
import pytest

import envs
from envs.game import Game

_REPO = pathlib.Path(__file__).resolve().parent.parent
jax.config.update("jax_compilation_cache_dir", str(_REPO / ".jax_cache"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)


@pytest.fixture(scope="session")
def repo() -> pathlib.Path:
    """The repository's root."""
    return _REPO


@pytest.fixture(scope="session")
def game() -> Game:
    """The full game."""
    return envs.make("gin_rummy")
