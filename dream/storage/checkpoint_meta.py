"""What a checkpoint says of itself: read as something that may be damaged or edited, and checked whole."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dream.storage.files import decoded
from envs.errors import InputError

FORMAT = 2
"""Version of the layout; format 1, which is still read, has no checksum of the meta."""
FOLDER = "checkpoints"
"""In a run directory, of checkpoints called by their iterations."""
META_FILE = "meta/metadata"
"""In a checkpoint's folder."""
_LATER, _LATER_SETTINGS = {"name"}, {"devices", "hosts"}
"""What no meta of format 1 has: a part of it, and of its configuration."""
_SUM = "meta_checksum"
"""In the meta: SHA-256 of everything else in it, the configuration included."""


class DamagedMetaError(InputError):
    """A meta that is not as it was written."""


def signed(meta: dict[str, Any]) -> dict[str, Any]:
    """Returns a meta as it is written: with the format, and the checksum of all of it."""
    plain = json.loads(json.dumps({"format": FORMAT, **meta}))
    return {**plain, _SUM: _meta_sum(plain)}


def read_meta(path: Path) -> dict[str, Any]:
    """Reads the meta of a checkpoint.

    Args:
      path: the checkpoint's folder.
    Raises:
      DamagedMetaError: no complete one, edited, or a part of another type or out of range.
      InputError: of another project, or of a format this version does not read.
    """
    try:
        meta = decoded((path / META_FILE).read_bytes())
    except (OSError, ValueError) as error:
        raise DamagedMetaError(
            f"{path} is not a complete checkpoint ({first_line(error)}); it must be a folder this project wrote"
        ) from error
    meta = meta if isinstance(meta, dict) else {}
    needed = {"format", "iteration", "checksum", "config", "game"}
    if not needed <= meta.keys():
        raise InputError(f"{path} is a foreign checkpoint: its meta lacks {', '.join(sorted(needed - set(meta)))}")
    if not _is_count(meta["format"]) or meta["format"] not in (1, FORMAT):
        raise InputError(f"{path} has format {meta['format']!r:.40}; this version reads format {FORMAT}, and format 1")
    if (meta["format"] != 1 or _SUM in meta) and meta.get(_SUM) != _meta_sum(meta):
        raise DamagedMetaError(f"{path} is damaged or was edited: its meta does not match its checksum")
    for name, (fits, words) in _FIELDS.items():
        if name in meta and not fits(meta[name]):
            raise DamagedMetaError(f"{path} is damaged: {name}={meta[name]!r:.80} in its meta must be {words}")
    later = (_LATER & meta.keys()) | (_LATER_SETTINGS & meta["config"].keys())
    if meta["format"] == 1 and later:
        raise DamagedMetaError(f"{path} was edited: its meta says format 1, which has no {min(later)}")
    if path.parent.name == FOLDER and _iteration_named(path) not in (None, meta["iteration"]):
        name = meta["iteration"]
        raise DamagedMetaError(f"{path} was renamed: it is of iteration {name}; the folder must be called {name}")
    return meta


def _iteration_named(path: Path) -> int | None:
    return int(path.name) if path.name.isdigit() and path.name.isascii() else None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def _is_table(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(map(fits, value.values()))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_config(value: Any) -> bool:
    parts = value if isinstance(value, dict) else {}
    named = all(isinstance(parts.get(part, {"name": ""}), dict) for part in ("algo", "env", "network"))
    env = parts.get("env", {"name": ""})
    return isinstance(value, dict) and named and isinstance(env.get("name"), str)


def _is_game(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("name"), str) and isinstance(value.get("rules", {}), dict)


_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "iteration": (_is_count, "a whole number, at least 0"),
    "checksum": (_is_count, "a whole number, at least 0"),
    "arrays": (_is_table(_is_text), "shapes by name"),
    "config": (_is_config, "a resolved configuration"),
    "choices": (_is_table(lambda value: value is None or isinstance(value, str)), "an option by group"),
    "game": (_is_game, "a game's name, version and rules"),
    "counters": (_is_table(_is_count), "whole numbers, at least 0, by name"),
    "seconds": (_is_time, "a number of seconds, at least 0"),
    "compile_seconds": (_is_time, "a number of seconds, at least 0"),
    "wandb_id": (_is_text, "text"),
    "group": (_is_text, "text"),
    "name": (_is_text, "text"),
    "fixed": (lambda value: isinstance(value, dict), "settings by name"),
}
"""What a part of the meta must be, as a test and in words; of a checkpoint without a checksum of the meta too."""


def _meta_sum(meta: dict[str, Any]) -> str:
    """Returns the checksum of a meta, that entry left out."""
    rest = {name: value for name, value in meta.items() if name != _SUM}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def first_line(error: BaseException) -> str:
    """Returns an error in a few words."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:120]}" if lines else type(error).__name__
