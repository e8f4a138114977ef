"""Are advantages by a critic of histories unbiased with exact values, and how much less do they vary than GAE's?

Every history that ends a game is one lane, weighted by the probability that self-play reaches it.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import numpy as np
import pytest
from trajectories import paths_of
from tree_values import action_values, mean_by_set, tree_of

from dream.equations.returns import expected_sarsa, lambda_returns
from dream.game_tree.tree import Tree

GAMES = ("kuhn_poker", "leduc_poker")
LAMBDAS = (0.0, 0.6, 1.0)


class Lanes(NamedTuple):
    """All games, [T, lanes]; `chance` float64[lanes] is the probability of being played."""

    history: np.ndarray
    action: np.ndarray
    valid: np.ndarray
    done: np.ndarray
    rewards: np.ndarray
    chance: np.ndarray


@functools.cache
def _table(name: str, seed: int = 3) -> np.ndarray:
    """Returns a random policy that plays every action: float64[I, A]."""
    tree = tree_of(name)
    rows = np.random.default_rng(seed).uniform(0.1, 1.0, tree.legal.shape) * tree.legal
    return rows / rows.sum(axis=1, keepdims=True)


@functools.cache
def _lanes(name: str) -> Lanes:
    tree, table = tree_of(name), _table(name)
    history, action, valid, done, ends = paths_of(tree)
    drawn = np.where(valid, table[tree.infoset[history], action], 1.0)
    rewards = np.where(done & valid, tree.payoff[ends, 0], 0.0)
    return Lanes(history, action, valid, done, rewards, tree.chance[ends] * drawn.prod(axis=0))


def _by_critic(name: str, q: np.ndarray, gae_lambda: float) -> np.ndarray:
    """Returns A to player 0 of every decision, from Q of histories float64[N + 1, A]: float64[T, lanes]."""
    tree, lanes = tree_of(name), _lanes(name)
    values = np.sum(_table(name)[tree.infoset[lanes.history]] * q[lanes.history], axis=-1)
    taken = q[lanes.history, lanes.action]
    stream = functools.partial(expected_sarsa, discount=1.0, gae_lambda=gae_lambda)
    with jax.enable_x64(True):
        returns = jax.jit(jax.vmap(stream, 1, 1))(lanes.rewards, lanes.done, taken, values)
    return np.asarray(returns) - values


def _means(name: str, samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns samples' mean and variance given the information set and the action: float64[I, A] each, by reach."""
    tree, lanes = tree_of(name), _lanes(name)
    at = (tree.infoset[lanes.history], lanes.action)
    weights = np.where(lanes.valid, lanes.chance, 0.0)
    mass, total, squares = (np.zeros(tree.legal.shape) for _ in range(3))
    for into, x in ((mass, 1.0), (total, samples), (squares, samples**2)):
        np.add.at(into, at, weights * x)
    mean = total / np.maximum(mass, 1e-300)
    return mean, squares / np.maximum(mass, 1e-300) - mean**2


def _exact(tree: Tree, table: np.ndarray) -> np.ndarray:
    """Returns each information set's advantages to player 0, histories weighted by reach: float64[I, A]."""
    mean = mean_by_set(tree, table, action_values(tree, table)[: tree.num_histories])
    return np.where(tree.legal, mean - np.sum(table * mean, axis=1, keepdims=True), 0.0)


@pytest.mark.parametrize("gae_lambda", LAMBDAS)
@pytest.mark.parametrize("name", GAMES)
def test_exact_values_make_advantages_unbiased(name: str, gae_lambda: float) -> None:
    """Given the information set and the action, their mean is the exact advantage, at any lambda."""
    tree, table = tree_of(name), _table(name)
    mean, _ = _means(name, _by_critic(name, action_values(tree, table), gae_lambda))
    np.testing.assert_allclose(np.where(tree.legal, mean, 0.0), _exact(tree, table), atol=1e-9)


