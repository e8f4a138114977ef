"""Are v-trace's action values the exact ones of the regularised game, over all games of Kuhn and Leduc?

Every history that ends a game is one lane, weighted by the probability that the behaviour policy reaches it.
"""

from __future__ import annotations

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trajectories import paths_of
from tree_values import tree_of

from dream.equations.regret_matching import masked_softmax
from dream.equations.vtrace import neurd_loss, vtrace
from dream.game_tree.tree import Tree

ETA = 0.3


def _random_table(tree: Tree, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).uniform(0.1, 1.0, tree.legal.shape) * tree.legal
    return rows / rows.sum(axis=1, keepdims=True)


def _bonus(tree: Tree, policy: np.ndarray, anchor: np.ndarray) -> np.ndarray:
    ratio = np.where(tree.legal, policy, 1.0) / np.where(tree.legal, anchor, 1.0)
    return -ETA * np.log(ratio)


def _exact_action_values(tree: Tree, policy: np.ndarray, bonus: np.ndarray) -> np.ndarray:
    """Returns each action's value to player 0 in the transformed game, its own bonus included: float64[N, A]."""
    values, q = np.where(tree.infoset < 0, tree.payoff[:, 0], 0.0), np.zeros((tree.num_histories, policy.shape[1]))
    sign = np.where(tree.player == 0, 1.0, -1.0)
    playing = tree.infoset >= 0
    q[playing] = (sign[:, None] * bonus[tree.infoset])[playing]
    for low, high in reversed(list(itertools.pairwise(tree.levels))):
        here = np.arange(low, high)[playing[low:high]]
        values[here] = np.sum(policy[tree.infoset[here]] * q[here], axis=1)
        if low:
            up = tree.parent[low:high]
            np.add.at(q, (up, tree.action[low:high]), tree.chance[low:high] / tree.chance[up] * values[low:high])
    return q


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker"])
@pytest.mark.parametrize("behaves_as_it_plays", [True, False])
def test_action_values_are_unbiased(name: str, behaves_as_it_plays: bool) -> None:
    """Given a history, whatever the values and, without a bound on the ratios, whatever policy played."""
    tree = tree_of(name)
    policy, anchor = _random_table(tree, 1), _random_table(tree, 2)
    behaviour = policy if behaves_as_it_plays else _random_table(tree, 4)
    bonus = _bonus(tree, policy, anchor)
    history, action, valid, _, ends = paths_of(tree)
    sets, player = tree.infoset[history], np.where(valid, tree.player[history], 0)
    done = ~valid
    lanes = np.arange(len(ends))
    done[valid.sum(axis=0) - 1, lanes] = True
    paid = np.where((done & valid)[..., None], tree.payoff[ends], 0.0)
    drawn = np.where(valid, behaviour[sets, action], 1.0)
    wrong = np.random.default_rng(5).normal(0, 2.0, len(tree.legal))
    stream = functools.partial(vtrace, clip=1.0 if behaves_as_it_plays else np.inf)
    with jax.enable_x64(True):
        traced = jax.jit(jax.vmap(stream, 1, 1))(
            paid, done, player, action, wrong[sets], policy[sets], drawn, bonus[sets]
        )
    chance = np.where(valid, tree.chance[ends] * drawn.prod(axis=0), 0.0)
    total, mass = np.zeros((tree.num_histories, tree.legal.shape[1])), np.zeros(tree.num_histories)
    np.add.at(total, history, chance[..., None] * np.asarray(traced.action_values))
    np.add.at(mass, history, chance)
    playing = tree.infoset >= 0
    sign = np.where(tree.player == 0, 1.0, -1.0)[playing, None]
    exact = sign * _exact_action_values(tree, policy, bonus)[playing]
    found = total[playing] / mass[playing, None]
    legal = tree.legal[tree.infoset[playing]]
    np.testing.assert_allclose(np.where(legal, found, 0.0), np.where(legal, exact, 0.0), atol=1e-8)


def test_neurd_moves_logits_by_advantages() -> None:
    """The gradient at legal logits is minus the centred advantage; none drives a logit beyond the threshold."""
    logits, legal = jnp.array([0.5, -0.5, 9.0, 0.3]), jnp.array([True, True, False, True])
    policy, values = masked_softmax(logits, legal), jnp.array([1.0, -2.0, 7.0, 0.4])
    gradient = jax.grad(lambda y: neurd_loss(y, policy, values, legal, threshold=10.0, clip=1e4))(logits)
    advantages = np.where(legal, values - policy @ jnp.where(legal, values, 0.0), 0.0)
    expected = np.where(legal, advantages - advantages.sum() / 3, 0.0)
    np.testing.assert_allclose(gradient, -expected, atol=1e-5)
    held = jax.grad(lambda y: neurd_loss(y, policy, values, legal, threshold=0.1, clip=1e4))(logits)
    np.testing.assert_allclose(held, 0.0, atol=1e-6)
