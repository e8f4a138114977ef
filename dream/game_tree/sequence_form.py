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
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dream.game_tree.tree import EMPTY, Tree
from envs.errors import InputError

_TOLERANCE = 1e-4
"""How far from 1 a row of probabilities, perhaps float32, may sum."""


_WRITTEN_OUT = 32
"""Sums of at most so many terms are written out: XLA on CPU is slow at reductions over short axes."""


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
    sums = []
    for members, weights in zip(plan.members, plan.weights, strict=True):
        if len(members) <= _WRITTEN_OUT:
            sums.append(sum(weights[n] * values[members[n]] for n in range(len(members))))
        else:
            sums.append(jnp.sum(weights * values[members], axis=0))
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
    data_fields=["taken", "place", "sets", "uniform", "before", "ends", "children"],
    meta_fields=["first", "blocks"],
)
@dataclasses.dataclass(frozen=True)
class Player:
    """One player's side of the sequence form: legal actions only, in blocks of information sets alike in width.

    An entry is an action of an own information set; sequence 1 + e is entry e. Entries go depth by depth, and within
    a depth block by block: a block [W, R] has R sets of at most W actions, and padding that is never played.

    Attributes:
      first: the first of its information sets in the tree's numbering.
      blocks: for each depth the shapes (W, R) of its blocks.
      taken: int32[E], each entry's place in a table, A * set + action; 0 for padding.
      place: int32[J, A], the entry of an action; E where it is illegal.
      sets: int32[E], the information set of each entry, in the order of the blocks.
      uniform: float64[E], uniform play; 0 for padding.
      before: for each depth but the first int32[entries], the parent entry within the depth above.
      ends: G of each sequence, from the opponent's realisation plan.
      children: for each depth but the last, sums of the values of the sets one deeper by their parent entry.
    """

    first: int
    blocks: tuple[tuple[tuple[int, int], ...], ...]
    taken: Array
    place: Array
    sets: Array
    uniform: Array
    before: tuple[Array, ...]
    ends: GatherSum
    children: tuple[GatherSum, ...]

    def rows(self, table: Array) -> Array:
        """Returns the player's entries of a table: [E], from [I, A]."""
        return jnp.where(self.uniform > 0, table.reshape(-1)[self.taken], 0)

    def table(self, rows: Array, elsewhere: float = 0.0) -> Array:
        """Returns entries as the player's part of a table: [J, A], from [E]."""
        legal = self.place < rows.shape[0]
        return jnp.where(legal, rows[jnp.where(legal, self.place, 0)], elsewhere)

    @property
    def depths(self) -> list[slice]:
        """The entries of each depth."""
        sizes = [sum(width * sets for width, sets in blocks) for blocks in self.blocks]
        return [slice(low, high) for low, high in itertools.pairwise([0, *itertools.accumulate(sizes)])]

    @property
    def every_block(self) -> tuple[tuple[int, int], ...]:
        """The blocks of all depths."""
        return tuple(itertools.chain(*self.blocks))


SequenceForm = tuple[Player, Player]
Blocks = tuple[tuple[int, int], ...]


def over_rows(combine: Callable[[Array, Array], Array], blocks: Blocks, entries: Array) -> Array:
    """Combines the actions of each information set: [sets], from [entries]."""
    parts, start = [], 0
    for width, sets in blocks:
        block = entries[start : start + width * sets].reshape(width, sets)
        parts.append(functools.reduce(combine, [block[n] for n in range(width)]))
        start += width * sets
    return jnp.concatenate(parts)


@functools.lru_cache(maxsize=8)
def sequence_form(tree: Tree) -> SequenceForm:
    """Builds the sequence form of a two-player tree, on the device in float64.

    Raises:
      InputError: not two players.
    """
    if tree.game.num_players != 2:
        raise InputError(f"{tree.game.name} has {tree.game.num_players} players; exact values are for two")
    layouts = tuple(_layout(tree, player) for player in range(2))
    with jax.enable_x64(True):
        return tuple(jax.tree.map(jnp.asarray, _side(tree, layouts, player)) for player in range(2))


class _Layout(NamedTuple):
    """Where one player's sets and actions lie: `blocks`, int[J] the sets in their order, `taken` and `place`."""

    blocks: tuple[Blocks, ...]
    order: np.ndarray
    taken: np.ndarray
    place: np.ndarray


def _layout(tree: Tree, player: int) -> _Layout:
    """Puts a player's information sets into blocks, by depth and by number of actions up to the next power of two."""
    own = tree.owner == player
    legal, depth = tree.legal[own], tree.depth[own]
    sets, actions = legal.shape
    width = legal.sum(axis=1)
    kind = np.ceil(np.log2(np.maximum(width, 1))).astype(int)
    order = np.lexsort((kind, depth))
    ranked = np.argsort(~legal, axis=1, kind="stable")
    blocks, taken, start = [], [], 0
    for n in range(depth.max(initial=-1) + 1):
        here = []
        for k in np.unique(kind[depth == n]):
            members = order[start : start + np.sum((depth == n) & (kind == k))]
            start += len(members)
            most = width[members].max()
            column = np.arange(most)[:, None]
            flat = actions * members + ranked[members, :most].T
            taken.append(np.where(column < width[members], flat, sets * actions).reshape(-1))
            here.append((int(most), len(members)))
        blocks.append(tuple(here))
    taken = np.concatenate([*taken, np.zeros(0, np.int64)])
    place = np.full(sets * actions + 1, len(taken))
    place[taken] = np.arange(len(taken))
    place[-1] = len(taken)
    return _Layout(tuple(blocks), order, taken, place[:-1].reshape(sets, actions))


