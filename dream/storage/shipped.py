"""Trained players that come with the package: `<game>/<name>`, an export and its card in dream/weights/<game>/."""

from __future__ import annotations

import os
from pathlib import Path

from dream.storage.policy_file import SUFFIX

_FOLDER = Path(__file__).resolve().parents[1] / "weights"


def names(game: str | None = None) -> list[str]:
    """Returns the players that come with the package, such as "gin_rummy/strong"; with a game, that game's."""
    found = sorted(path.relative_to(_FOLDER).with_suffix("").as_posix() for path in _FOLDER.glob(f"*/*{SUFFIX}"))
    return [name for name in found if game is None or name.startswith(f"{game}/")]


def path_of(reference: str | os.PathLike[str]) -> Path | None:
    """Returns the file of a player that comes with the package; else None, also for an existing path."""
    if not isinstance(reference, str) or reference not in names() or Path(reference).exists():
        return None
    return _FOLDER / f"{reference}{SUFFIX}"
