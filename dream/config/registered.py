"""Games and algorithms from outside the package as options of the configuration, without a YAML file.

`env=<name>` takes every game that `envs.make` knows. `algo=<name>` takes every algorithm that a source names, as the
configuration stands below the algorithms and does not import them. Hydra reads the options from its ConfigStore.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Mapping
from typing import Any

from hydra.core.config_store import ConfigStore

import envs
from envs.errors import InputError

ENTRY_POINTS = {"env": "dream_rummy.games", "algo": "dream_rummy.algorithms"}
"""Group of the configuration -> group of the entry points by which packages offer its options."""

Source = Callable[[], Mapping[str, Callable[[], dict[str, Any]]]]
"""Returns, by name, functions that build an option's node."""


def _games() -> Mapping[str, Callable[[], dict[str, Any]]]:
    return {name: lambda name=name: {"name": name, "rules": {}} for name in envs.names()}


_sources: dict[str, Source] = {"env": _games}

Sizes = Callable[[Any, str, str], Mapping[str, Mapping[str, Any]]]
"""(game, algorithm's name, network's name) -> settings from the root of the configuration."""
_sizes: list[Sizes] = []


def add_sizes(sizes: Sizes) -> None:
    """Names a function that knows sizes of learner and network for a game that nobody has tuned."""
    _sizes[:] = [sizes]


def suggested(env: str, algo: str, network: str) -> Mapping[str, Mapping[str, Any]]:
    """Returns settings that fit a game from outside; its rules are the default ones.

    Args:
      env, algo, network: options of the groups.
    Returns:
      Settings from the root; {} where no function knows any, or where the game cannot be made without rules.
    """
    try:
        return _sizes[0](envs.make(env), algo, network) if _sizes else {}
    except InputError:
        return {}


def add_source(group: str, source: Source) -> None:
    """Names where the options of a group come from that have no YAML file."""
    _sources[group] = source


def names(group: str) -> list[str]:
    """Returns the options of a group that its source knows."""
    return sorted(_sources[group]()) if group in _sources else []


def installed(group: str) -> dict[str, str]:
    """Returns the options of a group that installed packages offer, each with its distribution; it loads none."""
    points = importlib.metadata.entry_points(group=ENTRY_POINTS[group]) if group in ENTRY_POINTS else ()
    return {point.name: point.dist.name if point.dist else "unknown" for point in points}


def offer(group: str, option: str) -> bool:
    """Makes an option known to Hydra; returns False where the group's source does not know it."""
    known = _sources[group]() if group in _sources else {}
    if option not in known:
        return False
    ConfigStore.instance().store(group=group, name=option, node=known[option](), provider="registered")
    return True
