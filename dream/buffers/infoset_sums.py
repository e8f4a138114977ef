"""A buffer without a bound for games with a tree: samples as weighted sums by information set.

The loss of a network over all rows ever offered depends on them only through the sums W(I) of weights and S(I, a) of
weighted targets: sum of w |f(I) - x|^2 = sum over I of W(I) |f(I) - S(I)/W(I)|^2 + a constant. So a fit to these sums
is the fit to the rows with every row in every batch; a sampled batch adds noise to it and nothing else.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dream.buffers.reservoir import counted
from dream.game_tree.tabular_policy import row_of
from dream.game_tree.tree import Tree


class Sums(NamedTuple):
    """Sums over the rows of one player.

    Attributes:
      weights: float32[I], W.
      targets: float32[I, A], S.
      seen: int32, rows offered so far, counted to 2^30 and then on from its half.
    """

    weights: Array
    targets: Array
    seen: Array


class Sets(NamedTuple):
    """Information sets as a network is fitted on them, those of each player padded to the same number M; on the host.

    Attributes:
      views: leading axis [I].
      legal: bool[I, A].
      rows: int32[2, M], each player's sets.
      real: bool[2, M], which of them are not padding.
      index: what a view's set is found by (dream/game_tree/tabular_policy.py).
    """

    views: Any
    legal: np.ndarray
    rows: np.ndarray
    real: np.ndarray
    index: dict[str, np.ndarray]


def sets_of(tree: Tree, index: dict[str, np.ndarray]) -> Sets:
    """Lays out a two-player tree's information sets; `index` is its table_index."""
    starts = np.searchsorted(tree.owner, np.arange(3))
    places = np.arange(max(np.diff(starts)))
    rows = np.minimum(starts[:2, None] + places, starts[1:, None] - 1).astype(np.int32)
    real = places < np.diff(starts)[:, None]
    return Sets(tree.views, tree.legal, rows, real, index)


def empty(tree: Tree) -> Sums:
    """Returns sums of nothing."""
    infosets, actions = tree.legal.shape
    return Sums(jnp.zeros(infosets, jnp.float32), jnp.zeros((infosets, actions), jnp.float32), jnp.int32(0))


def add(sums: Sums, sets: Sets, rows: Any, valid: Array) -> Sums:
    """Adds rows of view, target float32[N, A] and weight float32[N], where valid bool[N].

    They are added up among themselves first: a row alone is less than the rounding of sums over many iterations.
    """
    index = jax.tree.map(jnp.asarray, sets.index)
    infoset, _ = jax.vmap(functools.partial(row_of, index))(rows.view)
    infoset = jnp.where(valid, infoset, sums.weights.shape[0])
    weight = jnp.where(valid, rows.weight, 0.0)
    return Sums(
        sums.weights + jnp.zeros_like(sums.weights).at[infoset].add(weight, mode="drop"),
        sums.targets + jnp.zeros_like(sums.targets).at[infoset].add(weight[:, None] * rows.target, mode="drop"),
        counted(sums.seen + jnp.sum(valid, dtype=jnp.int32), 1),
    )


def rows_of(sums: Sums, sets: Sets, player: Array) -> tuple[Any, Array, Array, Array]:
    """Returns a player's sets as rows: views, legal bool[M, A], mean targets float32[M, A], weights float32[M]."""
    sets = jax.tree.map(jnp.asarray, sets)
    rows = sets.rows[player]
    weights = jnp.where(sets.real[player], sums.weights[rows], 0.0)
    means = sums.targets[rows] / jnp.maximum(weights, 1e-30)[:, None]
    views = jax.tree.map(lambda x: x[rows], sets.views)
    return views, sets.legal[rows], jnp.where(weights[:, None] > 0, means, 0.0), weights
