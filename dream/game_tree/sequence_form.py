"""Exact values of tabular policies on a game's tree: expected value, best response, NashConv.

In sequence form. With X_p(s) the product of p's own probabilities along sequence s ("realisation plan"), the payoff to
p of playing sequence s against the others is linear:

    G_p(s) = sum over terminal histories z that end p's play with s of chance(z) * payoff_p(z) * X_others(z),
    Q_p(i, a) = G_p(i, a) + sum over p's information sets j whose parent sequence is (i, a) of V_p(j),
    V_p(i) = sum over a of policy(i, a) * Q_p(i, a)         (or the maximum, for a best response),

swept from p's last decisions to its first. Q is the counterfactual value of the literature. Sums over terminal
histories and child sets are gathers along precomputed index lists, so a sweep costs a few passes over the terminals.

One player's arrays hold its legal actions only, "entries" e, depth by depth (depth: own decisions before). Sets of a
depth are grouped into blocks by width, and a block [W, R] is stored action by action:

    tree's table [I, A]            entries of one player, sets a, b (2 actions) and c (3 actions, one deeper)
    set a:  0 1 .                  depth 0, block [2, 2]        depth 1, block [3, 1]
    set b:  . 3 4        ->        e:           0   1   2   3   4   5   6
    set c:  5 6 7                  set, action  a0  b1  a1  b2  c0  c1  c2
                                   flat_index   0   4   1   5   6   7   8     = A * set + action
                                   infoset_of   0   1   0   1   2   2   2     row among the sets in block order

entry_of is the inverse of flat_index: entry_of[b, 1] = 1. Sequence 0 is the empty one, sequence 1 + e is entry e. If c
follows action a1, parent_entry of its depth is 2, 2, 2, and child_sums of depth 0 adds the value of c to Q(a1).
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

from dream.compiled import devices
from dream.equations.distributions import TOLERANCE
from dream.game_tree.exact import ExactValues, values_of
from dream.game_tree.gather_sum import GatherSum, gather_sum, plan_gather_sum
from dream.game_tree.tree import EMPTY, Tree
from envs import Game, Policy
from envs.errors import InputError, whole_number
from envs.random_play import uniform


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["flat_index", "entry_of", "infoset_of", "uniform", "parent_entry", "terminal_sums", "child_sums"],
    meta_fields=["first_infoset", "blocks"],
)
@dataclasses.dataclass(frozen=True)
class PlayerSequences:
    """One player's sequences: legal actions only, in blocks of information sets alike in width (see the module).

    A block [W, R] has R sets of at most W actions, and padding that is never played.

    Attributes:
      first_infoset: the first of its J information sets in the tree's numbering.
      blocks: for each depth the shapes (W, R) of its blocks.
      flat_index: int32[E], of each entry in a table of the tree, A * set + action; 0 for padding.
      entry_of: int32[J, A], the entry of an action; E where it is illegal.
      infoset_of: int32[E], the information set of each entry, in the order of the blocks.
      uniform: float64[E], uniform play; 0 for padding.
      parent_entry: for each depth but the first int32[entries], the parent entry within the depth above.
      terminal_sums: G of each sequence, from the opponent's realisation plan.
      child_sums: for each depth but the last, sums of the values of the sets one deeper by their parent entry.
    """

    first_infoset: int
    blocks: tuple[tuple[tuple[int, int], ...], ...]
    flat_index: Array
    entry_of: Array
    infoset_of: Array
    uniform: Array
    parent_entry: tuple[Array, ...]
    terminal_sums: GatherSum
    child_sums: tuple[GatherSum, ...]

    def entries(self, table: Array) -> Array:
        """Returns the player's entries of a table: [E], from [I, A]."""
        return jnp.where(self.uniform > 0, table.reshape(-1)[self.flat_index], 0)

    def table(self, entries: Array, elsewhere: float = 0.0) -> Array:
        """Returns entries as the player's part of a table: [J, A], from [E]."""
        legal = self.entry_of < entries.shape[0]
        return jnp.where(legal, entries[jnp.where(legal, self.entry_of, 0)], elsewhere)

    def realisation(self, policy: Array) -> Array:
        """Returns X: each own sequence's product of the player's probabilities, float64[1 + E]; X(EMPTY) = 1."""
        parts = [jnp.ones(1, policy.dtype)]
        for n, here in enumerate(self.depths):
            reach = parts[-1][self.parent_entry[n - 1]] if n else 1.0
            parts.append(reach * policy[here])
        return jnp.concatenate(parts)

    def terminal_values(self, opponent: Array) -> Array:
        """Returns G of each sequence against the opponent's realisation plan: float64[1 + E]."""
        return gather_sum(self.terminal_sums, opponent)

    def sweep(self, policy: Array | None, terminal: Array) -> tuple[Array, Array]:
        """Sweeps the player's decisions backwards.

        Args:
          policy: float64[E], what it plays; None for its best response.
          terminal: G.
        Returns:
          (value of the game to the player, Q float64[E]); Q is meaningless for padding.
        """
        without_decision, terminal = terminal[EMPTY], terminal[1:]
        values, infoset_values = [], None
        for n in reversed(range(len(self.blocks))):
            here, blocks = self.depths[n], self.blocks[n]
            q = terminal[here]
            if infoset_values is not None:
                q = q + gather_sum(self.child_sums[n], infoset_values)
            if policy is None:
                infoset_values = over_actions(jnp.maximum, blocks, jnp.where(self.uniform[here] > 0, q, -jnp.inf))
            else:
                infoset_values = over_actions(jnp.add, blocks, policy[here] * q)
            values.append(q)
        total = without_decision if infoset_values is None else without_decision + jnp.sum(infoset_values)
        return total, jnp.concatenate(values[::-1]) if values else jnp.zeros(0)

    def total(self, entries: Array) -> Array:
        """Returns for each entry the sum over its information set."""
        return over_actions(jnp.add, self.every_block, entries)[self.infoset_of]

    def legal_only(self, entries: Array) -> Array:
        """Returns entries with 0 for padding."""
        return jnp.where(self.uniform > 0, entries, 0)

    def normalised(self, weights: Array) -> Array:
        """Divides the weights of each information set by their sum; uniform where they are all 0."""
        total = self.total(weights)
        return jnp.where(total > 0, weights / jnp.where(total > 0, total, 1), self.uniform)

    @property
    def depths(self) -> list[slice]:
        """The entries of each depth."""
        sizes = [sum(width * sets for width, sets in blocks) for blocks in self.blocks]
        return [slice(low, high) for low, high in itertools.pairwise([0, *itertools.accumulate(sizes)])]

    @property
    def every_block(self) -> tuple[tuple[int, int], ...]:
        """The blocks of all depths."""
        return tuple(itertools.chain(*self.blocks))


