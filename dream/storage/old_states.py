"""Training states stored by version 0.1.0, whose parts had other names, put together under the present ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import jax

Path = tuple[str, ...]
"""Names and numbers from the root of a state to an array."""

_PREFIXES: dict[Path, Path] = {
    ("networks", "params"): ("networks",),
    ("networks", "fitted"): ("fitted",),
    ("networks", "scales"): ("scales",),
    ("buffers",): ("memories",),
    ("values", "params"): ("values", "0"),
    ("values", "optimizer_state"): ("values", "1"),
    ("values", "buffer"): ("values", "2"),
    ("average", "params"): ("average", "0"),
    ("average", "fitted"): ("average", "1"),
    ("average", "buffers"): ("average", "2"),
    ("pool", "params"): ("ring", "params"),
    ("pool", "added"): ("ring", "pushed"),
    ("lanes", "seating", "opponent_id"): ("lanes", "table", "named"),
    ("lanes", "seating"): ("lanes", "table"),
    ("lanes", "awaiting_learner"): ("lanes", "ready"),
    ("lanes", "credited"): ("lanes", "owed"),
}
"""Beginning of a present path -> of the path in 0.1.0; the first that fits counts."""
_FIELDS = {"discarded": "shed"}
"""Name of a game's field -> its name in 0.1.0."""
_STEP = re.compile(r"\.(\w+)|\['([^']*)'\]|\[(\d+)\]")


def path_of(name: str) -> Path:
    """Returns the path that an array's name stands for, as jax.tree_util.keystr writes it."""
    return tuple(next(part for part in match.groups() if part is not None) for match in _STEP.finditer(name))


def old_names(wanted: Iterable[str], stored: Iterable[str]) -> dict[str, str] | None:
    """Returns what the arrays of a present state are called in a stored one of 0.1.0.

    Args:
      wanted: names of the present state's arrays.
      stored: names of the stored arrays.
    Returns:
      Present name -> stored name, a pairing of all of them; None where the stored state is not one of 0.1.0's.
    """
    there, names = {path_of(name): name for name in stored}, list(wanted)
    paths = [_old(path_of(name)) for name in names]
    if len(set(paths)) < len(paths) or set(paths) != there.keys():
        return None
    return {name: there[path] for name, path in zip(names, paths, strict=True)}


def by_path(tree: Any) -> dict[Path, Any]:
    """Returns the leaves of a pytree by their paths."""
    return {path_of(jax.tree_util.keystr(path)): leaf for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]}


def reassembled(like: Any, stored: Mapping[Path, Any], renamed: Mapping[str, str]) -> Any:
    """Returns a tree like another, with stored arrays as its leaves.

    Args:
      like: of the present structure.
      stored: arrays by stored path.
      renamed: as `old_names` gives it.
    """
    paths, structure = jax.tree_util.tree_flatten_with_path(like)
    return jax.tree.unflatten(structure, [stored[path_of(renamed[jax.tree_util.keystr(path)])] for path, _ in paths])


def _old(path: Path) -> Path:
    for new, old in _PREFIXES.items():
        if path[: len(new)] == new:
            path = old + path[len(new) :]
            break
    inside_network = "params" in path or path[:1] == ("networks",)
    return path if inside_network else tuple(_FIELDS.get(part, part) for part in path)
