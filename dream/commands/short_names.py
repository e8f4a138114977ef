"""What players are called where there is little room: as short as tells them apart."""

from __future__ import annotations

from collections.abc import Iterable

from dream.search import names as search_names
from dream.storage.checkpoint import FOLDER


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Returns the shortest distinct name of each player: the end of its path, the whole of it where needed.

    A search keeps saying that it is one, and a checkpoint which run it is of.
    """
    parts = {name: _parts(name) for name in dict.fromkeys(names)}
    return {name: _short(name, parts) for name in parts}


def _parts(name: str) -> tuple[str, list[str]]:
    """Returns what a name keeps in any case, and the parts of its path."""
    kept = search_names.PREFIX if search_names.is_search(name) else ""
    return kept, name.removeprefix(kept).rstrip("/").split("/")


def _short(name: str, parts: dict[str, tuple[str, list[str]]]) -> str:
    kept, path = parts[name]
    others = [one for other, one in parts.items() if other != name]
    least = 3 if path[-1].isdecimal() and path[-2:-1] == [FOLDER] else 1
    for size in range(least, len(path)):
        if all((kept, path[-size:]) != (theirs, other[-size:]) for theirs, other in others):
            return kept + "/".join(path[-size:])
    return name
