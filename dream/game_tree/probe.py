"""Whether a tree is that of a game: a small one as a whole, a large one along histories drawn from it."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import numpy as np

from dream.game_tree.tree import TERMINAL, Tree, decisions, first_histories, possible_outcomes
from envs import EnumerableGame

_WHOLE = 500_000
"""Histories of a tree of which all are compared."""
_ENDS = 1024
"""Ends drawn of a larger tree."""


def agrees(tree: Tree, game: EnumerableGame, *, whole: int = _WHOLE, ends: int = _ENDS) -> bool:
    """Returns whether a tree says what a game does.

    At every history compared: who is to act, what is legal, the view, and of all actions all outcomes with their
    probabilities, rewards and ends.

    Args:
      tree: perhaps of another game, or damaged.
      game: the game.
      whole: histories up to which all are compared.
      ends: drawn anew each time of a larger tree, whose histories on the way there are compared.
    """
    try:
        if not _in_order(tree):
            return False
        needed = np.ones(tree.num_histories, bool) if tree.num_histories <= whole else _on_the_way(tree, ends)
        return _walk(tree, game, needed)
    except (IndexError, ValueError, TypeError, KeyError, AttributeError):
        return False  # arrays that do not fit together, or a game that building refuses


def _in_order(tree: Tree) -> bool:
    """Returns whether levels follow one another and hold all histories, the children of one level in the next."""
    levels, parent = tree.levels, tree.parent
    starts = np.repeat(levels[:-1], np.diff(levels))
    return levels[0] == 0 and levels[-1] == len(parent) == len(starts) and bool(np.all(parent < starts))


def _on_the_way(tree: Tree, ends: int) -> np.ndarray:
    """Returns which histories lead to some ends, bool[N]: half drawn evenly, half evenly over the payoffs there are."""
    rng = np.random.default_rng()
    over = np.flatnonzero(tree.infoset == TERMINAL)
    _, kind = np.unique(tree.payoff[over], axis=0, return_inverse=True)
    share = 1 / np.bincount(kind.reshape(-1))[kind.reshape(-1)]
    at = np.concatenate([rng.choice(over, ends // 2), rng.choice(over, ends - ends // 2, p=share / share.sum())])
    needed = np.zeros(tree.num_histories, bool)
    while len(at):
        needed[at] = True
        at = np.unique(tree.parent[at])
        at = at[at >= 0]
    return needed


def _walk(tree: Tree, game: EnumerableGame, needed: np.ndarray) -> bool:
    """Returns whether tree and game agree at some histories, with which those before them are given: bool[N]."""
    states, chance = first_histories(game)
    first = np.arange(len(chance))
    if tree.levels[1] != len(chance) or not np.array_equal(tree.chance[first], chance) or tree.payoff[first].any():
        return False
    at, states = first[needed[first]], _taken(states, needed[first])
    for low, high in itertools.pairwise([*tree.levels[1:], tree.num_histories]):
        going = tree.infoset[at] != TERMINAL
        if np.any(tree.player[at[~going]] != TERMINAL):
            return False
        at, states = at[going], _taken(states, going)
        if not len(at):
            return True
        seen = decisions(game, states, len(at))
        if not _same_decisions(tree, at, seen):
            return False
        row, action = np.nonzero(seen[1])
        after, pair, *came = possible_outcomes(game, states, row, action)
        children = _same_children(tree, at, low, high, (row[pair], action[pair], *came))
        if children is None:
            return False
        at, states = children[needed[children]], _taken(after, needed[children])
    return not len(at)


def _taken(states: Any, which: np.ndarray) -> Any:
    return jax.tree.map(lambda x: x[which], states)


def _same_decisions(tree: Tree, at: np.ndarray, seen: tuple[np.ndarray, np.ndarray, Any]) -> bool:
    """Returns whether players, legal actions and views at some histories of the tree are those seen in the game."""
    player, legal, view = seen
    sets = tree.infoset[at]
    stored = _taken(tree.views, sets)
    same = jax.tree.map(lambda a, b: a.dtype == b.dtype and np.array_equal(a, b), stored, view)
    return (
        np.array_equal(tree.player[at], player)
        and np.array_equal(tree.legal[sets], legal)
        and np.array_equal(tree.owner[sets], player)
        and all(jax.tree.leaves(same))
    )


def _same_children(tree: Tree, at: np.ndarray, low: int, high: int, came: tuple[np.ndarray, ...]) -> np.ndarray | None:
    """Returns the children of some histories of one level; None where the tree has others than the game.

    Args:
      tree: perhaps of another game.
      at: the histories, ascending.
      low, high: where the next level starts and ends.
      came: of each child in order the place of its parent in `at`, the action, probability, rewards, and end.
    """
    row, action, probs, rewards, done = came
    count = np.bincount(row, minlength=len(at))
    first, last = (low + np.searchsorted(tree.parent[low:high], at, side) for side in ("left", "right"))
    if not np.array_equal(last - first, count):
        return None
    children = np.repeat(first - np.cumsum(count) + count, count) + np.arange(len(row))
    parent = at[row]
    same = (
        np.array_equal(tree.parent[children], parent)
        and np.array_equal(tree.action[children], action)
        and np.array_equal(tree.chance[children], tree.chance[parent] * probs)
        and np.array_equal(tree.payoff[children], tree.payoff[parent] + rewards.astype(np.float64))
        and np.array_equal(tree.infoset[children] == TERMINAL, done)
    )
    return children if same else None
