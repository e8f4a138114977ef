"""Values of wrong kinds given to the functions for records: one line each, and nothing written."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import envs
from envs import InputError, records

_KUHN = envs.make("kuhn_poker")
_OTHER_KINDS = {
    "'a' is not a record; give one, as envs.records.read(path)[0]": (
        records.replay, records.game_of, records.positions, records.moves, records.scene, records.to_line,
        records.to_history, records.stored_points, lambda x: records.player_names(x, 2),
        lambda x: list(records.counted_once(x)), lambda x: records.write("games.jsonl", [x]),
        lambda x: records.append("games.jsonl", x),
    ),
    "path=3 is not valid; it must be the path of a file of records": (
        lambda _: records.read(3), lambda _: records.write(3, []), lambda _: records.check_lines(3),
    ),
    "text=b'a' is not valid; it must be what a file of records holds, a str": (
        lambda _: records.parse(b"a"), lambda _: records.LazyRecords(b"a"),
    ),
    "deal='a' is not valid; it must be a list of numbers": (lambda x: records.record(_KUHN, x, (1, 1)),),
    "deal holds 'a'; it must hold numbers": (lambda x: records.record(_KUHN, [x], (1, 1)),),
    "actions=3 is not valid; it must be a list of whole numbers": (lambda _: records.record(_KUHN, (2, 0, 1), 3),),
    "points='a' is not valid; it must be a list of numbers": (lambda x: records.rounded(x),),
    "points=['a'] is not valid; it must be a list of numbers": (lambda x: records.rounded([x]),),
    "about='a' is not valid; it must be a dict, names to texts and numbers": (
        lambda x: records.record(_KUHN, (2, 0, 1), (1, 1), about=x),
    ),
    "about names a value 3; the name must be a text": (
        lambda x: records.record(_KUHN, (2, 0, 1), (1, 1), about={3: x}),
    ),
    "['a'] is not a game; give one, as envs.make('kuhn_poker')": (lambda x: records.record([x], (2, 0, 1), (1, 1)),),
    "history: game=3 is not a game; give one, or OpenSpiel's name of it": (lambda _: records.of_history(3, [1]),),
    "history: history='a' is not valid; it must be a list of whole numbers": (
        lambda x: records.of_history("kuhn_poker", x),
    ),
}  # fmt: skip
"""What is said -> functions that are given "a", or another value of a wrong kind."""


@pytest.mark.parametrize("reported", _OTHER_KINDS)
def test_values_of_other_kinds_are_refused(
    reported: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line, before anything is written."""
    monkeypatch.chdir(tmp_path)
    for use in _OTHER_KINDS[reported]:
        with pytest.raises(InputError) as error:
            use("a")
        assert str(error.value) == reported
    assert not list(tmp_path.iterdir())


def test_numbers_of_numpy_in_a_deal_are_not_cut() -> None:
    """A float32 of 2.7 was recorded as card 2."""
    assert records.record(_KUHN, np.uint8([2, 0, 1]), iter((1, 1))).deal == (2, 0, 1)
    with pytest.raises(InputError, match="the deck is not each of the cards"):
        records.record(_KUHN, np.float32([2.7, 0, 1]), (1, 1))
