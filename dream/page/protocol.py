"""What the page may say to the server: every message checked for form before anything looks at it.

A message is a JSON object with `type` and the fields of that type; there are no others.

The server sends no sentences. It answers with objects of these types:

| type | what it holds besides |
|---|---|
| welcome | the key of the browser, games, tables under way, limits of files |
| match | a table as its person may see it |
| thinking | whose turn it is, where that takes long |
| hint, belief | advice, sharper with every message |
| opened | a file of records and how many rounds it has |
| review, judged | a finished round, those near it in short and how many there are; then what is thought of each move |
| error | `code` and `params`, see `refusals` |

A file of records comes in parts, messages of type `record` with `more` until the last; the server keeps its text and
reads the round that is asked for.

A game is sent by its registered name. A variant is sent by its key, or as `of:` and a trained player's label, by whose
rules one plays. A player is sent by its name, null where that is the person or not known. These names are shown as they
are; so are the line of a `library` error, and of a game without a board `svg` and `label`, its words for an action.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from dream.page.refusals import RefusedError
from envs.errors import shown
from envs.records import MOST_ACTIONS

MOST_BYTES = 8_192
"""Of any message but a record."""
MOST_PART_BYTES = 262_144
"""Of a part of a file of records, quoted as JSON."""


def _text(most: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and len(value) <= most and value.isprintable()


def _whole(low: int, high: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and low <= value <= high


def _number(low: float, high: float) -> Callable[[Any], bool]:
    return lambda value: type(value) in (int, float) and low <= value <= high


def _seats(value: Any) -> bool:
    return isinstance(value, list) and 1 <= len(value) <= 8 and all(item is None or _name(item) for item in value)


def _name(value: Any) -> bool:
    """Returns whether a text can name a player: no path, nothing that is not printed."""
    plain = isinstance(value, str) and 0 < len(value) <= 120 and value.isprintable()
    return plain and not set(value) & set("/\\\0") and ".." not in value


def _part(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MOST_PART_BYTES


def _or_none(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or check(value)


_ID = _text(64)
_ROUND, _PLY = _whole(0, 100_000), _whole(0, MOST_ACTIONS)
FIELDS: dict[str, dict[str, Callable[[Any], bool]]] = {
    "hello": {"key": _or_none(_ID)},
    "new": {
        "game": _name,
        "variant": _text(120),
        "seats": _seats,
        "target": _or_none(_whole(1, 100_000)),
        "pace": _number(0, 60),
    },
    "open": {"match": _ID},
    "act": {"match": _ID, "round": _ROUND, "ply": _PLY, "action": _whole(0, 100_000)},
    "next": {"match": _ID, "round": _ROUND},
    "pace": {"match": _ID, "pace": _number(0, 60), "paused": lambda value: isinstance(value, bool)},
    "hint": {"match": _ID, "advisor": _or_none(_name)},
    "belief": {"match": _ID, "advisor": _or_none(_name)},
    "stop": {"match": _ID},
    "review": {"match": _ID, "round": _ROUND, "advisor": _or_none(_name)},
    "branch": {"match": _ID, "round": _ROUND, "ply": _PLY, "action": _or_none(_whole(0, 100_000))},
    "record": {"text": _part, "more": _or_none(lambda value: isinstance(value, bool))},
    "leave": {"match": _ID},
}
"""Type -> field -> check."""


def parse(text: str) -> dict[str, Any]:
    """Reads a message.

    Returns:
      The message, with every field of its type.
    Raises:
      RefusedError: no JSON object, an unknown type or field, a field missing or not valid, or a message too large.
    """
    if not isinstance(text, str):
        raise RefusedError("not_text")
    if len(text) > MOST_PART_BYTES + MOST_BYTES:
        raise RefusedError("part_too_large", size=len(text), most=MOST_PART_BYTES)
    try:
        message = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise RefusedError("no_json") from error
    if not isinstance(message, dict):
        raise RefusedError("no_object")
    kind = message.get("type")
    if not isinstance(kind, str) or kind not in FIELDS:
        raise RefusedError("unknown_type", given=shown(repr(kind), 40))
    if kind != "record" and len(text) > MOST_BYTES:
        raise RefusedError("message_too_large", size=len(text), most=MOST_BYTES)
    fields = FIELDS[kind]
    for name in message:
        if name != "type" and name not in fields:
            raise RefusedError("unknown_field", message=kind, field=shown(repr(name), 40))
    if kind == "record" and isinstance(message.get("text"), str) and not _part(message["text"]):
        raise RefusedError("part_too_large", size=len(message["text"]), most=MOST_PART_BYTES)
    for name, check in fields.items():
        if not check(message.get(name)):
            raise RefusedError("wrong_field", message=kind, field=name, given=shown(repr(message.get(name)), 60))
    return {name: message.get(name) for name in ("type", *fields)}


def _refuse_constant(text: str) -> Any:
    raise ValueError(text)
