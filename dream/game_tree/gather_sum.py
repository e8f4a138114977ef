"""Weighted sums over groups of unequal size, planned once and computed as gathers."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

_WRITTEN_OUT = 32
"""Sums of at most so many terms are written out: XLA on CPU is slow at reductions over short axes."""


class GatherSum(NamedTuple):
    """Weighted sums over groups of unequal size; groups are bucketed by size and padded.

    Attributes:
      members: int32[J, R] each: R groups of at most J members.
      weights: float64[J, R] each, 0 for padding.
      position: int32[groups], of each group's sum in the concatenated buckets; the last position is a zero.
    """

    members: tuple[Array, ...]
    weights: tuple[Array, ...]
    position: Array


def gather_sum(plan: GatherSum, values: Array) -> Array:
    """Returns each group's weighted sum of its members' values: [groups], from [n]."""
    sums = []
    for members, weights in zip(plan.members, plan.weights, strict=True):
        if len(members) <= _WRITTEN_OUT:
            sums.append(sum(weights[n] * values[members[n]] for n in range(len(members))))
        else:
            sums.append(jnp.sum(weights * values[members], axis=0))
    return jnp.concatenate([*sums, jnp.zeros(1, values.dtype)])[plan.position]


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
    position = np.full(groups, -1, np.int64)
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
        position[rows] = used + np.arange(len(rows))
        used += len(rows)
    return GatherSum(tuple(members), tuple(weights), np.where(position < 0, used, position).astype(np.int32))