SequenceForm = tuple[PlayerSequences, PlayerSequences]
Blocks = tuple[tuple[int, int], ...]


def over_actions(combine: Callable[[Array, Array], Array], blocks: Blocks, entries: Array) -> Array:
    """Combines the actions of each information set: [sets], from [entries]."""
    parts, start = [], 0
    for width, sets in blocks:
        block = entries[start : start + width * sets].reshape(width, sets)
        parts.append(functools.reduce(combine, [block[n] for n in range(width)]))
        start += width * sets
    return jnp.concatenate(parts)


@devices.kept(8)
def sequence_form(tree: Tree) -> SequenceForm:
    """Builds the sequence form of a two-player tree, on the device in float64.

    Raises:
      InputError: not two players, or one of them never decides; or a game in place of its tree.
    """
    if isinstance(tree, Game):
        raise InputError(f"the game {tree.name} is not a tree; build_tree(game) makes one")
    if tree.game.num_players != 2:
        raise InputError(f"{tree.game.name} has {tree.game.num_players} players; exact values are for two players")
    for player in range(2):
        if not np.any(tree.owner == player):
            raise InputError(
                f"{tree.game.name}: player {player} never decides; exact values are for games in which both players do"
            )
    layouts = tuple(_layout(tree, player) for player in range(2))
    with jax.enable_x64(True):
        return tuple(jax.tree.map(jnp.asarray, _player_sequences(tree, layouts, player)) for player in range(2))


class _Layout(NamedTuple):
    """How one player's sets and actions are ordered, sets counted from the player's first.

    Attributes:
      blocks: as in PlayerSequences.
      order: int[J], the sets in the order of the blocks.
      flat_index: int[E], A * set + action; A * J for padding.
      entry_of: int[J, A], the entry of an action; E where it is illegal.
    """

    blocks: tuple[Blocks, ...]
    order: np.ndarray
    flat_index: np.ndarray
    entry_of: np.ndarray


