"""The dueling agent's two updates with exact advantages and no network: one cycles, the accumulating one converges."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import jax
import numpy as np
from tree_values import action_values, tree_of

from dream.equations.mirror_descent import mirror_descent_policy
from dream.equations.regret_matching import soft_regret_matching
from dream.game_tree.sequence_form import nash_conv
from dream.game_tree.tree import Tree

_MIRROR, _SOFT = jax.jit(mirror_descent_policy), jax.jit(soft_regret_matching)


def _advantages(tree: Tree, table: np.ndarray) -> np.ndarray:
    """Returns A(I, a) under a policy, given that I is reached: float64[I, A], 0 where illegal."""
    reach = np.ones((tree.num_histories, 2))
    for low, high in itertools.pairwise(tree.levels[1:]):
        up = tree.parent[low:high]
        reach[low:high] = reach[up]
        reach[np.arange(low, high), tree.player[up]] *= table[tree.infoset[up], tree.action[low:high]]
    playing = np.flatnonzero(tree.infoset >= 0)
    sets, owner = tree.infoset[playing], tree.player[playing]
    weight = tree.chance[playing] * reach[playing, 1 - owner]
    sums, total = np.zeros_like(table), np.zeros(len(table))
    np.add.at(sums, sets, (weight * np.where(owner == 0, 1, -1))[:, None] * action_values(tree, table)[playing])
    np.add.at(total, sets, weight)
    q = sums / np.maximum(total, 1e-300)[:, None]
    return np.where(tree.legal, q - np.sum(table * q, axis=1, keepdims=True), 0.0)


def _play(tree: Tree, update: Callable[[int, np.ndarray, np.ndarray], np.ndarray], iterations: int) -> np.ndarray:
    """Returns the exploitability of every 50th policy of an update (t, policy, advantages) -> policy."""
    table, found = tree.uniform(), []
    for t in range(iterations):
        table = np.asarray(update(t, table, _advantages(tree, table)), np.float64)
        table /= table.sum(axis=1, keepdims=True)
        if (t + 1) % 50 == 0:
            found.append(nash_conv(tree, table) / 2)
    return np.array(found)


def _accumulating(tree: Tree, iterations: int, eta: tuple[float, float], alpha: tuple[float, float]) -> np.ndarray:
    def at(ends: tuple[float, float], t: int) -> float:
        return ends[0] + (ends[1] - ends[0]) * t / iterations

    def update(t: int, table: np.ndarray, advantages: np.ndarray) -> np.ndarray:
        return _MIRROR(table, advantages, tree.legal, eta=at(eta, t), alpha=at(alpha, t))

    return _play(tree, update, iterations)


def _documents(tree: Tree, iterations: int) -> np.ndarray:
    """The document's update: a moving average of the advantages, temperature 2.0 to 0.1 over 400 iterations."""
    mean = np.zeros(tree.legal.shape)

    def update(t: int, table: np.ndarray, advantages: np.ndarray) -> np.ndarray:
        nonlocal mean
        mean = 0.9 * mean + 0.1 * advantages
        return _SOFT(mean, tree.legal, max(2.0 - 1.9 * t / 400, 0.1))

    return _play(tree, update, iterations)


def test_accumulating_converges_on_kuhn() -> None:
    """500 iterations; uniform play 0.458 chips, measured 0.0049."""
    found = _accumulating(tree_of("kuhn_poker"), 500, (0.1, 0.1), (0.2, 0.02))
    assert found[-1] < 0.01
    assert found[-1] < found[4] < found[0]


def test_accumulating_converges_on_leduc_where_the_document_cycles() -> None:
    """Uniform play 2.37 chips. Measured after 400 iterations 0.057; the document's 0.17 after 350, then 1.4 and 1.8."""
    tree = tree_of("leduc_poker")
    ours, theirs = _accumulating(tree, 400, (0.1, 0.02), (0.4, 0.08)), _documents(tree, 450)
    assert ours[-1] < 0.08
    assert ours[-1] < ours[3] < ours[0]
    assert theirs[-1] > 1.0
    assert theirs[-1] > 3 * theirs.min()
    assert ours[-1] < theirs.min()
