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
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dream.evaluation.tree import EMPTY, Tree
from envs.errors import InputError

_TOLERANCE = 1e-4
"""How far from 1 a row of probabilities, perhaps float32, may sum."""


class GatherSum(NamedTuple):
    """Sums over groups of unequal size: sum over members of a group, groups bucketed by size and padded.

    Attributes:
      buckets: int32[J, R] each: R groups of at most J members, padded with the index of a zero.
      place: int32[groups], where each group's sum stands in the concatenated buckets; the last place is a zero.
    """

    buckets: tuple[Array, ...]
    place: Array


def gather_sum(plan: GatherSum, values: Array) -> Array:
    """Returns each group's sum of its members' values: [groups], from [n]."""
    padded = jnp.append(values, 0)
    sums = [jnp.sum(padded[bucket], axis=0) for bucket in plan.buckets]
    return jnp.concatenate([*sums, jnp.zeros(1, values.dtype)])[plan.place]


def plan_gather_sum(group: np.ndarray, groups: int) -> GatherSum:
    """Plans the sums of values by group.

    Args:
      group: int[n], each value's group.
      groups: how many there are; some may be empty.
    """
    order = np.argsort(group, kind="stable")
    counts = np.bincount(group, minlength=groups)
    starts = np.cumsum(counts) - counts
    place = np.full(groups, -1, np.int64)
    buckets, used, low = [], 0, 0
    while low < counts.max(initial=0):
        high = max(1, 2 * low)
        rows = np.flatnonzero((counts > low) & (counts <= high))
        low = high
        if not len(rows):
            continue
        width = counts[rows].max()
        column = np.arange(width)[:, None]
        inside = column < counts[rows]
        members = order[np.minimum(starts[rows] + column, len(group) - 1)]
        buckets.append(np.where(inside, members, len(group)).astype(np.int32))
        place[rows] = used + np.arange(len(rows))
        used += len(rows)
    return GatherSum(tuple(buckets), np.where(place < 0, used, place).astype(np.int32))


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["legal", "owner", "before", "others", "weight", "ending", "children"],
    meta_fields=["players", "actions", "slices"],
)
@dataclasses.dataclass(frozen=True)
class SequenceForm:
    """What the sweeps need of a tree; Z terminal histories, sequences numbered as in tree.py.

    Attributes:
      players, actions: numbers of them.
      slices: (first, last + 1) information set of each depth, shallow first.
      legal: bool[I, A].
      owner: int32[I].
      before: int32[I].
      others: for each player int32[P - 1, Z], the others' last sequences at each terminal history.
      weight: for each player float64[Z], chance * payoff.
      ending: for each player, sums terminal histories by that player's last sequence.
      children: for each depth, sums the values of the sets one deeper by their parent sequence, which is at this depth.
    """

    players: int
    actions: int
    slices: tuple[tuple[int, int], ...]
    legal: Array
    owner: Array
    before: Array
    others: tuple[Array, ...]
    weight: tuple[Array, ...]
    ending: tuple[GatherSum, ...]
    children: tuple[GatherSum, ...]


@functools.lru_cache(maxsize=8)
def sequence_form(tree: Tree) -> SequenceForm:
    """Builds the sequence form of a tree, on the device in float64."""
    players, actions = tree.game.num_players, tree.game.num_actions
    ends = np.flatnonzero(tree.player < 0)
    last = tree.sequence[ends]
    sequences = 1 + actions * tree.num_infosets
    bounds = np.searchsorted(tree.depth, np.arange(tree.depth.max(initial=0) + 2))
    slices = tuple((int(low), int(high)) for low, high in itertools.pairwise(bounds))
    children = []
    for (low, high), (next_low, next_high) in zip(slices, [*slices[1:], (0, 0)], strict=True):
        inside = tree.before[next_low:next_high] - 1 - actions * low
        children.append(plan_gather_sum(inside, actions * (high - low)))
    with jax.enable_x64(True):
        return jax.tree.map(
            jnp.asarray,
            SequenceForm(
                players=players,
                actions=actions,
                slices=slices,
                legal=tree.legal,
                owner=tree.owner.astype(np.int32),
                before=tree.before,
                others=tuple(np.delete(last, p, axis=1).T.copy() for p in range(players)),
                weight=tuple(tree.chance[ends] * tree.payoff[ends, p] for p in range(players)),
                ending=tuple(plan_gather_sum(last[:, p], sequences) for p in range(players)),
                children=tuple(children),
            ),
        )


def realisation(form: SequenceForm, table: Array) -> Array:
    """Returns X: each sequence's product of its owner's probabilities, float64[1 + I * A]; X(EMPTY) = 1."""
    plan = jnp.ones(1, table.dtype)
    for low, high in form.slices:
        reach = plan[form.before[low:high]]
        plan = jnp.concatenate([plan, (reach[:, None] * table[low:high]).reshape(-1)])
    return plan


def own_reach(form: SequenceForm, plan: Array) -> Array:
    """Returns X of each information set's parent sequence: float64[I]."""
    return plan[form.before]


def terminal_values(form: SequenceForm, plan: Array, player: int) -> Array:
    """Returns G of the player: float64[1 + I * A]."""
    weight = form.weight[player]
    for sequences in form.others[player]:
        weight = weight * plan[sequences]
    return gather_sum(form.ending[player], weight)


def counterfactual_values(form: SequenceForm, table: Array | None, plan: Array, player: int) -> tuple[Array, Array]:
    """Sweeps a player's decisions backwards.

    Args:
      form: the game.
      table: float64[I, A], what the player plays; None for its best response.
      plan: realisation of what the others play.
      player: whose values.
    Returns:
      (value of the game to the player, Q float64[I, A], 0 in the others' information sets).
    """
    ends = terminal_values(form, plan, player)
    values, below = [], jnp.zeros(0, ends.dtype)
    for (low, high), children in zip(reversed(form.slices), reversed(form.children), strict=True):
        own = (form.owner[low:high] == player)[:, None]
        here = jax.lax.slice(ends, (1 + form.actions * low,), (1 + form.actions * high,))
        q = jnp.where(own, (here + gather_sum(children, below)).reshape(-1, form.actions), 0)
        if table is None:
            best = jnp.max(jnp.where(form.legal[low:high], q, -jnp.inf), axis=1)
            below = jnp.where(own[:, 0], best, 0)
        else:
            below = jnp.sum(table[low:high] * q, axis=1)
        values.append(q)
    first = form.slices[0]
    return ends[EMPTY] + jnp.sum(below[: first[1] - first[0]]), jnp.concatenate(values[::-1])


@jax.jit
def _expected_value(form: SequenceForm, table: Array) -> Array:
    plan = realisation(form, table)
    return jnp.stack([counterfactual_values(form, table, plan, p)[0] for p in range(form.players)])


@functools.partial(jax.jit, static_argnums=2)
def _best_response(form: SequenceForm, table: Array, player: int) -> tuple[Array, Array]:
    value, q = counterfactual_values(form, None, realisation(form, table), player)
    best = jax.nn.one_hot(jnp.argmax(jnp.where(form.legal, q, -jnp.inf), axis=1), form.actions, dtype=table.dtype)
    return value, jnp.where((form.owner == player)[:, None], best, table)


@jax.jit
def _nash_conv(form: SequenceForm, table: Array) -> Array:
    plan = realisation(form, table)
    best = [counterfactual_values(form, None, plan, p)[0] for p in range(form.players)]
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
