"""Games and algorithms from outside the package as options of the configuration, without a YAML file.

`env=<name>` takes every game that `envs.make` knows. `algo=<name>` takes every algorithm that a source names, as the
configuration stands below the algorithms and does not import them. Hydra reads the options from its ConfigStore.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hydra.core.config_store import ConfigStore

import envs

Source = Callable[[], Mapping[str, Callable[[], dict[str, Any]]]]
"""Returns, by name, functions that build an option's node."""


def _games() -> Mapping[str, Callable[[], dict[str, Any]]]:
    return {name: lambda name=name: {"name": name, "rules": {}} for name in envs.names()}


_sources: dict[str, Source] = {"env": _games}


def add_source(group: str, source: Source) -> None:
    """Names where the options of a group come from that have no YAML file."""
    _sources[group] = source


def names(group: str) -> list[str]:
    """Returns the options of a group that its source knows."""
    return sorted(_sources[group]()) if group in _sources else []


def offer(group: str, option: str) -> bool:
    """Makes an option known to Hydra; returns False where the group's source does not know it."""
    known = _sources[group]() if group in _sources else {}
    if option not in known:
        return False
    ConfigStore.instance().store(group=group, name=option, node=known[option](), provider="registered")
    return True
