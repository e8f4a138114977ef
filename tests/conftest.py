"""What all tests share: how their programs are compiled, set before a backend starts, their order, the full game."""

from __future__ import annotations

import gc
import os
import pathlib
import sys
from collections.abc import Iterator

import hypothesis
import jax
import pytest

import envs
from dream import algorithms
from envs import players, registry
from envs.game import Game

_REPO = pathlib.Path(__file__).resolve().parent.parent
for _name, _value in (
    ("jax_compilation_cache_dir", str(_REPO / ".jax_cache")),
    ("jax_persistent_cache_min_compile_time_secs", 0.0),
):
    jax.config.update(_name, _value)
    os.environ[_name.upper()] = str(_value)  # for processes that tests start
os.environ.pop("WANDB_MODE", None)  # of the machine: runs of tests are tracked as their own settings say

_FLAGS = "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=1"
"""Half of XLA's time for a program, which then runs as fast; processes that tests start inherit it."""
if jax.__version_info__[:2] == (0, 10):  # XLA ends a process that has a flag it does not know
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_FLAGS}".strip()

hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.register_profile("random", deadline=None)
hypothesis.settings.load_profile("random" if os.environ.get("DREAM_RANDOM_EXAMPLES") == "1" else "repeatable")
"""The same examples in every run, so that none fails for a reason that the change under test has no part in."""

gc.set_threshold(50_000, 20, 50)
"""Tracing makes many objects that stay: by default a sixth of its time is the search for those that do not."""

_QUICK = (("e2e",), ("contract",), ("unit", "dream"), ("unit", "envs"))
"""Folders whose tests compile longer than they run: their programs are compiled with hardly any optimisation."""

_LONG_FIRST = (
    "unit/dream/compiled",
    "learning",
    "e2e",
    "property",
    "oracle",
    "exact",
    "contract",
    "unit/dream/algorithms",
    "unit/dream/search",
    "unit/envs/gin_rummy",
)
"""Folders whose files take longest, begun first, so that no worker is left alone with one at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sorts files by their folder; the order within a folder stays."""

    def rank(item: pytest.Item) -> int:
        path = item.path.relative_to(_REPO / "tests").as_posix()
        return next((n for n, folder in enumerate(_LONG_FIRST) if path.startswith(folder)), len(_LONG_FIRST))

    items.sort(key=rank)


@pytest.fixture(scope="module", autouse=True)
def compile_quickly(request: pytest.FixtureRequest) -> None:
    """Spends less on compiling where programs run only briefly; modules may say so of themselves by a marker."""
    parts = request.node.path.relative_to(_REPO / "tests").parts
    quick = any(parts[: len(folder)] == folder for folder in _QUICK)
    marked = {name: request.node.get_closest_marker(name) is not None for name in ("runs_long", "runs_briefly")}
    jax.config.update("jax_disable_most_optimizations", (quick or marked["runs_briefly"]) and not marked["runs_long"])


_MAPS, _MOST_MAPS = pathlib.Path("/proc/self/maps"), 12_000
"""Every compiled program holds memory maps; Linux ends a process that would have more than 65,530."""


@pytest.fixture(scope="module", autouse=True)
def release_compiled_programs() -> Iterator[None]:
    """Forgets compiled programs after a module once there are many; what is needed again is read from the cache."""
    yield
    if _MAPS.exists() and len(_MAPS.read_text().splitlines()) > _MOST_MAPS:
        jax.clear_caches()
        gc.collect()


@pytest.fixture(autouse=True)
def registries_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgets the games, players and algorithms that a test registers: no other test of its worker meets them."""
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    monkeypatch.setattr(players, "_added", {game: dict(bots) for game, bots in players._added.items()})
    monkeypatch.setattr(algorithms, "_registered", dict(algorithms._registered))


@pytest.fixture(autouse=True)
def no_figure_stays_open() -> Iterator[None]:
    """A figure that pyplot keeps stays in memory: whoever draws closes it, a test of its own as well."""
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None and (left := pyplot.get_fignums()):
        pyplot.close("all")
        pytest.fail(f"figures {left} are left open")


@pytest.fixture(scope="session")
def repo() -> pathlib.Path:
    """The repository's root."""
    return _REPO


@pytest.fixture(scope="session")
def game() -> Game:
    """The full game."""
    return envs.make("gin_rummy")
