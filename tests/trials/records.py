"""Hand records that are not what they say: each is refused in one line."""

from __future__ import annotations

import functools
import json
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

import envs
from envs import records

DECK = np.random.default_rng(11).permutation(52).tolist()
_ACTIONS = [0, 2, 0, 2, 0, 2]
"""Of the sixteen-action game, whose hand ends after six."""


@functools.cache
def _made() -> dict[str, Any]:
    game = envs.make("gin_rummy_mdp", max_actions=6)
    return records.record(game, DECK, _ACTIONS, players=("anna", "otto")).as_json()


def sound() -> bytes:
    """Returns a sound record."""
    return json.dumps(_made()).encode()


def _deep(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def _with(**changes: Any) -> bytes:
    return json.dumps({**_made(), **changes}).encode()


def _rules(**changes: Any) -> bytes:
    return _with(rules={**_made()["rules"], **changes})


_LONG = int("9" * 4000)
CASES: dict[str, Callable[[], Any]] = {
    "nothing": lambda: b"",
    "no text": lambda: b"\xff\xfe\x00",
    "no JSON": lambda: b"{'format': 1}",
    "deep lists": lambda: _deep(200_000),
    "deep rules": lambda: sound()[:-1] + b', "rules": ' + _deep(100_000) + b"}",
    "deep lists on a line": lambda: sound() + b"\n" + _deep(200_000),
    "5,000 digits": lambda: b'{"format": ' + b"9" * 5000 + b"}",
    "5,000 digits on a line": lambda: sound() + b'\n{"format": ' + b"9" * 5000 + b"}",
    "4,000 digits for a format": lambda: _with(format=_LONG),
    "4,000 digits for an action": lambda: _with(actions=[_LONG]),
    "4,000 digits for a card": lambda: _with(deal=[_LONG, *DECK[1:]]),
    "4,000 digits for a rule": lambda: _rules(gin_bonus=_LONG),
    "a number beyond floats": lambda: sound().replace(b'"points": [0', b'"points": [1e999'),
    "points that are none": lambda: sound().replace(b'"points": [0.0', b'"points": [NaN'),
    "a long line": lambda: b'{"format": 1, "x": "' + b"y" * 2**25 + b'"}',
    "eleven million lists": lambda: b"[" + b"[]," * 5_000_000 + b"[]]",
    "a million actions": lambda: _with(actions=[0] * 1_000_000),
    "a million cards": lambda: _with(deal=list(range(1_000_000))),
    "a number": lambda: b"3",
    "a list of numbers": lambda: b"[1, 2]",
    "null": lambda: b"null",
    "format as a text": lambda: _with(format="1"),
    "format as true": lambda: _with(format=True),
    "format 3": lambda: _with(format=3),
    "format 1 with a deal": lambda: _with(format=1),
    "rummy 500": lambda: _with(game="rummy500", version="2", rules={}),
    "Kuhn poker": lambda: _with(game="kuhn_poker", version="1", rules={}),
    "liar's dice": lambda: _with(game="liars_dice", version="1", rules={}),
    "gin rummy of other actions": lambda: _with(game="gin_rummy", rules={}),
    "an unknown game": lambda: _with(game="whist\n\x1b[31m"),
    "a long name of a game": lambda: _with(game="x" * 10**6),
    "a game that is a list": lambda: _with(game=["gin_rummy"]),
    "another version": lambda: _with(version="0\n" * 1000),
    "an unknown rule": lambda: _rules(knock="\x1b]0;x\x07"),
    "a rule of many characters": lambda: _rules(**{"x" * 10**6: 1}),
    "a rule of another type": lambda: _rules(knock_limit="10"),
    "a rule that is a list": lambda: _rules(knock_limit=[[1]]),
    "a rule out of range": lambda: _rules(max_actions=10**9),
    "rules that are a list": lambda: _with(rules=[]),
    "a card twice": lambda: _with(deal=[DECK[0], *DECK[:-1]]),
    "a card too many": lambda: _with(deal=[*DECK, 52]),
    "no cards": lambda: _with(deal=[]),
    "a card below 0": lambda: _with(deal=[-1 if card == 0 else card for card in DECK]),
    "cards as fractions": lambda: _with(deal=[float(card) for card in DECK]),
    "cards as true and false": lambda: _with(deal=[bool(card) if card < 2 else card for card in DECK]),
    "an action that is not legal": lambda: _with(actions=[15, *_ACTIONS[1:]]),
    "an action below 0": lambda: _with(actions=[-1, *_ACTIONS[1:]]),
    "an action beyond the game's": lambda: _with(actions=[16, *_ACTIONS[1:]]),
    "no actions": lambda: _with(actions=[]),
    "a hand that is not over": lambda: _with(actions=_ACTIONS[:-1]),
    "an action after the end": lambda: _with(actions=[*_ACTIONS, 0]),
    "another result": lambda: _with(result={"points": [5.0, -5.0], "ending": "draw"}),
    "a result of many characters": lambda: _with(result={"points": "x" * 10**6, "ending": "draw"}),
    "a result without points": lambda: _with(result={"ending": "draw"}),
    "a result that is a list": lambda: _with(result=[]),
    "an unknown key": lambda: _with(**{"k\ney" * 1000: 1}),
    "players that are numbers": lambda: _with(players=[1, 2]),
    "a preset that is a number": lambda: _with(preset=3),
    "what belongs to it is a list": lambda: _with(about=[1]),
    "what belongs to it nests": lambda: _with(about={"a": [[1]]}),
    "a name of many characters": lambda: _with(players=["x" * 10**6, "y"]),
    "a history without its game": lambda: b"[0, 1, 1, 0]",
    "a history of an unknown game": lambda: b'{"game": "whist(players=4)", "history": [1]}',
    "a history of another variant": lambda: b'{"game": "kuhn_poker(players=3)", "history": [0, 1, 0]}',
    "a history with a card twice": lambda: b'{"game": "kuhn_poker", "history": [1, 1, 0, 0]}',
    "a history that is not over": lambda: b'{"game": "leduc_poker", "history": [1, 2, 1]}',
    "a long history": lambda: b'{"game": "kuhn_poker", "history": [' + b"1," * 20_000 + b"1]}",
    "a pipe": lambda: os.mkfifo,
    "a byte order mark": lambda: b"\xef\xbb\xbf" + sound(),
}


def cases(count: int, seed: int, folder: pathlib.Path) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Yields name, file name and what makes the file."""
    for name, made in CASES.items():
        yield name, "hand.json", made


def warm_up(folder: pathlib.Path) -> None:
    """Compiles the walk through a hand."""
    (folder / "sound.json").write_bytes(sound())
    read(folder / "sound.json")
    envs.make("gin_rummy")
    jax.eval_shape(envs.make("gin_rummy").init, jax.random.key(0))


def read(path: pathlib.Path) -> None:
    """Reads a file of records and plays them."""
    for record in records.read(path):
        records.replay(record)


def must_be_refused(name: str) -> bool:
    """All are wrong but the empty file, which holds no hands."""
    return name != "nothing"
