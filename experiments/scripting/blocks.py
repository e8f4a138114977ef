"""Blocks of played rounds in a working folder: written whole, and read by the players, rules and code they are of."""

from __future__ import annotations

import io
import json
import subprocess
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import envs
from dream.search import names as search_names
from dream.storage import levels
from dream.storage.files import write_bytes
from dream.storage.policies import find
from envs import Game, InputError
from scripting.run_records import check_as_many, difference, flat

_ROOT = Path(__file__).resolve().parents[2]
_CODE = ("envs", "dream")
"""Where the players and the rules are."""
_MADE = "made"


def checksum(name: str, game: Game) -> int | None:
    """Returns the checksum of a player's weights, or a level's player's; None for a rule-based one, or its search.

    Raises:
      InputError: no such player.
    """
    policy = search_names.policy_in(name)
    policy = levels.level(policy, game).player if levels.is_level(policy) else policy
    return None if policy in envs.bot_names(game) else find(policy).meta["checksum"]


def commit() -> str | None:
    """Returns the commit that last changed players or rules, and a sum of changes since; None without git."""
    try:
        found = _git("log", "-1", "--format=%H", "--", *_CODE).strip()
        changes = _git("diff", "HEAD", "--", *_CODE).encode()
        new = _git("ls-files", "--others", "--exclude-standard", "-z", "--", *_CODE).split("\0")[:-1]
        changes += b"".join(name.encode() + (_ROOT / name).read_bytes() for name in new)
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{found}+{zlib.crc32(changes):08x}" if changes else found or None


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(_ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def made_by(game: Game, players: Iterable[str]) -> dict[str, Any]:
    """Returns by what rounds are played: the game's identity, each player's checksum, the code's commit."""
    checksums = {f"checksum of {name}": checksum(name, game) for name in players}
    return json.loads(json.dumps({**flat({"game": game.identity}), **checksums, "commit": commit()}))


def write(path: Path, arrays: dict[str, np.ndarray], made: dict[str, Any] | None = None) -> None:
    """Writes a block whole or not at all, with what it was made by where that is given."""
    content = io.BytesIO()
    source = {} if made is None else {_MADE: np.array(json.dumps(made))}
    np.savez_compressed(content, **arrays, **source)
    write_bytes(path, content.getvalue())


def read(path: Path) -> dict[str, np.ndarray]:
    """Returns a block's arrays.

    Raises:
      InputError: the file is damaged.
    """
    return {name: array for name, array in _loaded(path).items() if name != _MADE}


def kept(path: Path, made: dict[str, Any], play: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Returns a block's arrays; one that is not there yet is played and written.

    Raises:
      InputError: the file is damaged.
    """
    if not path.exists():
        write(path, play(), made)
    return read(path)


def check_not_fewer(path: Path, stored: Iterable[Mapping[str, Any]], deals: Mapping[tuple[str, str], int]) -> None:
    """Raises InputError where a result file has a pairing of more deals than what would replace it.

    Args:
      path: the file.
      stored: its records, each with `player`, `opponent` and `deals`.
      deals: of the new records, by player and opponent.
    """
    before = {f"{one['player']} against {one['opponent']}": one["deals"] for one in stored}
    here = {f"{player} against {opponent}": number for (player, opponent), number in deals.items()}
    check_as_many(path, "deals of", before, here)


def _loaded(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(io.BytesIO(path.read_bytes())) as stored:
            return dict(stored)
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{path} is damaged; delete it, and its rounds are played again") from error


def check(path: Path, made: dict[str, Any]) -> None:
    """Raises InputError unless a block was made by these players, rules and code."""
    stored = _loaded(path).get(_MADE)
    if stored is None:
        raise InputError(
            f"{path} does not name its players, rules and code; delete it, and its rounds are played again"
        )
    if differing := difference(json.loads(str(stored)), made):
        raise InputError(
            f"{path} was played by other players, rules or code: {differing}; delete it, and its rounds are played "
            "again"
        )
