"""Whether what a command writes has a place, looked at before it plays."""

from __future__ import annotations

import os
from pathlib import Path

from envs import InputError


def check_can_be_folder(folder: Path, setting: str) -> None:
    """Raises InputError unless a folder exists or can be made, and written to: nothing on the way to it is a file.

    Args:
      folder: absolute.
      setting: that names it, in words.
    """
    blocked = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    if blocked.exists() and not blocked.is_dir():
        raise InputError(f"{setting} cannot be made: {blocked} is a file; choose another folder")
    if not os.access(blocked, os.W_OK | os.X_OK):
        raise InputError(f"{setting} cannot be written: {blocked} may only be read; choose another folder")
