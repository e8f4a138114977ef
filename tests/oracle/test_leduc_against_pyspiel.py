"""Leduc poker in lockstep with OpenSpiel's on every history, a level of the tree at a time."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any

import jax
import numpy as np
import pyspiel
import pytest
import tree_walk

import envs

GAME = envs.make("leduc_poker")
CHUNK = 1_024
SEATS = np.arange(2, dtype=np.int32)
_each = functools.partial(tree_walk.each, chunk=CHUNK)


@dataclasses.dataclass(frozen=True)
class Tree:
    """All histories but those where chance acts, and the moves between them.

    Attributes:
      states: our states, [N, ...].
      spiel: OpenSpiel's, N of them.
      legal: bool[N, 3].
      rewards, done: float32[N, 2] and bool[N], what the step to the history gave.
      chance: float64[N], probability of chance's share in our game; spiel_chance, in OpenSpiel's.
      reach: float64[N], probability under uniform play.
      parents, actions: int[N], the history before and the action there; -1 for a deal.
    """

    states: Any
    spiel: list[Any]
    legal: np.ndarray
    rewards: np.ndarray
    done: np.ndarray
    chance: np.ndarray
    spiel_chance: np.ndarray
    reach: np.ndarray
    parents: np.ndarray
    actions: np.ndarray

    @functools.cached_property
    def keys(self) -> list[list[bytes]]:
        """Returns the bytes of each seat's view of every history: [2][N]."""
        views = _each(_views, self.states)
        raw = np.concatenate([x.reshape(*x.shape[:2], -1) for x in views], axis=2)
        return [[row.tobytes() for row in raw[:, seat]] for seat in SEATS]


def _views(state: Any) -> Any:
    return jax.vmap(lambda seat: GAME.view(state, seat))(SEATS)


def _observations(state: Any) -> Any:
    return jax.vmap(lambda seat: GAME.observe(state, seat))(SEATS)


def _apply(spiel: Any, action: int) -> tuple[Any, float]:
    """Returns the state after an action and, where chance took it, its probability."""
    prob = dict(spiel.chance_outcomes())[action] if spiel.is_chance_node() else 1.0
    return spiel.child(action), prob


def _deals() -> dict[str, Any]:
    """Returns the tree's first level, by the names of Tree."""
    states, probs = jax.device_get(GAME.initial_outcomes())
    spiel, chances = [], []
    for one, two in states.hands.tolist():
        first, prob = _apply(pyspiel.load_game("leduc_poker").new_initial_state(), one)
        second, other = _apply(first, two)
        spiel.append(second)
        chances.append(prob * other)
    size, probs = len(probs), np.float64(probs)
    nobody = np.full(size, -1)
    level = {"states": states, "spiel": spiel, "rewards": np.zeros((size, 2)), "done": np.zeros(size, bool)}
    level |= {"chance": probs, "spiel_chance": np.array(chances), "reach": probs}
    return level | {
        "legal": _each(GAME.legal_actions, states),
        "parents": nobody,
        "places": np.arange(size),
        "actions": nobody,
    }


def _next(level: dict[str, Any]) -> dict[str, Any]:
    """Returns the level below; its parents count from the tree's first history."""
    found = tree_walk.below(GAME, level["states"], level["legal"], chunk=CHUNK)
    spiel, chances = [], []
    moves = zip(found.parents, found.actions.tolist(), found.branches, found.states.public.tolist(), strict=True)
    for parent, action, branches, public in moves:
        after, prob = level["spiel"][parent].child(action), 1.0
        assert after.is_chance_node() == (branches > 1)
        if after.is_chance_node():
            after, prob = _apply(after, public)
        spiel.append(after)
        chances.append(prob)
    parents = found.parents
    return {
        "states": found.states,
        "spiel": spiel,
        "legal": _each(GAME.legal_actions, found.states),
        "rewards": found.rewards,
        "done": found.done,
        "chance": level["chance"][parents] * found.chance,
        "spiel_chance": level["spiel_chance"][parents] * chances,
        "reach": level["reach"][parents] * found.chance / level["legal"][parents].sum(axis=1),
        "parents": level["places"][parents],
        "places": level["places"][-1] + 1 + np.arange(len(spiel)),
        "actions": found.actions,
    }


@pytest.fixture(scope="module")
def tree() -> Tree:
    """The whole game."""
    whole = tree_walk.levels(_deals(), _next)
    del whole["places"]
    return Tree(**whole)


