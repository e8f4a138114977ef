"""Exact values of tabular policies on a game's tree: expected value, best response, NashConv.

In sequence form. With X_p(s) the product of p's own probabilities along sequence s ("realisation plan"), the payoff to
p of playing sequence s against the others is linear:

    G_p(s) = sum over terminal histories z that end p's play with s of chance(z) * payoff_p(z) * X_others(z),
    Q_p(i, a) = G_p(i, a) + sum over p's information sets j whose parent sequence is (i, a) of V_p(j),
    V_p(i) = sum over a of policy(i, a) * Q_p(i, a)         (or the maximum, for a best response),

swept from p's last decisions to its first. Q is the counterfactual value of the literature. Sums over terminal
histories and child sets are gathers along precomputed index lists, so a sweep costs a few passes over the terminals.
Source: von Stengel 1996, "Efficient computation of behavior strategies"; Zinkevich et al. 2007, eq. 5-7.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dream.evaluation.tree import EMPTY, Tree
from envs.errors import InputError

_TOLERANCE = 1e-4
"""How far from 1 a row of probabilities, perhaps float32, may sum."""


class GatherSum(NamedTuple):
    """Weighted sums over groups of unequal size; groups are bucketed by size and padded.

    Attributes:
      members: int32[J, R] each: R groups of at most J members.
      weights: float64[J, R] each, 0 for padding.
      place: int32[groups], where each group's sum stands in the concatenated buckets; the last place is a zero.
    """

    members: tuple[Array, ...]
    weights: tuple[Array, ...]
    place: Array


def gather_sum(plan: GatherSum, values: Array) -> Array:
    """Returns each group's weighted sum of its members' values: [groups], from [n]."""
    sums = [jnp.sum(w * values[m], axis=0) for m, w in zip(plan.members, plan.weights, strict=True)]
    return jnp.concatenate([*sums, jnp.zeros(1, values.dtype)])[plan.place]


def plan_gather_sum(group: np.ndarray, groups: int, member: np.ndarray, weight: np.ndarray) -> GatherSum:
    """Plans weighted sums by group.

    Args:
      group: int[n], the group of each term.
      groups: how many there are; some may be empty.
      member: int[n], which value the term takes.
      weight: float[n], what it is multiplied by.
    """
    order = np.argsort(group, kind="stable")
    counts = np.bincount(group, minlength=groups)
    starts = np.cumsum(counts) - counts
    place = np.full(groups, -1, np.int64)
    members, weights, used, low = [], [], 0, 0
    while low < counts.max(initial=0):
        high = max(1, 2 * low)
        rows = np.flatnonzero((counts > low) & (counts <= high))
        low = high
        if not len(rows):
            continue
        column = np.arange(counts[rows].max())[:, None]
        terms = order[np.minimum(starts[rows] + column, len(group) - 1)]
        members.append(member[terms].astype(np.int32))
        weights.append(np.where(column < counts[rows], weight[terms], 0.0))
        place[rows] = used + np.arange(len(rows))
        used += len(rows)
    return GatherSum(tuple(members), tuple(weights), np.where(place < 0, used, place).astype(np.int32))


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["legal", "before", "ends", "children"],
    meta_fields=["first", "actions", "depths"],
)
@dataclasses.dataclass(frozen=True)
class Player:
    """One player's side of the sequence form: J own information sets, numbered from 0, sequences as in tree.py.

    Attributes:
      first: the first of its information sets in the tree's numbering.
      actions: number of actions.
      depths: where each depth's sets start, and the end.
      legal: bool[J, A].
      before: for each depth but the first int32, the parent action as A * set + action within the depth above.
      ends: G of each sequence, from the opponent's realisation plan.
      children: for each depth but the last, sums of the values of the sets one deeper by their parent action.
    """

    first: int
    actions: int
    depths: tuple[int, ...]
    legal: Array
    before: tuple[Array, ...]
    ends: GatherSum
    children: tuple[GatherSum, ...]

    def rows(self, table: Array) -> Array:
        """Returns the player's part of a table: [J, A], from [I, A]."""
        return table[self.first : self.first + self.depths[-1]]

    @property
    def slices(self) -> list[slice]:
        """The own information sets of each depth."""
        return [slice(low, high) for low, high in itertools.pairwise(self.depths)]


SequenceForm = tuple[Player, Player]


@functools.lru_cache(maxsize=8)
def sequence_form(tree: Tree) -> SequenceForm:
    """Builds the sequence form of a two-player tree, on the device in float64.

    Raises:
      InputError: not two players.
    """
    if tree.game.num_players != 2:
        raise InputError(f"{tree.game.name} has {tree.game.num_players} players; exact values are for two")
    with jax.enable_x64(True):
        return tuple(jax.tree.map(jnp.asarray, _side(tree, player)) for player in range(2))


