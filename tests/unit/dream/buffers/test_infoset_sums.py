"""Do sums by information set hold what a fit needs of the rows they came from?"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from tree_values import tree_of

from dream.algorithms.deep.regret_networks import Row, typical_size
from dream.buffers import infoset_sums
from dream.game_tree.tabular_policy import table_index
from dream.game_tree.tree import Tree

COUNT = 500


def _rows(tree: Tree, seed: int) -> tuple[np.ndarray, Row, np.ndarray]:
    """Returns the information sets of some random rows, the rows, and which are valid."""
    rng = np.random.default_rng(seed)
    infoset = rng.integers(0, tree.num_infosets, COUNT)
    views = jax.tree.map(lambda x: jnp.asarray(x)[infoset], tree.views)
    targets = jnp.asarray(rng.normal(size=(COUNT, tree.game.num_actions)) * tree.legal[infoset], jnp.float32)
    weights = jnp.asarray(rng.uniform(0.5, 2.0, COUNT), jnp.float32)
    legal = jnp.packbits(jnp.asarray(tree.legal), axis=-1)[infoset]
    return infoset, Row(views, legal, targets, weights), rng.uniform(size=COUNT) < 0.7


def test_sums_and_what_is_fitted() -> None:
    """Weights, mean targets and their typical size, player by player, over two calls; other rows count nowhere."""
    tree = tree_of("leduc_poker")
    sets = infoset_sums.sets_of(tree, table_index(tree))
    sums, weights, targets = infoset_sums.empty(tree), np.zeros(tree.num_infosets), np.zeros(tree.legal.shape)
    for seed in range(2):
        infoset, rows, valid = _rows(tree, seed)
        sums = infoset_sums.add(sums, sets, rows, jnp.asarray(valid))
        np.add.at(weights, infoset[valid], np.asarray(rows.weight)[valid])
        np.add.at(targets, infoset[valid], (np.asarray(rows.weight)[:, None] * np.asarray(rows.target))[valid])
    for player in range(2):
        own = tree.owner == player
        views, legal, means, share = infoset_sums.rows_of(sums, sets, jnp.int32(player))
        np.testing.assert_allclose(share, weights[own], rtol=1e-5)
        met = weights[own] > 0
        exact = targets[own][met] / weights[own][met, None]
        np.testing.assert_allclose(np.asarray(means)[met], exact, rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(legal, tree.legal[own])
        np.testing.assert_array_equal(views.card, np.asarray(tree.views.card)[own])
        square = np.sum(share * np.sum(np.asarray(means) ** 2, axis=1) / tree.legal[own].sum(axis=1)) / np.sum(share)
        np.testing.assert_allclose(typical_size(share, means, legal), np.sqrt(square), rtol=1e-5)


def test_the_count_of_rows_stays_positive() -> None:
    """A negative count means no rows, of which no network is fitted."""
    tree = tree_of("kuhn_poker")
    sets = infoset_sums.sets_of(tree, table_index(tree))
    _, rows, valid = _rows(tree, 0)
    sums = infoset_sums.empty(tree)
    sums = infoset_sums.add(sums._replace(seen=jnp.int32(2**30 - 2)), sets, rows, jnp.asarray(valid))
    assert 2**28 < int(sums.seen) < 2**30
    assert int(infoset_sums.add(sums, sets, rows, jnp.asarray(valid)).seen) == int(sums.seen) + valid.sum()


def test_players_of_unequal_numbers_of_sets_are_padded_without_weight() -> None:
    """No padding counts, and no set is left out."""
    tree = tree_of("kuhn_poker")
    sets = infoset_sums.sets_of(tree, table_index(tree))
    for player in range(2):
        rows = np.asarray(sets.rows[player])[np.asarray(sets.real[player])]
        np.testing.assert_array_equal(np.sort(rows), np.flatnonzero(tree.owner == player))


def test_rows_count_in_full_beside_sums_over_many_iterations() -> None:
    """As many rows of weight t were added in each of t - 1 iterations, and a row is a third of the sums' rounding."""
    tree, count, t = tree_of("kuhn_poker"), 3000, 20_000
    sets = infoset_sums.sets_of(tree, table_index(tree))
    views, legal = (
        jax.tree.map(lambda x: jnp.repeat(jnp.asarray(x)[:1], count, 0), x) for x in (tree.views, tree.legal)
    )
    rows = Row(views, jnp.packbits(legal, axis=-1), jnp.full((count, 2), 0.5), jnp.full(count, float(t)))
    before = count * t * (t - 1) / 2
    sums = infoset_sums.empty(tree)
    sums = sums._replace(weights=sums.weights.at[0].set(before), targets=sums.targets.at[0].set(0.5 * before))
    after = infoset_sums.add(sums, sets, rows, jnp.ones(count, bool))
    offered = count * t
    np.testing.assert_allclose(after.weights[0] - sums.weights[0], offered, rtol=0.001)
    np.testing.assert_allclose(after.targets[0] - sums.targets[0], 0.5 * offered, rtol=0.001)