def _layout(tree: Tree, player: int) -> _Layout:
    """Puts a player's information sets into blocks, by depth and by number of actions up to the next power of two."""
    own = tree.owner == player
    legal, depth = tree.legal[own], tree.depth[own]
    sets, actions = legal.shape
    width = legal.sum(axis=1)
    kind = np.ceil(np.log2(np.maximum(width, 1))).astype(int)
    order = np.lexsort((kind, depth))
    ranked = np.argsort(~legal, axis=1, kind="stable")
    blocks, parts, start = [], [], 0
    for n in range(depth.max(initial=-1) + 1):
        here = []
        for k in np.unique(kind[depth == n]):
            members = order[start : start + np.sum((depth == n) & (kind == k))]
            start += len(members)
            most = width[members].max()
            column = np.arange(most)[:, None]
            flat = actions * members + ranked[members, :most].T
            parts.append(np.where(column < width[members], flat, sets * actions).reshape(-1))
            here.append((int(most), len(members)))
        blocks.append(tuple(here))
    flat_index = np.concatenate([*parts, np.zeros(0, np.int64)])
    entry_of = np.full(sets * actions + 1, len(flat_index))
    entry_of[flat_index] = np.arange(len(flat_index))
    entry_of[-1] = len(flat_index)  # where padding wrote
    return _Layout(tuple(blocks), order, flat_index, entry_of[:-1].reshape(sets, actions))


def _player_sequences(tree: Tree, layouts: tuple[_Layout, _Layout], player: int) -> PlayerSequences:
    first_infosets, actions = np.searchsorted(tree.owner, np.arange(3)), tree.game.num_actions
    first, layout = first_infosets[player], layouts[player]
    legal = tree.legal[first : first_infosets[player + 1]]
    infoset_of, parent_entry, child_sums = _depths(tree, layout, first, len(legal))
    even = np.append(uniform(legal), 0.0)[layout.flat_index]
    over = tree.player < 0
    own, others = (
        _entries_of(tree.sequence[over, p] - actions * first_infosets[p], layouts[p]) + 1 for p in (player, 1 - player)
    )
    weight = tree.chance[over] * tree.payoff[over, player]
    return PlayerSequences(
        first_infoset=int(first),
        blocks=layout.blocks,
        flat_index=np.where(even > 0, actions * first + layout.flat_index, 0).astype(np.int32),
        entry_of=layout.entry_of.astype(np.int32),
        infoset_of=infoset_of.astype(np.int32),
        uniform=even,
        parent_entry=parent_entry,
        terminal_sums=plan_gather_sum(own, 1 + len(layout.flat_index), others, weight),
        child_sums=child_sums,
    )


def _depths(
    tree: Tree, layout: _Layout, first: int, sets: int
) -> tuple[np.ndarray, tuple[np.ndarray, ...], tuple[GatherSum, ...]]:
    """Returns a player's `infoset_of`, `parent_entry` and `child_sums`; it has `sets` sets, from the tree's `first` on.

    Each depth's entries and sets come after those of the depth before; parents are counted within that depth.
    """
    parents = _entries_of(tree.before[first : first + sets] - tree.game.num_actions * first, layout)[layout.order]
    infoset_of, parent_entry, child_sums = [np.zeros(0, np.int64)], [], []
    first_entry = first_set = entries_above = 0
    for n, blocks in enumerate(layout.blocks):
        starts = np.cumsum([0, *(count for _, count in blocks)])
        within = [
            start + np.tile(np.arange(count), width) for start, (width, count) in zip(starts[:-1], blocks, strict=True)
        ]
        set_of = np.concatenate(within)
        entries, count = len(set_of), int(starts[-1])
        infoset_of.append(first_set + set_of)
        if n:
            parent = parents[first_set : first_set + count] - (first_entry - entries_above)
            parent_entry.append(parent[set_of].astype(np.int32))
            child_sums.append(plan_gather_sum(parent, entries_above, np.arange(count), np.ones(count)))
        first_entry, first_set, entries_above = first_entry + entries, first_set + count, entries
    return np.concatenate(infoset_of), tuple(parent_entry), tuple(child_sums)


