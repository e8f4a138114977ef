"""Files of records: written one per line, read in every form there is, and refused in one line where they are wrong."""

from __future__ import annotations

import itertools
import json
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from envs.errors import InputError, a_kind, shown
from envs.game import Game
from envs.records import openspiel
from envs.records.record import FORMAT, Record, a_record, listed

MAX_BYTES, MAX_WHOLE, MAX_LINE = 2**28, 2**24, 2**20
"""Of a file, of one that is a single JSON value, and of a line."""
MOST_ACTIONS = 100_000
"""Of a game, beyond any: a match of rummy 500 has up to 90,400."""
_MOST = {"deal": 2**16, "deck": 52, "actions": MOST_ACTIONS, "players": 16, "about": 64}
"""Entries, beyond any game's."""
_RECORDS = "a list of records"
_MOST_NAME = 1000
"""Characters in a player's name, or in a text of `about`."""
_FIRST = 1
"""The first format, which calls the deal `deck`."""
_NUMBERS = re.compile(r"[\d\s,]+")
_HISTORY = re.compile(r"\[[\s,-]*\d[\d\s,-]*\]")
_BLANK = re.compile(r"[ \t\n\r]*")
_SERIALISED = ("#", "[Meta]", "[Game]")
"""How OpenSpiel's serialised games may begin."""
_DECODER = json.JSONDecoder()


def to_line(one: Record) -> str:
    """Returns a record as a line of JSON; raises InputError for what could not be read again."""
    value = a_record(one).as_json()
    _check_entries("the record", value, "deal")
    line = json.dumps(value)
    if len(line) > MAX_LINE:
        raise InputError(f"the record has {len(line)} characters; it must have {MAX_LINE} at most")
    return line + "\n"


def write(path: str | Path, records: Sequence[Record]) -> None:
    """Writes a file of records, one per line, whole or not at all.

    Raises:
      InputError: a single record instead of several, or no such folder.
      OSError: the disk refused.
    """
    if isinstance(records, Record):
        raise InputError("a single record was given; give a list of them, [record]")
    path = _file(path)
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written; it must be a file in an existing folder")
    text = "".join(map(to_line, records if isinstance(records, Sequence) else listed("records", records, _RECORDS)))
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(path)


