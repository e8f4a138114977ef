"""Files of records: what is read of them and when, and what is refused."""

from __future__ import annotations

import json

import pytest

import envs
from dream.page import opened
from dream.page.compiled import Shelf
from dream.page.opened import LISTED, Archive, Upload, rounds_near
from dream.page.refusals import RefusedError
from envs import InputError, records

_SHELF = Shelf()
_KUHN, _LEDUC = envs.make("kuhn_poker"), envs.make("leduc_poker")
_WON = records.to_line(records.record(_KUHN, [2, 0, 1], [1, 1], ["anna", "bo"]))
_PASSED = records.to_line(records.record(_KUHN, [0, 1, 2], [0, 0]))


def test_a_round_is_played_when_it_is_asked_for() -> None:
    """Each with its own players and points; those near it in short, as many as a review lists."""
    archive = Archive((_WON + _PASSED) * 125, _SHELF)
    assert archive.numbers == range(250)
    match = archive.look(200)
    played = match.finished_round(200)
    assert (match.id, match.names(200), match.points_by_seat(played)) == (archive.id, ["anna", "bo"], [2, -2])
    assert archive.look(200) is match
    match = archive.look(201)
    assert (match.names(201), match.points_by_seat(match.finished_round(201))) == ([None, None], [-1, 1])
    near = rounds_near(archive, 201)
    assert (near["first"], near["count"]) == (0, 250)
    assert [one["round"] for one in near["listed"]] == list(range(200, 200 + LISTED))
    assert near["listed"][0] == match.in_short(201) | {"round": 200, "names": ("anna", "bo"), "points": [2, -2]}
    for number in (250, -1):
        with pytest.raises(RefusedError, match="no_round"):
            archive.look(number)


def test_a_wrong_round_is_refused_alone() -> None:
    """A line that is no record, a result that the round did not have, and points that are no numbers."""
    false = json.loads(_WON) | {"result": {"points": [3, -3]}}
    nan = json.loads(_WON) | {"result": {"points": [float("nan"), 10**400]}}
    archive = Archive(f"{_WON}\n{{\n{json.dumps(false)}\n{json.dumps(nan)}\n{_WON}", _SHELF)
    assert [one["points"] for one in rounds_near(archive, 0)["listed"]] == [[2, -2], [], [3, -3], [], [2, -2]]
    for number, reason in ((1, "file, record 3: no JSON"), (2, "file, record 4: result points"), (3, "result points")):
        with pytest.raises(InputError, match=reason):
            archive.look(number)
    assert archive.look(4).finished_round(4).actions == (1, 1)
    for text, reason in ((false, "result points"), ([], "no_record"), ([1, 2], "does not name its game")):
        with pytest.raises(InputError, match=reason):
            Archive(json.dumps(text), _SHELF)


def test_a_file_may_hold_several_games() -> None:
    """Each round is looked at by its own."""
    other = records.to_line(records.record(_LEDUC, [0, 2, 4, 1, 3, 5], [2, 0]))
    archive = Archive(_WON + other, _SHELF)
    assert [archive.look(number).game.name for number in (1, 0)] == ["leduc_poker", "kuhn_poker"]


def test_a_file_of_too_many_rounds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line."""
    monkeypatch.setattr(opened, "MOST_ROUNDS", 3)
    assert len(Archive(_WON * 3, _SHELF).numbers) == 3
    with pytest.raises(InputError, match="file holds more than 3 records"):
        Archive(_WON * 4, _SHELF)


def test_a_file_comes_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is too large, or more than the server has room for, is refused once, and its other parts are dropped."""
    monkeypatch.setattr(opened, "MOST_CHARACTERS", 6)
    upload = Upload()
    assert [upload.add("ab", True, 9), upload.size, upload.add("cd", False, 9), upload.size] == [None, 2, "abcd", 0]
    for first, second, room, code in (("abcd", "efg", 9, "file_too_large"), ("ab", "cd", 1, "busy")):
        upload.add(first, True, 9)
        with pytest.raises(RefusedError, match=code):
            upload.add(second, True, room)
        assert (upload.size, upload.add("more", True, 9), upload.add("last", False, 9)) == (0, None, None)
        assert upload.add("new", False, 9) == "new"
