"""Hands as JSON: written, read back, replayed through their game, and refused where they cannot be."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Any

import jax
import numpy as np
import pytest

import envs
from envs import InputError
from envs.gin_rummy import records

DECK = np.random.default_rng(11).permutation(52).tolist()


def _hand(game: envs.Game, rng: np.random.Generator) -> list[int]:
    """Plays a hand at random but for knocks, which are taken as soon as they come."""
    legal_actions, step = jax.jit(game.legal_actions), jax.jit(game.step)
    state, actions, done = jax.jit(game.from_deck)(np.array(DECK)), [], False
    while not done:
        legal = np.nonzero(np.asarray(legal_actions(state)))[0]
        actions.append(int(legal[-1] if legal[-1] >= 55 else rng.choice(legal)))
        state, _, done = step(state, actions[-1])
    return actions


@pytest.fixture(scope="module")
def made() -> records.Record:
    """A hand of `gin_rummy` cut short by its rules."""
    game = envs.make("gin_rummy", max_actions=12, knock_limit=60)
    return records.record(game, DECK, _hand(game, np.random.default_rng(1)), players=("anna", "lv5"))


def test_a_record_tells_the_hand(made: records.Record) -> None:
    """Game, version, rules, deal, actions, result and players; the points are the hand's own, zero-sum."""
    told = made.as_json()
    assert (told["format"], told["game"], told["version"], told["preset"]) == (1, "gin_rummy", "1", None)
    assert told["rules"]["max_actions"] == 12
    assert told["deck"] == DECK
    assert told["players"] == ["anna", "lv5"]
    assert sum(told["result"]["points"]) == 0
    assert told["result"]["ending"] in ("tie", "knock", "gin", "undercut")


def test_presets_go_by_name(made: records.Record) -> None:
    """Each game's own preset is known, and kept when read back."""
    assert records.preset_of(envs.make("gin_rummy")) == "dream"
    assert records.preset_of(envs.make("gin_rummy_mdp")) == "r42"
    assert records.preset_of(envs.make("gin_rummy", gin_bonus=49)) is None
    named = dataclasses.replace(made, preset="dream")
    assert records._from_json("here", named.as_json()).preset == "dream"


def test_written_read_and_replayed(made: records.Record, tmp_path: pathlib.Path) -> None:
    """One a line, appended, or a JSON list: the same records, and each replays to its result."""
    path = tmp_path / "hands.jsonl"
    records.write(path, [made])
    records.append(path, made)
    (tmp_path / "list.json").write_text(json.dumps([made.as_json()], indent=1))
    (tmp_path / "one.json").write_text(json.dumps(made.as_json(), indent=1))
    found = records.read(path) + records.read(tmp_path / "list.json") + records.read(tmp_path / "one.json")
    assert [one.as_json() for one in found] == [made.as_json()] * 4
    game, state = records.replay(found[1])
    assert game.rules.max_actions == 12
    assert int(state.current_player) == -1


def test_a_hand_of_the_sixteen_action_game() -> None:
    """Its record names its preset and replays; a knock decision is an action of its own; a tie was once a "draw"."""
    game = envs.make("gin_rummy_mdp", max_actions=6)
    made = records.record(game, DECK, [0, 2, 0, 2, 0, 2])
    assert made.rules["reward"] == "points"
    assert made.result["ending"] == "tie"
    assert records.replay(made)[0] == game
    assert records.replay(dataclasses.replace(made, result={**made.result, "ending": "draw"}))[0] == game


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "action": ({"actions": (0,)}, "action 1, 0, is not legal; legal are 1, 2"),
    "no action": ({"actions": (2, 500)}, "action 2, 500, is not one of 0 to 106"),
    "short": ({"actions": (2, 2)}, "not over after its 2 actions"),
    "deck": ({"deck": (1, *DECK[1:])}, "not each of the cards 0 to 51 once"),
    "version": ({"version": "0"}, "version 0; this project has version 1"),
    "game": ({"game": "gin_rumy"}, "did you mean 'gin_rummy'"),
    "rule": ({"rules": {"knock_limt": 10}}, "did you mean 'knock_limit'"),
    "result": ({"result": {"points": [1.0, -1.0], "ending": "gin"}}, "the round played gives"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_record_that_cannot_be_is_refused(made: records.Record, tmp_path: pathlib.Path, what: str) -> None:
    """The file, the record's number and the reason are in the line."""
    changes, reason = WRONG[what]
    records.write(tmp_path / "hands.jsonl", [made, dataclasses.replace(made, **changes)])
    first, second = records.read(tmp_path / "hands.jsonl")
    records.replay(first)
    with pytest.raises(InputError) as told:
        records.replay(second)
    assert f"{tmp_path / 'hands.jsonl'}, record 2: " in str(told.value)
    assert reason in str(told.value)


def test_actions_after_the_end_are_refused(made: records.Record) -> None:
    """One more than the hand took."""
    assert len(made.actions) < 12
    with pytest.raises(InputError, match=f"action {len(made.actions) + 1}, 0, comes after the end"):
        records.replay(dataclasses.replace(made, actions=(*made.actions, 0)))


BAD_FILES = {
    "no json": ("{'a': 1}", "record 1: no JSON"),
    "a list of numbers": ("[1]", "record 1: a int; it must be an object"),
    "another format": ('{"format": 2}', "format 2; it must be 1"),
    "no deck": ('{"format": 1, "game": "g", "version": "1", "rules": {}}', "deck is None"),
}


@pytest.mark.parametrize("what", BAD_FILES)
def test_a_file_of_something_else_is_refused(tmp_path: pathlib.Path, what: str) -> None:
    """What is wrong, and in which record."""
    text, reason = BAD_FILES[what]
    (tmp_path / "file.jsonl").write_text(text)
    with pytest.raises(InputError, match=reason):
        records.read(tmp_path / "file.jsonl")


def test_keys_and_numbers_are_checked(made: records.Record, tmp_path: pathlib.Path) -> None:
    """An unknown key, and a deck of text."""
    for change, reason in (({"dck": []}, "unknown key 'dck'"), ({"deck": ["AS"]}, "deck holds 'AS'")):
        (tmp_path / "file.json").write_text(json.dumps(made.as_json() | change))
        with pytest.raises(InputError, match=reason):
            records.read(tmp_path / "file.json")
    with pytest.raises(InputError, match="cannot be read"):
        records.read(tmp_path / "missing.json")