def append(path: str | Path, one: Record) -> None:
    """Adds a record, whole or not at all, to a file of one per line; its line is its own even after one without an end.

    Raises:
      InputError: no record, or a file that does not hold one per line, as `check_lines` says.
      OSError: there is no such folder, or the disk refused.
    """
    line, path = to_line(one).encode(), _file(path)
    if path.is_file():
        check_lines(path)
    with path.open("a+b", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(end - 1)
        begins = b"" if not end or file.read(1) == b"\n" else b"\n"
        rest = memoryview(begins + line)
        try:
            while rest:  # a disk that fills up takes a part, and refuses the next
                rest = rest[file.write(rest) :]
        except OSError:
            file.truncate(end)
            raise


def _file(path: Any) -> Path:
    """Returns the path of a file; raises InputError for what is none, as a number or bytes."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise InputError(f"path={shown(repr(path))} is not valid; it must be the path of a file of records")
    return Path(path)


def check_lines(path: str | Path) -> None:
    """Raises InputError where a file is there that does not hold one record per line, judged by its first line."""
    path = _file(path)
    if not path.exists():
        return
    wrong = InputError(f"{path} is there already and does not hold one record per line; choose another file")
    if not path.is_file():
        raise wrong
    try:
        with path.open("rb") as file:
            first = file.readline(MAX_LINE + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    try:
        one = json.loads(first) if first else {"format": FORMAT}
    except (ValueError, RecursionError):
        raise wrong from None
    if not (isinstance(one, dict) and "format" in one):
        raise wrong


def read(path: str | Path, game: Game | str | None = None) -> list[Record]:
    """Reads a file of records, or of OpenSpiel's histories.

    Records are checked for form, `replay` checks what they say; histories are played.

    Args:
      path: of the file.
      game: of histories that do not name it: ours, or OpenSpiel's as it writes it.
    Raises:
      InputError: the file cannot be read, or a record is not as it must be; record and reason are named.
    """
    path = _file(path)
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise InputError(f"{path} is not a regular file; it must be a file of records")
        size = about.st_size
        if size > MAX_BYTES:
            raise InputError(f"{path} has more than {MAX_BYTES} bytes; split it into several files")
        if size <= MAX_WHOLE:
            return parse(path.read_text(), game, str(path))
        with path.open() as file:
            return [_record(f"{path}, record {n}", value, game) for n, value in _lines(str(path), file)]
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text; it must be a file of records, a JSON object in each line") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def parse(text: str, game: Game | str | None = None, place: str = "text") -> list[Record]:
    """Reads records from a text: as `read`.

    Args:
      text: what a file would hold.
      game: as of `read`.
      place: for messages.
    Raises:
      InputError: as `read`.
    """
    return [_read_one(place, n, text[start:end], game) for n, start, end in _places(place, _text(text))]


def _text(given: Any) -> str:
    """Returns a text of records; raises InputError for what is none, as bytes."""
    if not isinstance(given, str):
        raise InputError(f"text={shown(repr(given))} is not valid; it must be what a file of records holds, a str")
    return given


class LazyRecords(Sequence[Record]):
    """The records of a text, each read when it is asked for; what is kept is the text, as bytes.

    Attributes:
      nbytes: of what is kept.
    """

    def __init__(self, text: str, game: Game | str | None = None, place: str = "text", most: int | None = None) -> None:
        """Finds where the records are; arguments as of `parse`.

        Args:
          text: what a file would hold.
          game: of histories that do not name it.
          place: for messages.
          most: records; None: as many as there are.
        Raises:
          InputError: JSON that nests too deep, a record that is too long, or more than `most`.
        """
        self._game, self._place, text = game, place, _text(text)
        found = list(itertools.islice(_places(place, text), None if most is None else most + 1))
        if most is not None and len(found) > most:
            raise InputError(f"{place} holds more than {most} records; split it into several files")
        pieces = [text[start:end].encode("utf-8", "surrogatepass") for _, start, end in found]
        self._numbers = np.array([n for n, _, _ in found], np.int64)
        self._ends = np.cumsum([0, *map(len, pieces)])
        self._text = b"".join(pieces)

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""
        return len(self._text) + self._ends.nbytes + self._numbers.nbytes

    def __len__(self) -> int:
        """Returns how many records there are."""
        return len(self._numbers)

    def __getitem__(self, index: Any) -> Any:
        """Reads a record.

        Raises:
          InputError: it is not as it must be.
        """
        if isinstance(index, slice):
            return [self[n] for n in range(*index.indices(len(self)))]
        start, end = self._ends[range(len(self))[index]], self._ends[range(len(self))[index] + 1]
        text = self._text[start:end].decode("utf-8", "surrogatepass")
        return _read_one(self._place, self._numbers[index], text, self._game)


def _read_one(place: str, n: int, text: str, game: Game | str | None) -> Record:
    """Reads the n-th record of a place, its text alone."""
    serialised = openspiel.of_text(place, text) if text.startswith(_SERIALISED) else None
    if serialised is not None:
        return serialised
    place = f"{place}, record {n}"
    return _record(place, _value(place, text), game)


def _places(place: str, text: str) -> Iterator[tuple[int, int, int]]:
    """Yields number, start and end of each record: of a list, of the one value there is, or of lines."""
    head = _blank(text, 0)
    if text.startswith(_SERIALISED, head):
        return iter([(1, head, len(text))])
    if text.startswith("[", head) and not _HISTORY.match(text, head):
        return _elements(place, text, head)
    try:
        if _blank(text, _DECODER.raw_decode(text, head)[1]) == len(text):
            return iter([(1, head, len(text))])
    except json.JSONDecodeError:
        pass
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: {_wrong_json(error)}") from error
    return _line_places(place, text)


def _blank(text: str, start: int) -> int:
    """Returns where the blanks from a place on end."""
    found = _BLANK.match(text, start)
    return found.end() if found else start


def _elements(place: str, text: str, head: int) -> Iterator[tuple[int, int, int]]:
    """Yields the places of a list's elements."""
    n, end = 0, _blank(text, head + 1)
    goes_on = not text.startswith("]", end)
    try:
        while goes_on:
            n, start = n + 1, _blank(text, end)
            end = _DECODER.raw_decode(text, start)[1]
            yield n, start, end
            end = _blank(text, end)
            goes_on = text.startswith(",", end)
            end += goes_on
        if not text.startswith("]", end) or _blank(text, end + 1) != len(text):
            raise json.JSONDecodeError("Expecting ',' or the end of the list", text, end)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}, record {n}: {_wrong_json(error)}") from error


def _line_places(place: str, text: str) -> Iterator[tuple[int, int, int]]:
    """Yields the places of the lines that are not blank, numbered with those that are."""
    n, start = 0, 0
    while start < len(text):
        n, end = n + 1, text.find("\n", start)
        end = len(text) if end < 0 else end
        if end - start > MAX_LINE:
            raise InputError(f"{place}, record {n}: more than {MAX_LINE} characters on a line")
        if text[start:end].strip():
            yield n, start, end
        start = end + 1


def _lines(place: str, lines: Any) -> Iterator[tuple[int, Any]]:
    """Yields the values of lines with their numbers: JSON, or the numbers of a history."""
    n = 0
    while line := lines.readline(MAX_LINE + 1):
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
    if len(history) > MOST_ACTIONS:
        raise InputError(f"{place}: a history of {len(history)} numbers; it must have {MOST_ACTIONS} at most")
    if not isinstance(named, str | Game):
        raise InputError(f"{place}: a history of OpenSpiel's does not name its game; give game=")
    return openspiel.of_history(named, history, place=place)


def _from_json(place: str, value: Any) -> Record:
    if not isinstance(value, dict):
        raise InputError(f"{place}: {a_kind(type(value))}; it must be an object")
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
    """Checks how much stands in the lists of a record and in `about`, and what."""
    for key, most in _MOST.items():
        if len(value.get(key, ())) > most:
            raise InputError(f"{place}: {key} holds {len(value[key])} entries; it must hold {most} at most")
    kinds = {"actions": (int,), deal: (int,) if deal == "deck" else (int, float)}
    for key, kind in kinds.items():
        for wrong in (x for x in value[key] if type(x) not in kind):
            raise InputError(f"{place}: {key} holds {_short(wrong)}; it must hold numbers")
    for wrong in (x for x in value.get("players", ()) if not isinstance(x, str) or len(x) > _MOST_NAME):
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
