"""Files of records: written one per line, read in every form there is, and refused in one line where they are wrong."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from envs.errors import InputError, shown
from envs.game import Game
from envs.records import openspiel
from envs.records.record import FORMAT, Record

MAX_BYTES, MAX_WHOLE, MAX_LINE = 2**28, 2**24, 2**20
"""Of a file, of one that is a single JSON value, and of a line."""
_MOST = {"deal": 2**16, "deck": 52, "actions": 10_000, "players": 16, "about": 64}
"""Entries, beyond any game's."""
_MOST_NAME = 1000
"""Characters in a player's name, or in a text of `about`."""
_FIRST = 1
"""The first format, which calls the deal `deck`."""
_NUMBERS = re.compile(r"[\d\s,]+")


def to_line(one: Record) -> str:
    """Returns a record as a line of JSON."""
    return json.dumps(one.as_json()) + "\n"


def write(path: str | Path, records: Sequence[Record]) -> None:
    """Writes a file of records, one per line, whole or not at all."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text("".join(map(to_line, records)))
    temporary.replace(path)


def append(path: str | Path, one: Record) -> None:
    """Adds a record to a file that holds one per line."""
    with Path(path).open("a") as file:
        file.write(to_line(one))


def read(path: str | Path, game: Game | str | None = None) -> list[Record]:
    """Reads a file of records, or of OpenSpiel's histories.

    Records are checked for form, `replay` checks what they say; histories are played.

    Args:
      path: of the file.
      game: of histories that do not name it: ours, or OpenSpiel's as it writes it.
    Raises:
      InputError: the file cannot be read, or a record is not as it must be; record and reason are named.
    """
    path = Path(path)
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise InputError(f"{path} is no regular file; it must be a file of records")
        size = about.st_size
        if size > MAX_BYTES:
            raise InputError(f"{path} has more than {MAX_BYTES} bytes; split it into several files")
        if size <= MAX_WHOLE:
            return parse(path.read_text(), game, str(path))
        with path.open() as file:
            return [_record(f"{path}, record {n}", value, game) for n, value in _lines(str(path), file)]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def parse(text: str, game: Game | str | None = None, place: str = "text") -> list[Record]:
    """Reads records from a text: as `read`.

    Args:
      text: what a file would hold.
      game: as of `read`.
      place: for messages.
    Raises:
      InputError: as `read`.
    """
    serialised = openspiel.of_text(place, text) if text.lstrip().startswith(("#", "[Meta]", "[Game]")) else None
    if serialised is not None:
        return [serialised]
    try:
        whole = json.loads(text)
    except json.JSONDecodeError:
        values = _lines(place, iter(text.splitlines(keepends=True)))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: {_wrong_json(error)}") from error
    else:
        values = enumerate(whole if isinstance(whole, list) and not _is_history(whole) else [whole], 1)
    return [_record(f"{place}, record {n}", value, game) for n, value in values]


def _lines(place: str, lines: Any) -> Iterator[tuple[int, Any]]:
    """Yields the values of lines with their numbers: JSON, or the numbers of a history."""
    read_line = (lambda: lines.readline(MAX_LINE + 1)) if hasattr(lines, "readline") else lambda: next(lines, "")
    n = 0
    while line := read_line():
        n += 1
        if len(line) > MAX_LINE:
            raise InputError(f"{place}, record {n}: more than {MAX_LINE} characters on a line")
        if line.strip():
            yield n, _value(f"{place}, record {n}", line)


def _value(place: str, line: str) -> Any:
    try:
        if _NUMBERS.fullmatch(line) and len(line.replace(",", " ").split()) > 1:
            return [int(number) for number in line.replace(",", " ").split()]
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: {_wrong_json(error)}") from error


def _wrong_json(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"no JSON ({error.msg} at character {error.pos + 1})"
    return (
        "JSON that nests too deep" if isinstance(error, RecursionError) else f"no readable JSON ({shown(str(error))})"
    )


def _is_history(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(x) is int for x in value)


def _record(place: str, value: Any, game: Game | str | None) -> Record:
    """Returns the record of a JSON value: a record of ours, or a history of OpenSpiel's."""
    history, named = value, game
    if isinstance(value, dict) and "history" in value and "format" not in value:
        history, named = value["history"], value.get("game", game)
    if not _is_history(history):
        return _from_json(place, value)
    if len(history) > _MOST["actions"]:
        raise InputError(f"{place}: a history of {len(history)} numbers; it must have {_MOST['actions']} at most")
    if not isinstance(named, str | Game):
        raise InputError(f"{place}: a history of OpenSpiel's does not name its game; give game=")
    return openspiel.of_history(named, history, place=place)


def _from_json(place: str, value: Any) -> Record:
    if not isinstance(value, dict):
        raise InputError(f"{place}: a {type(value).__name__}; it must be an object")
    number = value.get("format")
    if type(number) is not int or number not in (_FIRST, FORMAT):
        raise InputError(f"{place}: format {_short(number)}; it must be {FORMAT}")
    deal = "deck" if number == _FIRST else "deal"
    needed = {"game": str, "version": str, "rules": dict, deal: list, "actions": list, "result": dict}
    optional = {"players": list, "preset": (str, type(None)), "about": dict}
    for key, kind in needed.items():
        if not isinstance(value.get(key), kind):
            raise InputError(f"{place}: {key} is {_short(value.get(key))}; it must be a {kind.__name__}")
    for key in value:
        if key not in {"format", *needed, *optional}:
            known = ", ".join(["format", *needed, *optional])
            raise InputError(f"{place}: unknown key {_short(key)}; known: {known}")
        if key in optional and not isinstance(value[key], optional[key]):
            raise InputError(f"{place}: {key} is {_short(value[key])}")
        if key in _MOST and len(value[key]) > _MOST[key]:
            raise InputError(f"{place}: {key} holds {len(value[key])} entries; it must hold {_MOST[key]} at most")
    _check_entries(place, value, deal)
    rest = {key: value[key] for key in ("game", "version", "rules", "result")}
    lists = {key: tuple(value.get(key, ())) for key in ("actions", "players")}
    return Record(
        **rest,
        **lists,
        deal=tuple(value[deal]),
        preset=value.get("preset"),
        about=value.get("about", {}),
        place=place,
    )


def _check_entries(place: str, value: dict[str, Any], deal: str) -> None:
    """Checks what stands in the lists of a record, and in `about`."""
    kinds = {"actions": (int,), deal: (int,) if deal == "deck" else (int, float)}
    for key, kind in kinds.items():
        wrong = next((x for x in value[key] if type(x) not in kind), None)
        if wrong is not None:
            raise InputError(f"{place}: {key} holds {_short(wrong)}; it must hold numbers")
    wrong = next((x for x in value.get("players", ()) if not isinstance(x, str) or len(x) > _MOST_NAME), None)
    if wrong is not None:
        raise InputError(f"{place}: players holds {_short(wrong)}; it must hold names of {_MOST_NAME} characters")
    for key, text in value.get("about", {}).items():
        values = text if isinstance(text, list) and len(text) <= _MOST["players"] else [text]
        if len(key) > _MOST_NAME or not all(map(_is_plain, values)):
            raise InputError(f"{place}: about {shown(key)} is {_short(text)}; it must be a text, a number or a few")


def _is_plain(value: Any) -> bool:
    short = isinstance(value, str) and len(value) <= _MOST_NAME
    return short or value is None or type(value) in (int, float, bool)


def _short(value: Any) -> str:
    """Returns a JSON value for a message; of a list or an object the kind alone."""
    return f"a {type(value).__name__}" if isinstance(value, list | dict) else shown(repr(value))
