"""Liar's dice in lockstep with OpenSpiel's on every history, a level of the tree at a time."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import numpy as np
import pyspiel
import pytest
import tree_walk

import envs
from envs.random_play import play_random

GAME = envs.make("liars_dice")
NUM_GAMES = 1 << 17
NUM_TENSORS = 8_000
CHUNK = 8_192
SEATS = np.arange(2, dtype=np.int32)
_each = functools.partial(tree_walk.each, chunk=CHUNK)


@dataclasses.dataclass(frozen=True)
class Tree:
    """All histories but those of the roll.

    Attributes:
      states: our states, [N, ...].
      spiel: OpenSpiel's, N of them.
      legal: bool[N, 13].
      rewards, done: float32[N, 2] and bool[N], what the step to the history gave.
      reach: float64[N], probability under uniform play.
    """

    states: Any
    spiel: list[Any]
    legal: np.ndarray
    rewards: np.ndarray
    done: np.ndarray
    reach: np.ndarray


def _views(state: Any) -> Any:
    return jax.vmap(lambda seat: GAME.view(state, seat))(SEATS)


def _observations(state: Any) -> Any:
    return jax.vmap(lambda seat: GAME.observe(state, seat))(SEATS)


def _rolled(dice: list[int]) -> tuple[Any, float]:
    """Returns OpenSpiel's state after a roll, and its probability."""
    spiel, prob = pyspiel.load_game("liars_dice").new_initial_state(), 1.0
    for face in dice:
        prob *= dict(spiel.chance_outcomes())[face - 1]
        spiel.apply_action(face - 1)
    return spiel, prob


def _next(level: dict[str, Any]) -> dict[str, Any]:
    """Returns the level below."""
    found = tree_walk.below(GAME, level["states"], level["legal"], chunk=CHUNK)
    assert np.all(found.branches == 1)
    assert np.all(found.chance == 1)
    moves = zip(found.parents.tolist(), found.actions.tolist(), strict=True)
    return {
        "states": found.states,
        "spiel": [level["spiel"][parent].child(action) for parent, action in moves],
        "legal": _each(GAME.legal_actions, found.states),
        "rewards": found.rewards,
        "done": found.done,
        "reach": level["reach"][found.parents] / level["legal"][found.parents].sum(axis=1),
    }


@pytest.fixture(scope="module")
def tree() -> Tree:
    """The whole game."""
    states, probs = jax.device_get(GAME.initial_outcomes())
    spiel, theirs = zip(*map(_rolled, states.dice.tolist()), strict=True)
    np.testing.assert_allclose(probs, theirs, rtol=1e-6)
    size = len(probs)
    rolls = {"states": states, "spiel": list(spiel), "legal": _each(GAME.legal_actions, states)}
    rolls |= {"rewards": np.zeros((size, 2)), "done": np.zeros(size, bool), "reach": np.float64(probs)}
    return Tree(**tree_walk.levels(rolls, _next))


@pytest.fixture(scope="module")
def keys(tree: Tree) -> np.ndarray:
    """The bytes of both seats' views of every history: uint8[N, 2, 4]."""
    views = [x.reshape(len(tree.spiel), 2, 1) for x in _each(_views, tree.states)]
    return np.concatenate([x.view(np.uint8) for x in views], axis=2)


def test_counts(tree: Tree, keys: np.ndarray) -> None:
    """294,876 histories where a player acts or the game is over (294,883 with the 7 of the roll); 24,576 sets."""
    assert len(tree.spiel) == 294_876
    assert tree.done.sum() == 147_420
    assert len(tree.spiel) + 1 + len(np.unique(tree.states.dice[:, 0])) == 294_883
    in_play = np.flatnonzero(~tree.done)
    assert len(np.unique(keys[in_play, tree.states.current_player[in_play]], axis=0)) == 24_576


def test_player_legal_actions_and_returns(tree: Tree) -> None:
    """Equal on every history; rewards come with the last action alone."""
    assert tree.done.tolist() == [spiel.is_terminal() for spiel in tree.spiel]
    players = [-1 if spiel.is_terminal() else spiel.current_player() for spiel in tree.spiel]
    assert tree.states.current_player.tolist() == players
    theirs = np.zeros_like(tree.legal)
    for row, spiel in zip(theirs, tree.spiel, strict=True):
        row[spiel.legal_actions()] = True
    np.testing.assert_array_equal(tree.legal, theirs)
    np.testing.assert_array_equal(tree.rewards, [spiel.returns() for spiel in tree.spiel])


def test_observation_is_the_information_state_tensor(tree: Tree) -> None:
    """Of both players, on 8,000 random histories."""
    some = np.random.default_rng(5).choice(len(tree.spiel), NUM_TENSORS, replace=False)
    ours = _each(_observations, jax.tree.map(lambda x: x[some], tree.states))
    for seat in range(2):
        theirs = np.array([tree.spiel[n].information_state_tensor(seat) for n in some], np.float32)
        np.testing.assert_array_equal(ours[:, seat], theirs)


def test_a_view_is_an_information_set(tree: Tree, keys: np.ndarray) -> None:
    """A player's views are equal exactly where OpenSpiel's information-state strings are, whoever is to act."""
    in_play = np.flatnonzero(~tree.done)
    for seat in range(2):
        pairs = {(keys[n, seat].tobytes(), tree.spiel[n].information_state_string(seat)) for n in in_play}
        assert len(pairs) == len({key for key, _ in pairs}) == len({text for _, text in pairs})


def test_random_play_returns_what_the_tree_says(tree: Tree) -> None:
    """From random rolls: the rate at which player 0 wins is within four standard errors of the exact one."""
    assert tree.reach[tree.done].sum() == pytest.approx(1, abs=1e-6)
    rate = tree.reach[tree.done & (tree.rewards[:, 0] == 1)].sum()
    played = play_random(GAME, jax.random.key(72), NUM_GAMES)
    assert played.decided == NUM_GAMES
    won = (float(played.rewards[0]) / NUM_GAMES + 1) / 2
    assert abs(won - rate) < 4 * (rate * (1 - rate) / NUM_GAMES) ** 0.5