@pytest.mark.parametrize("name", GAMES)
def test_any_critic_leaves_returns_unbiased_at_lambda_one(name: str) -> None:
    """With lambda 1 any Q gives G the right mean; V is off by the same for all actions of a history."""
    tree, table = tree_of(name), _table(name)
    wrong = action_values(tree, table) + np.random.default_rng(5).normal(0, 2.0, (tree.num_histories + 1, 1))
    wrong[:-1] += np.random.default_rng(6).normal(0, 2.0, (tree.num_histories, tree.legal.shape[1]))
    lanes = _lanes(name)
    values = np.sum(table[tree.infoset[lanes.history]] * wrong[lanes.history], axis=-1)
    mean, _ = _means(name, _by_critic(name, wrong, 1.0) + values)
    exact, _ = _means(name, action_values(tree, table)[lanes.history, lanes.action])
    np.testing.assert_allclose(mean, exact, atol=1e-9)


@pytest.mark.parametrize("name", GAMES)
def test_ratios_correct_games_by_another_policy(name: str) -> None:
    """Of games by mu, corrected by rho = pi / mu, any Q gives G the mean it has under pi; without rho it does not."""
    tree, pi, mu, lanes = tree_of(name), _table(name), _table(name, seed=4), _lanes(name)
    sets = tree.infoset[lanes.history]
    of_pi, of_mu = (np.where(lanes.valid, table[sets, lanes.action], 1.0) for table in (pi, mu))
    rho = of_pi / of_mu
    wrong = action_values(tree, pi) + np.random.default_rng(6).normal(0, 1.0, (tree.num_histories + 1, mu.shape[1]))
    values = np.sum(pi[sets] * wrong[lanes.history], axis=-1)
    stream = functools.partial(expected_sarsa, discount=1.0, gae_lambda=1.0)
    streams = lanes.rewards, lanes.done, wrong[lanes.history, lanes.action], values
    exact = action_values(tree, pi)[lanes.history, lanes.action]
    # Games by mu count chance / the product of rho; a decision counts as under pi up to and including its action.
    weights = np.where(lanes.valid, lanes.chance / rho.prod(axis=0) * np.cumprod(rho, axis=0), 0.0)
    off = []
    for ratios in ((rho,), ()):
        with jax.enable_x64(True):
            returns = np.asarray(jax.jit(jax.vmap(stream, 1, 1))(*streams, *ratios))
        sums = np.zeros((2, tree.num_histories, mu.shape[1]))
        for into, x in zip(sums, (returns, exact), strict=True):
            np.add.at(into, (lanes.history, lanes.action), weights * np.where(lanes.valid, x, 0.0))
        off.append(np.abs(sums[0] - sums[1]).max())
    assert off[0] < 1e-12 < 1e-4 < off[1]


@pytest.mark.parametrize("name", GAMES)
def test_exact_values_leave_no_variance_but_of_cards(name: str) -> None:
    """With exact critics: less than GAE's; on Kuhn nothing varies given a history and the action."""
    tree, table, lanes = tree_of(name), _table(name), _lanes(name)
    q = action_values(tree, table)
    mine = _by_critic(name, q, 0.95)
    mean_of_set = _exact_values_of_sets(tree, table)
    values = np.where(lanes.valid, mean_of_set[tree.infoset[lanes.history]], 0.0)
    players = np.where(lanes.valid, tree.player[lanes.history], 0)
    rewards = np.stack([lanes.rewards, -lanes.rewards], axis=-1)
    stream = functools.partial(lambda_returns, discount=1.0, gae_lambda=0.95)
    with jax.enable_x64(True):
        returns = np.asarray(jax.jit(jax.vmap(stream, 1, 1))(rewards, lanes.done, players, values))
    theirs = returns - values
    weights = np.where(lanes.valid, lanes.chance, 0.0)
    sets, at = tree.infoset[lanes.history], lanes.action
    spread = [np.sum(weights * _means(name, x)[1][sets, at]) / weights.sum() for x in (mine, theirs)]
    assert spread[0] < 0.5 * spread[1], spread
    if name == "kuhn_poker":
        exact = q[lanes.history, at] - np.sum(table[sets] * q[lanes.history], axis=-1)
        np.testing.assert_allclose(mine[lanes.valid], exact[lanes.valid], atol=1e-9)


def _exact_values_of_sets(tree: Tree, table: np.ndarray) -> np.ndarray:
    """Returns the value of each information set to its player, by reach: float64[I]."""
    q = action_values(tree, table)[: tree.num_histories]
    return mean_by_set(tree, table, np.sum(table[tree.infoset] * q, axis=1) * np.where(tree.player == 0, 1.0, -1.0))