def _entries_of(sequence: np.ndarray, layout: _Layout) -> np.ndarray:
    """Returns the entries of sequences counted from the player's own first set; -1 for the empty one, 0 or less."""
    return np.where(sequence <= 0, -1, layout.entry_of.reshape(-1)[np.maximum(sequence, 1) - 1])


def realisation(own: PlayerSequences, policy: Array) -> Array:
    """Returns a player's realisation plan: float64[1 + E]."""
    return own.realisation(policy)


def counterfactual_values(own: PlayerSequences, policy: Array | None, opponent: Array) -> tuple[Array, Array]:
    """Returns (value of the game to a player, Q float64[E]), from the opponent's realisation plan.

    Args:
      own: the player.
      policy: float64[E], what it plays; None for its best response.
      opponent: the opponent's realisation plan.
    """
    return own.sweep(policy, own.terminal_values(opponent))


@jax.jit
def _values(form: SequenceForm, table: Array) -> tuple[Array, Array]:
    expected, best = values_of(form, tuple(own.entries(table) for own in form))
    return jnp.stack(expected), jnp.stack(best)


@functools.partial(jax.jit, static_argnums=2)
def _best_response(form: SequenceForm, table: Array, player: int) -> tuple[Array, Array]:
    own, other = form[player], form[1 - player]
    value, q = counterfactual_values(own, None, realisation(other, other.entries(table)))
    best = jnp.argmax(own.table(q, -jnp.inf), axis=1)
    rows = jax.nn.one_hot(best, table.shape[1], dtype=table.dtype)
    return value, jax.lax.dynamic_update_slice(table, rows, (own.first_infoset, 0))


def expected_value(tree: Tree, table: np.ndarray) -> np.ndarray:
    """Returns the value of the game to each player when all play a table: float64[2], in units of reward."""
    with jax.enable_x64(True):
        return np.asarray(_values(sequence_form(tree), checked(tree, table))[0])


def best_response(tree: Tree, table: np.ndarray, player: int) -> tuple[float, np.ndarray]:
    """Returns a player's best answer to a table.

    Args:
      tree: the game.
      table: float[I, A], what the others play.
      player: who answers.
    Returns:
      (its value to the player, in units of reward; float64[I, A], the table with the player's rows replaced).
    Raises:
      InputError: no such player, or as `checked`.
    """
    player = whole_number("player", player, "0 or 1")
    if player not in (0, 1):
        raise InputError(f"player={player} is not valid; it must be 0 or 1")
    with jax.enable_x64(True):
        value, best = _best_response(sequence_form(tree), checked(tree, table), player)
        return float(value), np.asarray(best)


def nash_conv(tree: Tree, table: np.ndarray) -> float:
    """Returns the sum over players of what a best response gains: 0 at an equilibrium, in units of reward.

    Exploitability, as reported here, is half of it.
    """
    return exact_values(tree, table).nash_conv


def exact_values(tree: Tree, table: np.ndarray) -> ExactValues:
    """Returns the value of play and of best responses when all play a table."""
    with jax.enable_x64(True):
        expected, best = jax.device_get(_values(sequence_form(tree), checked(tree, table)))
    return ExactValues(tuple(expected.tolist()), tuple(best.tolist()))


def checked(tree: Tree, table: np.ndarray) -> Array:
    """Returns a table as float64 on the device, each row divided by its sum.

    Raises:
      InputError: a row that is not a distribution over its legal actions, or a policy.
    """
    if isinstance(table, Policy):
        raise InputError("a policy is not a table; tabulate(tree, policy) makes one")
    table = np.asarray(table, np.float64)
    if table.shape != tree.legal.shape:
        raise InputError(f"a table of shape {table.shape} does not fit the tree; it must be {tree.legal.shape}")
    sums = table.sum(axis=1)
    wrong = (np.abs(sums - 1) > TOLERANCE) | (table < 0).any(axis=1) | np.where(tree.legal, 0, table).any(axis=1)
    wrong |= ~np.isfinite(sums)
    if wrong.any():
        first = int(np.argmax(wrong))
        raise InputError(
            f"the policy is not a distribution over the legal actions in {int(wrong.sum())} of {len(wrong)} "
            f"information sets, first in number {first}: {np.round(table[first], 4).tolist()}"
        )
    return jnp.asarray(table / sums[:, None])
