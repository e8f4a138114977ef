"""Levels for people: ordered as they were measured, and found wherever players are named."""

from __future__ import annotations

import itertools
import json

import jax
import numpy as np
import pytest
from command_support import REPO

import dream
import envs
from dream.storage.levels import level, names, player_of
from dream.storage.policies import find, find_player
from envs import InputError


def test_levels_rise_as_measured() -> None:
    """Each is stronger than the one below by more than both intervals, against one field, 1,000 deals a pairing."""
    stored = json.loads((REPO / "experiments" / "results" / "gin_levels.json").read_text())
    measured = [stored["players"][name] for name in names(envs.make("gin_rummy"))]
    assert min(one["games"] for one in measured) >= 2000
    for below, above in itertools.pairwise(one["points_per_hand"] for one in measured):
        assert below["high"] < above["low"]


def test_a_level_is_its_player() -> None:
    """In a match as by the player's own name; a level's mistakes are spread over all legal actions."""
    game = envs.make("gin_rummy")
    assert level("level:4", game) == ("greedy", 0.0)
    assert level(names(game)[-1], game) == ("gin_rummy/points", 0.0)
    assert [player_of(name, game) for name in ("level:4", "level:2", "marjj")] == ["greedy", "level:2", "marjj"]
    fourth, greedy = (dream.evaluate(name, "random", games=64, game=game) for name in ("level:4", "greedy"))
    assert fourth.points_per_hand == greedy.points_per_hand
    state = game.init(jax.random.key(0))
    view, legal = game.view(state, state.current_player), game.legal_actions(state)
    chances, own = (np.asarray(find_player(name, game)(view, legal)) for name in ("level:2", "greedy"))
    assert chances == pytest.approx(0.6 * own + 0.4 * np.asarray(legal) / np.sum(legal))


@pytest.mark.parametrize("name", ["level:0", "level:10", "level:", "level:two", "level:²"])
def test_there_is_no_such_level(name: str) -> None:
    """In one line that says which there are, and of another game that there are none."""
    with pytest.raises(InputError, match=f"unknown level '{name}'; it must be level:1 to level:9"):
        find_player(name, envs.make("gin_rummy"))
    with pytest.raises(InputError, match=f"unknown level '{name}'; it must be level:1 to level:9"):
        find(name)
    for game in (envs.make("kuhn_poker"), envs.make("gin_rummy", preset="eaai")):
        with pytest.raises(InputError, match=f"{game.name} by these rules has none"):
            find_player(name, game)
