"""Messages of the page: what is well formed, and what is refused."""

from __future__ import annotations

import json

import pytest

import envs
from dream.page import protocol
from dream.page.refusals import RefusedError
from envs import records

_NEW = {
    "type": "new",
    "game": "kuhn_poker",
    "variant": "standard",
    "seats": [None, "random"],
    "target": None,
    "pace": 0,
}
_ACT = {"type": "act", "match": "abc", "round": 0, "ply": 3, "action": 1}


@pytest.mark.parametrize("message", [_NEW, _ACT, {"type": "hello"}, {"type": "stop", "match": "a"}])
def test_a_message_is_read(message: dict) -> None:
    """With every field of its type, None where it is left out."""
    read = protocol.parse(json.dumps(message))
    assert {name: read[name] for name in message} == message
    assert set(read) == {"type", *protocol.FIELDS[message["type"]]}


def test_every_move_of_the_longest_game_can_be_named() -> None:
    """A match of rummy 500 by the rules that make it the longest."""
    longest = envs.make("rummy500", target=10_000, max_rounds=200, max_turns=200).max_length
    branch = {"type": "branch", "match": "abc", "round": 0, "ply": longest, "action": None}
    for message in (_ACT | {"ply": longest}, branch):
        assert protocol.parse(json.dumps(message))["ply"] == longest


_WRONG = {
    "no JSON": "{",
    "no object": "[1]",
    "not a number": json.dumps(_ACT | {"action": float("nan")}),
    "nesting": "[" * 100_000,
    "no type": "{}",
    "unknown type": json.dumps({"type": "eval"}),
    "type of another kind": json.dumps({"type": ["act"]}),
    "unknown field": json.dumps(_ACT | {"admin": True}),
    "missing field": json.dumps({"type": "act", "match": "abc"}),
    "boolean for a number": json.dumps(_ACT | {"ply": True}),
    "beyond any game": json.dumps(_ACT | {"ply": records.MOST_ACTIONS + 1}),
    "negative": json.dumps(_ACT | {"ply": -1}),
    "huge": json.dumps(_ACT | {"action": 10**30}),
    "a path as a game": json.dumps(_NEW | {"game": "../../etc/passwd"}),
    "a path as a player": json.dumps(_NEW | {"seats": [None, "runs/first"]}),
    "a path of another system": json.dumps(_NEW | {"seats": [None, "runs\\first"]}),
    "a parent as a player": json.dumps(_NEW | {"seats": [None, ".."]}),
    "no seats": json.dumps(_NEW | {"seats": []}),
    "too many seats": json.dumps(_NEW | {"seats": [None] * 9}),
    "control characters": json.dumps(_NEW | {"variant": "a\x00b"}),
    "oversized": json.dumps(_NEW | {"variant": "x" * protocol.MOST_BYTES}),
    "oversized record": json.dumps({"type": "record", "text": "x" * (protocol.MOST_PART_BYTES + 1)}),
    "far oversized": "x" * (2 * protocol.MOST_PART_BYTES),
}


@pytest.mark.parametrize("extra", [1, 2 * protocol.MOST_BYTES])
def test_a_record_that_is_too_large_is_told_its_own_limit(extra: int) -> None:
    """Whether the message or only its text exceeds what is allowed; one of the limit is read."""
    message = {"type": "record", "text": "x" * protocol.MOST_PART_BYTES}
    assert protocol.parse(json.dumps(message))["more"] is None
    message["text"] += "x" * extra
    with pytest.raises(RefusedError) as raised:
        protocol.parse(json.dumps(message))
    assert raised.value.code == "part_too_large"
    assert raised.value.params["most"] == protocol.MOST_PART_BYTES


@pytest.mark.parametrize("text", _WRONG.values(), ids=_WRONG)
def test_a_wrong_message_is_refused_in_one_line(text: str) -> None:
    """Whatever is wrong, the answer is short and has no control characters."""
    with pytest.raises(RefusedError) as raised:
        protocol.parse(text)
    assert len(str(raised.value)) < 400
    assert str(raised.value).isprintable()
