"""Between policies and tables: a policy evaluated on every information set, and a table played as a policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dream.game_tree.sequence_form import checked, realisation, sequence_form
from dream.game_tree.tree import Tree
from envs import Game, InputError, Policy, check_plays
from envs.errors import a_kind
from envs.random_play import uniform

_BATCH = 4096
_ODD = np.uint32(0x9E3779B1)


def tabulate(tree: Tree, policy: Policy) -> np.ndarray:
    """Evaluates a policy on every information set: float64[I, A].

    Raises:
      InputError: it is not a distribution over the legal actions somewhere, or a policy of another game.
    """
    check_plays(policy, tree.game)
    parts = []
    for start in range(0, tree.num_infosets, _BATCH):
        take = np.minimum(np.arange(start, start + _BATCH), tree.num_infosets - 1)
        views = jax.tree.map(lambda x, take=take: x[take], tree.views)
        parts.append(np.asarray(_apply(policy, views, tree.legal[take]))[: tree.num_infosets - start])
    with jax.enable_x64(True):
        return np.asarray(checked(tree, np.concatenate(parts)))


@jax.jit
def _apply(policy: Policy, views: Any, legal: Array) -> Array:
    return jax.vmap(policy)(views, legal)


def average(tree: Tree, tables: Iterable[np.ndarray], weights: Iterable[float]) -> np.ndarray:
    """Returns the policy that draws table t with probability weights[t] before a game and plays it to the end.

    Its probabilities are the tables' own, weighted by the player's own reach of the information set under each;
    uniform where no table reaches a set.

    Args:
      tree: the game.
      tables: float[I, A] each.
      weights: one for each table, non-negative, not all 0; need not be normalised.
    Raises:
      InputError: other weights, or a table that is none of the tree.
    """
    form, tables, weights = sequence_form(tree), list(tables), list(weights)
    if len(weights) != len(tables) or not (all(0 <= x < np.inf for x in weights) and sum(weights) > 0):
        raise InputError(
            f"weights={weights} of {len(tables)} tables are not valid; there must be one for each, finite, 0 or more "
            "and not all 0"
        )
    total = np.zeros(tree.legal.shape)
    with jax.enable_x64(True):
        for table, weight in zip(tables, weights, strict=True):
            rows = checked(tree, table)
            plans = [own.table(realisation(own, own.entries(rows))[1:]) for own in form]
            total += weight * np.concatenate(plans)
    return normalised(total, tree.legal)


def normalised(weights: np.ndarray, legal: np.ndarray) -> np.ndarray:
    """Divides rows by their sums; rows of zeros become uniform over legal actions."""
    mass = weights.sum(axis=1, keepdims=True)
    return np.where(mass > 0, weights / np.where(mass > 0, mass, 1), uniform(legal))


def view_hash(view: Any, salt: Array) -> Array:
    """Returns a hash of a view's bytes: uint32."""
    code = salt.astype(jnp.uint32)
    for leaf in jax.tree.leaves(view):
        for word in jnp.ravel(leaf).astype(jnp.uint32):
            code = (code ^ word) * _ODD
            code = code ^ (code >> 15)
    return code


class HasViews(Protocol):
    """What is looked up in: a tree, or another list of a game's information sets with their views [I, ...]."""

    game: Any

    @property
    def views(self) -> Any:
        """Each information set's view: [I, ...]."""

    @property
    def num_infosets(self) -> int:
        """Information sets of all players."""


def table_index(tree: HasViews) -> dict[str, np.ndarray]:
    """Returns what `table_policy` finds rows by, for any number of information sets.

    Returns:
      `codes` uint32[I], a first hash of the views in ascending order, `checks` uint32[I], a second one in the same
      order, `rows` int32[I], and `probes` int32[K], 0 to the most places at which codes are alike, less one.
    """
    hashes = jax.jit(jax.vmap(view_hash, in_axes=(0, None)))
    views = tree.views
    codes = np.asarray(hashes(views, jnp.uint32(0)))
    for salt in range(1, 1000):
        checks = np.asarray(hashes(views, jnp.uint32(salt)))
        order = np.lexsort((checks, codes))
        alike = np.diff(codes[order]) == 0
        if not np.any(alike & (np.diff(checks[order]) == 0)):
            run = int(np.diff(np.flatnonzero(np.r_[True, ~alike, True])).max())
            return {
                "salt": np.uint32(salt),
                "codes": codes[order],
                "checks": checks[order],
                "rows": order.astype(np.int32),
                "probes": np.arange(run, dtype=np.int32),
            }
    raise RuntimeError(f"no salt parts the {tree.num_infosets} information sets of {tree.game.name}")


def table_policy(index: dict[str, Any], table: Any, game: Game | None = None) -> Policy:
    """Returns the Policy that plays a table, uniformly where it meets a view the tree does not have.

    Args:
      index: of the tree, from `table_index`.
      table: float[I, A].
      game: the tree's, where the policy is to know it.
    Raises:
      InputError: a table with another number of rows, or what is no index.
    """
    if not isinstance(index, Mapping):
        raise InputError(f"{a_kind(type(index))} is not an index; table_index(tree) makes one")
    rows, shape = index["rows"].shape[0], getattr(table, "shape", np.shape(table))
    if len(shape) != 2 or shape[0] != rows:
        raise InputError(f"a table of shape {shape} does not fit the index; it must have {rows} rows")
    return Policy(_look_up, {**index, "table": np.asarray(table) if isinstance(table, list) else table}, game)


def row_of(index: dict[str, Any], view: Any) -> tuple[Array, Array]:
    """Returns a view's row in the table of its index, int32, and whether the tree has it, bool."""
    code, check = view_hash(view, jnp.uint32(0)), view_hash(view, index["salt"])
    place = jnp.searchsorted(index["codes"], code) + index["probes"]
    place = jnp.minimum(place, index["codes"].shape[0] - 1)
    known = (index["codes"][place] == code) & (index["checks"][place] == check)
    return index["rows"][place[jnp.argmax(known)]], jnp.any(known)


def _look_up(params: dict[str, Array], view: Any, legal: Array) -> Array:
    row, known = row_of(params, view)
    return jnp.where(known, params["table"][row].astype(jnp.float32), uniform(legal))
