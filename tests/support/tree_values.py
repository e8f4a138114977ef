"""Exact values on a game's tree by the plainest sums, for tests of what samples them."""

from __future__ import annotations

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np

import envs
from dream.game_tree.sequence_form import PlayerSequences, counterfactual_values, realisation, sequence_form
from dream.game_tree.tree import Tree, build_tree


@functools.cache
def tree_of(name: str) -> Tree:
    """Builds a tree once."""
    return build_tree(envs.make(name))


def history_values(tree: Tree, table: np.ndarray) -> np.ndarray:
    """Returns the value of each history to player 0, by one backward pass: float64[N]."""
    values = np.where(tree.infoset < 0, tree.payoff[:, 0], 0.0)
    for low, high in reversed(list(itertools.pairwise(tree.levels[1:]))):
        up = tree.parent[low:high]
        share = tree.chance[low:high] / tree.chance[up] * table[tree.infoset[up], tree.action[low:high]]
        np.add.at(values, up, share * values[low:high])
    return values


def action_values(tree: Tree, table: np.ndarray) -> np.ndarray:
    """Returns the value to player 0 of each action at each history: float64[N + 1, A]."""
    values, q = history_values(tree, table), np.zeros((tree.num_histories + 1, tree.game.num_actions))
    later = np.arange(tree.levels[1], tree.num_histories)
    up = tree.parent[later]
    np.add.at(q, (up, tree.action[later]), tree.chance[later] / tree.chance[up] * values[later])
    return q


def reach_of_histories(tree: Tree, table: np.ndarray) -> np.ndarray:
    """Returns the probability that play by a policy reaches each history: float64[N]."""
    reach = tree.chance.copy()
    for at in range(tree.levels[1], tree.num_histories):
        up = tree.parent[at]
        reach[at] = reach[up] * tree.chance[at] / tree.chance[up] * table[tree.infoset[up], tree.action[at]]
    return reach


def mean_by_set(tree: Tree, table: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Returns the mean of values of histories float64[N] or [N, A] at each information set, weighted by reach."""
    reach, playing = reach_of_histories(tree, table), tree.infoset >= 0
    mass, total = np.zeros(len(table)), np.zeros((len(table), *values.shape[1:]))
    np.add.at(mass, tree.infoset[playing], reach[playing])
    weights = reach.reshape(-1, *(1,) * (values.ndim - 1))
    np.add.at(total, tree.infoset[playing], (weights * values)[playing])
    return total / mass.reshape(-1, *(1,) * (values.ndim - 1))


def exact_regret_and_average(tree: Tree, table: np.ndarray, player: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns CFR's regret at the player's sets, and X times the set's chance at the opponent's: float64[I, A] each."""
    regret, average = np.zeros_like(table), np.zeros_like(table)
    with jax.enable_x64(True):
        form = sequence_form(tree)
        q, plan = jax.device_get(_values(form[player], form[1 - player], jnp.asarray(table)))
    own, theirs = (tree.owner == p for p in (player, 1 - player))
    regret[own] = np.where(tree.legal[own], q - np.sum(table[own] * q, axis=1, keepdims=True), 0.0)
    average[theirs] = plan
    playing = tree.infoset >= 0
    return regret, average * np.bincount(tree.infoset[playing], tree.chance[playing])[:, None]


@jax.jit
def _values(own: PlayerSequences, other: PlayerSequences, table: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the player's counterfactual values and the opponent's realisation plan: [J, A] each."""
    plan = realisation(other, other.entries(table))
    return own.table(counterfactual_values(own, own.entries(table), plan)[1]), other.table(plan[1:])
