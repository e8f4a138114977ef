"""What the page may say to the server: every message checked for form before anything looks at it.

A message is a JSON object with `type` and the fields of that type; there are no others. The server answers with objects
of type welcome, match, thinking, hint, belief, review or error.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from envs.errors import InputError, shown

MOST_BYTES = 8_192
"""Of any message but a record."""
MOST_RECORD_BYTES = 262_144
"""Of the text of a record, quoted as JSON."""
_LIMITS = f"a file of records may have {MOST_RECORD_BYTES}, any other message {MOST_BYTES}"
_MOST_DEPTH = 6


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


def _record(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MOST_RECORD_BYTES


def _or_none(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or check(value)


_ID = _text(64)
_ROUND, _PLY = _whole(0, 100_000), _whole(0, 10_000)
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
    "record": {"text": _record, "held": _or_none(_whole(0, 10**9))},
    "leave": {"match": _ID},
}
"""Type -> field -> check."""


def parse(text: str) -> dict[str, Any]:
    """Reads a message.

    Returns:
      The message, with every field of its type.
    Raises:
      InputError: no JSON object, an unknown type or field, a field missing or not valid, or a message too large.
    """
    if not isinstance(text, str):
        raise InputError("a message of bytes; it must be text")
    if len(text) > MOST_RECORD_BYTES + MOST_BYTES:
        raise InputError(f"a message of {len(text)} characters; {_LIMITS}")
    try:
        message = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InputError("a message that is no JSON") from error
    if not isinstance(message, dict):
        raise InputError("a message that is no object")
    kind = message.get("type")
    if not isinstance(kind, str) or kind not in FIELDS:
        raise InputError(f"a message of type {shown(repr(kind), 40)}; it must be one of {', '.join(FIELDS)}")
    if kind != "record" and len(text) > MOST_BYTES:
        raise InputError(f"a message of {len(text)} characters; {_LIMITS}")
    fields = FIELDS[kind]
    for name in message:
        if name != "type" and name not in fields:
            raise InputError(f"{kind}: unknown field {shown(repr(name), 40)}")
    if kind == "record" and isinstance(message.get("text"), str) and not _record(message["text"]):
        raise InputError(f"a file of records of {len(message['text'])} characters; {_LIMITS}")
    for name, check in fields.items():
        if not check(message.get(name)):
            raise InputError(f"{kind}: {name}={shown(repr(message.get(name)), 60)} is not valid")
    return {name: message.get(name) for name in ("type", *fields)}


def _refuse_constant(text: str) -> Any:
    raise ValueError(text)
