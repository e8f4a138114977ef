"""A folder put in the place of another: one of the two is there, whole, whenever the process ends.

The one that leaves is moved aside first, to <name>.replaced, and deleted last. Between the two renames it is the only
one; readers then take it (`aside_of`), and the next writer moves it back (`mend`).
"""

from __future__ import annotations

import shutil
from pathlib import Path

_ASIDE = ".replaced"


def put_in_place(new: Path, place: Path) -> None:
    """Puts a folder in the place of another, on the same disk.

    Raises:
      OSError: the disk refused; the other one is where it was.
    """
    aside = place.with_name(place.name + _ASIDE)
    shutil.rmtree(aside, ignore_errors=True)
    place.rename(aside)
    try:
        new.rename(place)
    except OSError:
        aside.rename(place)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def aside_of(path: Path) -> str | None:
    """Returns the name that a folder had before it was moved aside; None where it was not."""
    return path.name.removesuffix(_ASIDE) if path.name.endswith(_ASIDE) else None


def mend(folder: Path) -> None:
    """Ends what a process left half done: what was moved aside goes back, or away where its place is taken."""
    for aside in sorted(folder.glob(f"*{_ASIDE}")):
        place = aside.with_name(aside.name.removesuffix(_ASIDE))
        if place.exists():
            shutil.rmtree(aside, ignore_errors=True)
        else:
            aside.rename(place)