def test_counts(tree: Tree) -> None:
    """9,300 histories where a player acts or the hand is over (9,457 with the 157 where chance acts); 936 sets."""
    assert len(tree.spiel) == 9_300
    assert tree.done.sum() == 5_520
    turned = np.flatnonzero((tree.states.round == 1) & (tree.states.turn == 0))
    before_public = set(zip(tree.parents[turned].tolist(), tree.actions[turned].tolist(), strict=True))
    assert len(tree.spiel) + 1 + 6 + len(before_public) == 9_457
    acting = tree.states.current_player
    assert len({tree.keys[acting[n]][n] for n in np.flatnonzero(~tree.done)}) == 936


def test_player_legal_actions_and_returns(tree: Tree) -> None:
    """Equal on every history; rewards come with the last action alone."""
    over = [spiel.is_terminal() for spiel in tree.spiel]
    assert tree.done.tolist() == over
    players = [-1 if spiel.is_terminal() else spiel.current_player() for spiel in tree.spiel]
    assert tree.states.current_player.tolist() == players
    assert [np.flatnonzero(row).tolist() for row in tree.legal] == [spiel.legal_actions() for spiel in tree.spiel]
    assert tree.rewards.tolist() == [spiel.returns() if spiel.is_terminal() else [0, 0] for spiel in tree.spiel]


def test_chance(tree: Tree) -> None:
    """What chance contributes to the probability of every history is OpenSpiel's."""
    np.testing.assert_allclose(tree.chance, tree.spiel_chance, rtol=1e-6)
    assert tree.reach[tree.done].sum() == pytest.approx(1, abs=1e-6)


def test_observation_is_the_information_state_tensor(tree: Tree) -> None:
    """Of both players, on every history."""
    ours = _each(_observations, tree.states)
    for seat in range(2):
        theirs = np.array([spiel.information_state_tensor(seat) for spiel in tree.spiel], np.float32)
        np.testing.assert_array_equal(ours[:, seat], theirs)


def test_a_view_is_an_information_set(tree: Tree) -> None:
    """A player's views are equal exactly where OpenSpiel's information-state strings are, whoever is to act."""
    for seat in range(2):
        in_play = np.flatnonzero(~tree.done)
        pairs = {(tree.keys[seat][n], tree.spiel[n].information_state_string(seat)) for n in in_play}
        assert len(pairs) == len({key for key, _ in pairs}) == len({text for _, text in pairs})


def test_a_public_card_lying_ready_changes_nothing_before_it_is_turned(tree: Tree) -> None:
    """With it decided, as `init` deals it, views and legal actions stay and `step` does what `outcomes` said."""
    children = np.flatnonzero(tree.parents >= 0)
    before, after = (jax.tree.map(lambda x, n=n: x[n], tree.states) for n in (tree.parents[children], children))
    held = before.hands[:, :, None] == np.arange(6)
    unheld = np.argmin(held.any(axis=1), axis=1)
    ready = np.where(before.public >= 0, before.public, np.where(after.public >= 0, after.public, unheld))
    ready = ready.astype(np.int32)
    with_card = dataclasses.replace(before, public=ready)
    assert np.sum(before.public < 0) > 800
    jax.tree.map(np.testing.assert_array_equal, _each(_views, with_card), _each(_views, before))
    np.testing.assert_array_equal(_each(GAME.legal_actions, with_card), tree.legal[tree.parents[children]])
    stepped, rewards, done = _each(GAME.step, with_card, tree.actions[children].astype(np.int32))
    jax.tree.map(np.testing.assert_array_equal, stepped, dataclasses.replace(after, public=ready))
    np.testing.assert_array_equal(rewards, tree.rewards[children])
    np.testing.assert_array_equal(done, tree.done[children])


def test_a_deck_deals_its_first_three_cards(tree: Tree) -> None:
    """from_deck makes the states initial_outcomes lists, with the public card face down."""
    decks = np.array(list(itertools.permutations(range(6))), np.int32)
    dealt = _each(GAME.from_deck, decks)
    deals = jax.tree.map(lambda x: x[tree.parents < 0], tree.states)
    which = np.argmax((decks[:, None, :2] == deals.hands).all(axis=2), axis=1)
    expected = dataclasses.replace(jax.tree.map(lambda x: x[which], deals), public=decks[:, 2])
    jax.tree.map(np.testing.assert_array_equal, dealt, expected)


def test_random_play_returns_what_the_tree_says(tree: Tree) -> None:
    """From random deals: the mean and the rate of every result within four standard errors of the exact ones."""
    rates = tree_walk.result_rates(tree.rewards[tree.done, 0], tree.reach[tree.done])
    tree_walk.assert_random_play_has(GAME, rates, seed=71)