def _side(tree: Tree, player: int) -> Player:
    actions = tree.game.num_actions
    firsts = np.searchsorted(tree.owner, np.arange(3))
    own = slice(firsts[player], firsts[player + 1])
    ends = tree.player < 0
    # Sequences of one player, numbered from its own first set.
    mine, others = (
        np.where(tree.sequence[ends, p] == EMPTY, 0, tree.sequence[ends, p] - actions * firsts[p])
        for p in (player, 1 - player)
    )
    weight = tree.chance[ends] * tree.payoff[ends, player]
    depth, size = tree.depth[own], own.stop - own.start
    bounds = np.searchsorted(depth, np.arange(depth.max(initial=-1) + 2))
    parents = tree.before[own] - 1 - actions * firsts[player]
    before, children = [], []
    for above, low, high in zip(bounds[:-2], bounds[1:-1], bounds[2:], strict=True):
        local = parents[low:high] - actions * above
        before.append(local.astype(np.int32))
        groups = actions * (low - above)
        children.append(plan_gather_sum(local, groups, np.arange(high - low), np.ones(high - low)))
    return Player(
        first=int(firsts[player]),
        actions=actions,
        depths=tuple(int(bound) for bound in bounds),
        legal=tree.legal[own],
        before=tuple(before),
        ends=plan_gather_sum(mine, 1 + actions * size, others, weight),
        children=tuple(children),
    )


def realisation(side: Player, rows: Array) -> Array:
    """Returns X: each own sequence's product of the player's probabilities, float64[1 + J * A]; X(EMPTY) = 1."""
    blocks = [jnp.ones(1, rows.dtype)]
    for n, here in enumerate(side.slices):
        reach = blocks[-1][side.before[n - 1]][:, None] if n else 1.0
        blocks.append((reach * rows[here]).reshape(-1))
    return jnp.concatenate(blocks)


def counterfactual_values(side: Player, rows: Array | None, opponent: Array) -> tuple[Array, Array]:
    """Sweeps a player's decisions backwards.

    Args:
      side: the player.
      rows: float64[J, A], what it plays; None for its best response.
      opponent: the opponent's realisation plan.
    Returns:
      (value of the game to the player, Q float64[J, A]).
    """
    ends = gather_sum(side.ends, opponent)
    at_once, ends = ends[EMPTY], ends[1:].reshape(-1, side.actions)
    values, below = [], None
    for n in reversed(range(len(side.slices))):
        here = side.slices[n]
        q = ends[here]
        if below is not None:
            q = q + gather_sum(side.children[n], below).reshape(q.shape)
        if rows is None:
            below = jnp.max(jnp.where(side.legal[here], q, -jnp.inf), axis=1)
        else:
            below = jnp.sum(rows[here] * q, axis=1)
        values.append(q)
    total = at_once if below is None else at_once + jnp.sum(below)
    return total, jnp.concatenate(values[::-1]) if values else jnp.zeros(side.legal.shape)


@jax.jit
def _expected_value(form: SequenceForm, table: Array) -> Array:
    plans = [realisation(side, side.rows(table)) for side in form]
    return jnp.stack([counterfactual_values(form[p], form[p].rows(table), plans[1 - p])[0] for p in range(2)])


@functools.partial(jax.jit, static_argnums=2)
def _best_response(form: SequenceForm, table: Array, player: int) -> tuple[Array, Array]:
    side, other = form[player], form[1 - player]
    value, q = counterfactual_values(side, None, realisation(other, other.rows(table)))
    best = jnp.argmax(jnp.where(side.legal, q, -jnp.inf), axis=1)
    rows = jax.nn.one_hot(best, side.actions, dtype=table.dtype)
    return value, jax.lax.dynamic_update_slice(table, rows, (side.first, 0))


@jax.jit
def _nash_conv(form: SequenceForm, table: Array) -> Array:
    plans = [realisation(side, side.rows(table)) for side in form]
    best = [counterfactual_values(form[p], None, plans[1 - p])[0] for p in range(2)]
    return sum(best) - jnp.sum(_expected_value(form, table))


def expected_value(tree: Tree, table: np.ndarray) -> np.ndarray:
    """Returns the value of the game to each player when all play a table: float64[2], in units of reward."""
    with jax.enable_x64(True):
        return np.asarray(_expected_value(sequence_form(tree), checked(tree, table)))


def best_response(tree: Tree, table: np.ndarray, player: int) -> tuple[float, np.ndarray]:
    """Returns a player's best answer to a table.

    Args:
      tree: the game.
      table: float[I, A], what the others play.
      player: who answers.
    Returns:
      (its value to the player, in units of reward; float64[I, A], the table with the player's rows replaced).
    """
    with jax.enable_x64(True):
        value, best = _best_response(sequence_form(tree), checked(tree, table), player)
        return float(value), np.asarray(best)


def nash_conv(tree: Tree, table: np.ndarray) -> float:
    """Returns the sum over players of what a best response gains: 0 at an equilibrium, in units of reward.

    Exploitability, as reported here, is half of it.
    """
    with jax.enable_x64(True):
        return float(_nash_conv(sequence_form(tree), checked(tree, table)))


def checked(tree: Tree, table: np.ndarray) -> Array:
    """Returns a table as float64 on the device, each row divided by its sum.

    Raises:
      InputError: a row that is no distribution over its legal actions.
    """
    table = np.asarray(table, np.float64)
    if table.shape != tree.legal.shape:
        raise InputError(f"a table of shape {table.shape} does not fit the tree; it must be {tree.legal.shape}")
    sums = table.sum(axis=1)
    wrong = (np.abs(sums - 1) > _TOLERANCE) | (table < 0).any(axis=1) | (table * ~tree.legal).any(axis=1)
    wrong |= ~np.isfinite(sums)
    if wrong.any():
        first = int(np.argmax(wrong))
        raise InputError(
            f"the policy is no distribution over the legal actions in {int(wrong.sum())} of {len(wrong)} information "
            f"sets, first in number {first}: {np.round(table[first], 4).tolist()}"
        )
    return jnp.asarray(table / sums[:, None])
