"""Whether a tree is that of a game: compared along histories drawn at random."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from dream.game_tree.tree import TERMINAL, Tree
from envs import EnumerableGame

_WALKS = 48


def agrees(tree: Tree, game: EnumerableGame, walks: int = _WALKS) -> bool:
    """Returns whether a tree says what a game does along some random histories, each to its end.

    At every history: who is to act, what is legal, the view, and of one action all outcomes with their probabilities,
    rewards and ends.

    Args:
      tree: perhaps of another game, or damaged.
      game: the game.
      walks: histories drawn; other ones each time.
    """
    try:
        return _walk(tree, game, walks)
    except (IndexError, ValueError, TypeError, KeyError, AttributeError):
        return False  # arrays that do not fit together


def _walk(tree: Tree, game: EnumerableGame, walks: int) -> bool:
    rng = np.random.default_rng()
    roots, chance = jax.device_get(jax.jit(lambda: game.initial_outcomes())())
    chance = _normalised(chance)
    if tree.levels[1] != len(chance) or not np.array_equal(tree.chance[: len(chance)], chance):
        return False
    look = jax.jit(jax.vmap(lambda s: (s.current_player, game.legal_actions(s), game.view(s, s.current_player))))
    play = jax.jit(jax.vmap(game.outcomes))
    at = rng.integers(len(chance), size=walks)
    states = jax.tree.map(lambda x: x[at], roots)
    for _ in range(game.max_length + 1):
        seen = jax.device_get(look(states))
        over = tree.infoset[at] == TERMINAL
        if not np.array_equal(over, seen[0] < 0) or not _same_decisions(tree, at[~over], seen, ~over):
            return False
        if over.all():
            return True
        actions = np.array([rng.choice(np.flatnonzero(row)) if row.any() else 0 for row in seen[1]], np.int32)
        outcomes = jax.device_get(play(states, actions))
        chosen = [0 if over[n] else _child(tree, at[n], n, actions[n], outcomes, rng) for n in range(walks)]
        if None in chosen:
            return False
        places = np.array([0 if over[n] else chosen[n][0] for n in range(walks)])
        keep = np.arange(walks)[~over]
        states = jax.tree.map(
            lambda old, new, keep=keep, places=places: _replaced(old, keep, new[keep, places[keep]]),
            states,
            outcomes[0],
        )
        at = np.array([at[n] if over[n] else chosen[n][1] for n in range(walks)])
    return False


def _same_decisions(tree: Tree, at: np.ndarray, seen: tuple[Any, ...], rows: np.ndarray) -> bool:
    """Returns whether players, legal actions and views at some histories of the tree are those seen in the game."""
    player, legal, view = jax.tree.map(lambda x: x[rows], seen)
    sets = tree.infoset[at]
    stored = jax.tree.map(lambda x: x[sets], tree.views)
    same = jax.tree.map(lambda a, b: a.dtype == b.dtype and np.array_equal(a, b), stored, view)
    return (
        np.array_equal(tree.player[at], player)
        and np.array_equal(tree.legal[sets], legal)
        and np.array_equal(tree.owner[sets], player)
        and all(jax.tree.leaves(same))
    )


def _child(
    tree: Tree, at: int, row: int, action: int, outcomes: tuple[Any, ...], rng: np.random.Generator
) -> tuple[int, int] | None:
    """Draws an outcome of an action: its place among the game's and the history in the tree; None if they differ."""
    _, probs, rewards, done = (x if n == 0 else x[row] for n, x in enumerate(outcomes))
    probs = _normalised(probs)
    possible = np.flatnonzero(probs > 0)
    children = np.arange(*np.searchsorted(tree.parent, [at, at + 1]))
    children = children[tree.action[children] == action]
    same = (
        len(children) == len(possible)
        and np.array_equal(tree.chance[children], tree.chance[at] * probs[possible])
        and np.array_equal(tree.payoff[children], tree.payoff[at] + rewards[possible].astype(np.float64))
        and np.array_equal(tree.infoset[children] == TERMINAL, done[possible])
    )
    if not same:
        return None
    n = int(rng.integers(len(possible)))
    return int(possible[n]), int(children[n])


def _normalised(probs: np.ndarray) -> np.ndarray:
    """Returns float32 probabilities as the tree holds them: float64 that sum to one."""
    probs = np.asarray(probs).astype(np.float64)
    return probs / probs.sum(axis=-1, keepdims=True)


def _replaced(old: np.ndarray, rows: np.ndarray, new: np.ndarray) -> np.ndarray:
    changed = np.array(old)
    changed[rows] = new
    return changed
