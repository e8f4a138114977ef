"""All trajectories of a small game as outcome sampling plays them, and what estimators of them are expected to be.

Every history that ends a game is one lane, weighted by the probability that it is sampled.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from tree_values import action_values

from dream.game_tree.tree import Tree

EXPLORATION = 0.5
"""Share of uniform play in what the updated player's actions are drawn from, unless a test asks for another."""


class Lanes(NamedTuple):
    """All trajectories, [T, lanes, ...]; `chance` float64[lanes] is the probability of being sampled."""

    history: np.ndarray
    infoset: np.ndarray
    own: np.ndarray
    valid: np.ndarray
    done: np.ndarray
    action: np.ndarray
    legal: np.ndarray
    policy: np.ndarray
    sampled: np.ndarray
    rewards: np.ndarray
    chance: np.ndarray


class Paths(NamedTuple):
    """The way to every end of a game, [T, lanes]; `done` from the last decision on; ends: the last ones."""

    history: np.ndarray
    action: np.ndarray
    valid: np.ndarray
    done: np.ndarray
    ends: np.ndarray


def paths_of(tree: Tree) -> Paths:
    """Lays out every way to an end."""
    ends = np.flatnonzero(tree.infoset < 0)
    paths = []
    for end in ends:
        path, at = [], end
        while tree.parent[at] >= 0:
            path.append((tree.parent[at], tree.action[at]))
            at = tree.parent[at]
        paths.append(path[::-1])
    steps = max(map(len, paths))
    history, action = (np.zeros((steps, len(ends)), int) for _ in range(2))
    valid = np.zeros(history.shape, bool)
    for lane, path in enumerate(paths):
        for t, (at, taken) in enumerate(path):
            history[t, lane], action[t, lane], valid[t, lane] = at, taken, True
    done = ~valid
    done[[len(path) - 1 for path in paths], np.arange(len(ends))] = True
    return Paths(history, action, valid, done, ends)


def random_table(tree: Tree, seed: int) -> np.ndarray:
    """Returns a policy with some actions it never plays: float64[I, A]."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(0.1, 1.0, tree.legal.shape) * tree.legal
    for row, legal in zip(rows, tree.legal, strict=True):
        if rng.uniform() < 0.3:
            row[rng.choice(np.flatnonzero(legal))] = 0.0
    return rows / rows.sum(axis=1, keepdims=True)


def lanes_of(tree: Tree, table: np.ndarray, player: int, exploration: float = EXPLORATION) -> Lanes:
    """Lays out every trajectory with what is drawn from when `player`'s regrets are sampled."""
    history, action, valid, done, ends = paths_of(tree)
    infoset = np.where(valid, tree.infoset[history], 0)
    own = valid & (tree.owner[infoset] == player)
    legal, policy = tree.legal[infoset], table[infoset]
    uniform = legal / legal.sum(axis=-1, keepdims=True)
    sampled = np.where(own[..., None], exploration * uniform + (1 - exploration) * policy, policy)
    drawn = np.where(valid, np.take_along_axis(sampled, action[..., None], axis=-1)[..., 0], 1.0)
    rewards = np.where(done & valid, tree.payoff[ends, player], 0.0)
    chance = tree.chance[ends] * drawn.prod(axis=0)
    sampled = np.where(valid[..., None], sampled, 1.0)
    met = chance > 0
    columns = (history, infoset, own, valid, done, action, legal, policy, sampled, rewards)
    return Lanes(*(x[:, met] for x in columns), chance[met])


def baseline_at(kind: str, tree: Tree, table: np.ndarray, lanes: Lanes, player: int) -> np.ndarray:
    """Returns b(h, a) to the player: 0, wrong by several payoffs, or exact: float64[T, lanes, A]."""
    if kind == "none":
        return np.zeros(lanes.legal.shape)
    sign = 1.0 if player == 0 else -1.0
    if kind == "exact":
        return np.where(lanes.legal, sign * action_values(tree, table)[lanes.history], 0.0)
    return wrong_values(tree)[lanes.history]


def wrong_values(tree: Tree) -> np.ndarray:
    """Returns a value of each action at each history that is off by several payoffs: float64[N, A]."""
    return np.random.default_rng(7).normal(0.5, 3.0, (tree.num_histories, tree.legal.shape[-1]))


