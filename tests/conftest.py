"""What all tests share: the compilation cache, set before a backend starts, and the full game."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import jax
import pytest

import envs
from envs.game import Game

_REPO = pathlib.Path(__file__).resolve().parent.parent
jax.config.update("jax_compilation_cache_dir", str(_REPO / ".jax_cache"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)


_QUICK = (("e2e",), ("unit", "dream"))
"""Folders whose tests compile longer than they run: their programs are compiled with little optimisation."""


@pytest.fixture(scope="module", autouse=True)
def compile_quickly(request: pytest.FixtureRequest) -> None:
    """Spends less on compiling where a program runs only briefly: most of the suite's time went there."""
    parts = request.node.path.relative_to(_REPO / "tests").parts
    jax.config.update("jax_disable_most_optimizations", any(parts[: len(quick)] == quick for quick in _QUICK))


_MAPS, _MOST_MAPS = pathlib.Path("/proc/self/maps"), 12_000
"""Every compiled program holds memory maps; Linux ends a process that would have more than 65,530."""


@pytest.fixture(scope="module", autouse=True)
def release_compiled_programs() -> Iterator[None]:
    """Forgets compiled programs after a module once there are many; what is needed again is read from the cache."""
    yield
    if _MAPS.exists() and len(_MAPS.read_text().splitlines()) > _MOST_MAPS:
        jax.clear_caches()


@pytest.fixture(scope="session")
def repo() -> pathlib.Path:
    """The repository's root."""
    return _REPO


@pytest.fixture(scope="session")
def game() -> Game:
    """The full game."""
    return envs.make("gin_rummy")
