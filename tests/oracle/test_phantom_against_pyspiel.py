"""Phantom tic-tac-toe and Dark Hex in lockstep with OpenSpiel's: every decision of random games.

DREAM_LOCKSTEP_GAMES sets how many games each version plays; docs/games/phantom.md says how many were played at length.
"""

from __future__ import annotations

import os

import jax
import numpy as np
import phantom_lockstep
import pytest

import envs
from envs.game import Game

NUM_GAMES = int(os.environ.get("DREAM_LOCKSTEP_GAMES", "250"))
CASES = [
    ("phantom_ttt", {"version": "classical"}),
    ("phantom_ttt", {"version": "abrupt"}),
    ("dark_hex", {"version": "classical"}),
    ("dark_hex", {"version": "abrupt"}),
    ("dark_hex", {"version": "classical", "board_size": 2}),
]
_CHUNK = 250


@pytest.fixture(scope="module", params=CASES, ids=lambda case: "-".join(map(str, [case[0], *case[1].values()])))
def game(request: pytest.FixtureRequest) -> Game:
    """Each game in each version."""
    name, rules = request.param
    return envs.make(name, **rules)


def test_random_games_are_the_same(game: Game) -> None:
    """Player to act, legal actions, both tensors and returns at every step; views part what tensors part.

    Past the end Dark Hex's tensors mark the edge a stone is joined to, which nobody is asked to act on.
    """
    ends = set()
    for seed in range(-(-NUM_GAMES // _CHUNK)):
        record = phantom_lockstep.play(game, _CHUNK, seed)
        views, players, legal, seen, rewards = jax.device_get(phantom_lockstep.replay(game, record.actions))
        np.testing.assert_array_equal(players.T, record.players)
        np.testing.assert_array_equal(legal.swapaxes(0, 1), record.legal)
        compared = record.players >= 0 if game.name == "dark_hex" else np.full(record.players.shape, True)
        np.testing.assert_array_equal(seen.swapaxes(0, 1).astype(bool)[compared], record.tensors[compared])
        assert set(np.unique(seen)) <= {0.0, 1.0}
        played = (record.actions >= 0).T
        assert not rewards[~played].any()
        np.testing.assert_array_equal(rewards.sum(axis=0), record.returns)
        ends |= set(record.returns[:, 0].tolist())
        _check_views(views, record)
    assert ends == ({-1.0, 0.0, 1.0} if game.name == "phantom_ttt" else {-1.0, 1.0})


def _check_views(views: object, record: phantom_lockstep.Games) -> None:
    """Views of a seat are equal exactly where its tensors are; and wherever the strings are."""
    for seat in range(2):
        pairs, texts = set(), {}
        for n, t in np.argwhere(record.players == seat):
            key = (int(views.stones[t, n, seat]), int(views.tries[t, n, seat]))
            pairs.add((key, record.tensors[n, t, seat].tobytes()))
            assert texts.setdefault(record.strings[n][t], key) == key
        assert len(pairs) == len({key for key, _ in pairs}) == len({tensor for _, tensor in pairs})
        assert len(pairs) > 10