def expected_at(tree: Tree, table: np.ndarray, lanes: Lanes, player: int, baseline: np.ndarray) -> np.ndarray:
    """Returns what a baseline of histories expects of each action taken, chance averaged out: float64[T, lanes]."""
    expected_baseline = np.where(tree.infoset < 0, tree.payoff[:, player], 0.0)
    playing = tree.infoset >= 0
    expected_baseline[playing] = (table[tree.infoset[playing]] * baseline[: tree.num_histories][playing]).sum(axis=1)
    later = np.arange(tree.levels[1], tree.num_histories)
    up, expected = tree.parent[later], np.zeros(baseline.shape)
    np.add.at(expected, (up, tree.action[later]), tree.chance[later] / tree.chance[up] * expected_baseline[later])
    return np.where(lanes.valid, expected[lanes.history, lanes.action], 0.0)


def expected(tree: Tree, lanes: Lanes, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Returns the expectation, by information set, of the sum of weighted rows at own decisions: float64[I, A]."""
    total = np.zeros(tree.legal.shape)
    weight = np.where(lanes.own, weights * lanes.chance, 0.0)
    np.add.at(total, lanes.infoset, weight[..., None] * rows)
    return total


def traced_regrets(
    tree: Tree, table: np.ndarray, player: int, baseline: np.ndarray, trace: float, clip: float | None,
    exploration: float = EXPLORATION,
) -> np.ndarray:  # fmt: skip
    """Returns what traced regrets are on average, by recursion over histories instead of trajectories.

    With E the mean of what follows an action, chance averaged out, and D = E - b:

        own decisions:      u(h, a) = b + min(1, clip xi) D,   u(h) = sum over a of sigma b + trace min(xi, sigma) D,
        the other player's:                                    u(h) = sum over a of sigma (b + trace D).

    Args:
      tree, table, player: the game, both players' policies, and whose regrets.
      baseline: b(h, a) to the player, float64[N, A].
      trace, clip: of the corrections.
      exploration: as the games are sampled.
    Returns:
      Counterfactual regrets, float64[I, A].
    """
    actions = tree.legal.shape[-1]
    mean, u = np.where(tree.infoset < 0, tree.payoff[:, player], 0.0), np.zeros((tree.num_histories, actions))
    follows = np.zeros_like(u)
    for low, high in reversed(list(itertools.pairwise(tree.levels))):
        at = np.arange(low, high)[tree.infoset[low:high] >= 0]
        sets = tree.infoset[at]
        sigma, legal, b, own = table[sets], tree.legal[sets], baseline[at], (tree.owner[sets] == player)[:, None]
        xi = exploration * legal / legal.sum(axis=1, keepdims=True) + (1 - exploration) * sigma
        off = np.where(legal, follows[at] - b, 0.0)
        corrected = np.ones_like(xi) if clip is None else np.minimum(1.0, clip * xi)
        passed = np.where(own & (clip is not None), np.minimum(xi, sigma), sigma)
        u[at] = np.where(legal, b + corrected * off, 0.0)
        mean[at] = np.sum(np.where(legal, sigma * b, 0.0) + trace * passed * off, axis=1)
        if low:
            up = tree.parent[low:high]
            share = tree.chance[low:high] / tree.chance[up] * mean[low:high]
            np.add.at(follows, (up, tree.action[low:high]), share)
    return _counterfactual(tree, table, player, u)


def _counterfactual(tree: Tree, table: np.ndarray, player: int, u: np.ndarray) -> np.ndarray:
    """Returns the regrets of action values by history, weighted by chance and the other player's reach."""
    reach, regrets = np.array(tree.chance, float), np.zeros(tree.legal.shape)
    others = np.ones(tree.num_histories)
    for low, high in itertools.pairwise(tree.levels[1:]):
        up = tree.parent[low:high]
        theirs = tree.owner[tree.infoset[up]] != player
        others[low:high] = others[up] * np.where(theirs, table[tree.infoset[up], tree.action[low:high]], 1.0)
    at = np.flatnonzero(tree.infoset >= 0)
    at = at[tree.owner[tree.infoset[at]] == player]
    sets = tree.infoset[at]
    rows = np.where(tree.legal[sets], u[at] - np.sum(table[sets] * u[at], axis=1, keepdims=True), 0.0)
    np.add.at(regrets, sets, (reach * others)[at][:, None] * rows)
    return regrets