def _side(tree: Tree, layouts: tuple[_Layout, _Layout], player: int) -> Player:
    firsts, actions = np.searchsorted(tree.owner, np.arange(3)), tree.game.num_actions
    own, layout = slice(firsts[player], firsts[player + 1]), layouts[player]
    entries, ends = len(layout.taken), tree.player < 0
    mine, others = (
        _entry_of(tree.sequence[ends, p] - actions * firsts[p], layouts[p]) + 1 for p in (player, 1 - player)
    )
    weight = tree.chance[ends] * tree.payoff[ends, player]
    parents = _entry_of(tree.before[own] - actions * firsts[player], layout)[layout.order]
    sizes = [(sum(w * n for w, n in blocks), sum(n for _, n in blocks)) for blocks in layout.blocks]
    owners, before, children, start, low = [np.zeros(0, np.int64)], [], [], 0, 0
    for n, (size, sets) in enumerate(sizes):
        firsts_here = np.cumsum([0, *(count for _, count in layout.blocks[n])])
        here = [np.tile(np.arange(count), width) for width, count in layout.blocks[n]]
        owner = np.concatenate([first + x for first, x in zip(firsts_here[:-1], here, strict=True)])
        owners.append(low + owner)
        if n:
            above = sizes[n - 1][0]
            local = parents[low : low + sets] - (start - above)
            before.append(local[owner].astype(np.int32))
            children.append(plan_gather_sum(local, above, np.arange(sets), np.ones(sets)))
        start, low = start + size, low + sets
    uniform = np.append(tree.legal[own] / np.maximum(tree.legal[own].sum(axis=1, keepdims=True), 1), 0.0)
    return Player(
        first=int(firsts[player]),
        blocks=layout.blocks,
        taken=np.where(uniform[layout.taken] > 0, actions * firsts[player] + layout.taken, 0).astype(np.int32),
        place=layout.place.astype(np.int32),
        sets=np.concatenate(owners).astype(np.int32),
        uniform=uniform[layout.taken],
        before=tuple(before),
        ends=plan_gather_sum(mine, 1 + entries, others, weight),
        children=tuple(children),
    )


def _entry_of(sequence: np.ndarray, layout: _Layout) -> np.ndarray:
    """Returns the entries of sequences counted from the player's own first set; -1 for the empty one, 0 or less."""
    return np.where(sequence <= 0, -1, layout.place.reshape(-1)[np.maximum(sequence, 1) - 1])


def realisation(side: Player, rows: Array) -> Array:
    """Returns X: each own sequence's product of the player's probabilities, float64[1 + E]; X(EMPTY) = 1."""
    parts = [jnp.ones(1, rows.dtype)]
    for n, here in enumerate(side.depths):
        # By entry: XLA on CPU miscompiles the gather by set followed by its broadcast over the set's actions.
        reach = parts[-1][side.before[n - 1]] if n else 1.0
        parts.append(reach * rows[here])
    return jnp.concatenate(parts)


def counterfactual_values(side: Player, rows: Array | None, opponent: Array) -> tuple[Array, Array]:
    """Sweeps a player's decisions backwards.

    Args:
      side: the player.
      rows: float64[E], what it plays; None for its best response.
      opponent: the opponent's realisation plan.
    Returns:
      (value of the game to the player, Q float64[E]); Q is meaningless for padding.
    """
    ends = gather_sum(side.ends, opponent)
    at_once, ends = ends[EMPTY], ends[1:]
    values, below = [], None
    for n in reversed(range(len(side.blocks))):
        here, blocks = side.depths[n], side.blocks[n]
        q = ends[here]
        if below is not None:
            q = q + gather_sum(side.children[n], below)
        if rows is None:
            below = over_rows(jnp.maximum, blocks, jnp.where(side.uniform[here] > 0, q, -jnp.inf))
        else:
            below = over_rows(jnp.add, blocks, rows[here] * q)
        values.append(q)
    total = at_once if below is None else at_once + jnp.sum(below)
    return total, jnp.concatenate(values[::-1]) if values else jnp.zeros(0)


@jax.jit
def _expected_value(form: SequenceForm, table: Array) -> Array:
    plans = [realisation(side, side.rows(table)) for side in form]
    return jnp.stack([counterfactual_values(form[p], form[p].rows(table), plans[1 - p])[0] for p in range(2)])


@functools.partial(jax.jit, static_argnums=2)
def _best_response(form: SequenceForm, table: Array, player: int) -> tuple[Array, Array]:
    side, other = form[player], form[1 - player]
    value, q = counterfactual_values(side, None, realisation(other, other.rows(table)))
    best = jnp.argmax(side.table(q, -jnp.inf), axis=1)
    rows = jax.nn.one_hot(best, table.shape[1], dtype=table.dtype)
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
    wrong = (np.abs(sums - 1) > _TOLERANCE) | (table < 0).any(axis=1) | np.where(tree.legal, 0, table).any(axis=1)
    wrong |= ~np.isfinite(sums)
    if wrong.any():
        first = int(np.argmax(wrong))
        raise InputError(
            f"the policy is no distribution over the legal actions in {int(wrong.sum())} of {len(wrong)} information "
            f"sets, first in number {first}: {np.round(table[first], 4).tolist()}"
        )
    return jnp.asarray(table / sums[:, None])
