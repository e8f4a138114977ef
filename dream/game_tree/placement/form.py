"""A phantom game in sequence form: what dream/game_tree/exact.py asks of a game, without a tree."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax import Array

from dream.equations.distributions import TOLERANCE
from dream.game_tree.exact import ExactValues, values_of
from dream.game_tree.placement.lists import Lists, Outcome, digits, empty_list, expand, open_cells
from dream.game_tree.placement.payoff import Payoff, Places, families_of, meetings_of, places
from dream.game_tree.placement.reach import reach_of
from dream.game_tree.tabular_policy import table_index, table_policy
from envs import check_plays
from envs.errors import InputError
from envs.game import Game, HiddenPlacement, Policy
from envs.traces import forget_other_traces

Table = tuple[np.ndarray, np.ndarray]
"""Action probabilities of each player's entries: float64[E] each."""
_BATCH = 1 << 15
_MANY = 1 << 20


@dataclasses.dataclass(frozen=True, eq=False)
class Stage:
    """A player's decisions after so many own tries: R information sets of W actions each.

    Attributes:
      depth: own tries before.
      lists: of the information sets.
      width: W.
      parent: int32[R], the entry of the stage before that each set follows; first those after a success.
      split: how many sets follow a success.
      entries: where the stage's [W, R] block is among the player's entries.
    """

    depth: int
    lists: Lists
    width: int
    parent: np.ndarray
    split: int
    entries: slice

    @property
    def shape(self) -> tuple[int, int]:
        """The block's."""
        return self.width, len(self.lists)


@dataclasses.dataclass(frozen=True, eq=False)
class PlacementSequences:
    """One player's sequences; sequence 0 is the empty one, sequence 1 + e entry e. Arrays are numpy's.

    Attributes:
      player: 0 or 1.
      stages: of the decisions.
      payoff: of the game.
    """

    player: int
    stages: tuple[Stage, ...]
    payoff: Payoff

    @functools.cached_property
    def num_entries(self) -> int:
        """Legal actions of all information sets."""
        return self.stages[-1].entries.stop

    @property
    def num_infosets(self) -> int:
        """Information sets."""
        return sum(len(stage.lists) for stage in self.stages)

    def blocks(self, entries: np.ndarray) -> list[np.ndarray]:
        """Returns the entries of each stage, as views: [W, R]."""
        return [entries[stage.entries].reshape(stage.shape) for stage in self.stages]

    def uniform(self) -> np.ndarray:
        """Returns uniform play: float64[E]."""
        return np.concatenate([np.full(stage.width * len(stage.lists), 1 / stage.width) for stage in self.stages])

    def realisation(self, policy: np.ndarray) -> np.ndarray:
        """Returns X: each sequence's product of the player's own probabilities, float64[1 + E]."""
        plan = np.empty(1 + self.num_entries)
        plan[0] = 1.0
        before = plan[:1]
        for stage, chosen in zip(self.stages, self.blocks(policy), strict=True):
            here = plan[1:][stage.entries].reshape(stage.shape)
            np.multiply(np.take(before, stage.parent), chosen, out=here)
            before = here.reshape(-1)
        return plan

    def terminal_values(self, opponent: np.ndarray) -> np.ndarray:
        """Returns G: the payoff of ending play with each sequence, against an opponent's plan; float64[1 + E]."""
        return self.payoff.values(self.player, opponent)

    def sweep(self, policy: np.ndarray | None, terminal: np.ndarray) -> tuple[float, np.ndarray]:
        """Sweeps the decisions backwards.

        Args:
          policy: float64[E], what the player plays; None for its best response.
          terminal: float64[1 + E], the payoff of ending play with each sequence.
        Returns:
          (value of the game to the player, counterfactual values Q float64[E]).
        """
        q, below = terminal[1:].copy(), None
        chosen = None if policy is None else self.blocks(policy)
        for n in reversed(range(len(self.stages))):
            here = q[self.stages[n].entries]
            if below is not None:
                after = self.stages[n + 1]
                here[after.parent[: after.split]] += below[: after.split]
                here[after.parent[after.split :]] += below[after.split :]
            block = here.reshape(self.stages[n].shape)
            below = block.max(axis=0) if chosen is None else np.einsum("wr,wr->r", chosen[n], block)
        return float(terminal[0] + below.sum()), q

    def total(self, entries: np.ndarray) -> np.ndarray:
        """Returns for each entry the sum over its information set: float64[E]."""
        out = np.empty_like(entries)
        for block, total in zip(self.blocks(entries), self.blocks(out), strict=True):
            total[:] = block.sum(axis=0)
        return out

    def legal_only(self, entries: np.ndarray) -> np.ndarray:
        """Returns the entries: there is no padding."""
        return entries

    def normalised(self, weights: np.ndarray) -> np.ndarray:
        """Divides the weights of each information set by their sum; uniform where they are all 0."""
        policy = np.empty_like(weights)
        for block, chosen in zip(self.blocks(weights), self.blocks(policy), strict=True):
            total = block.sum(axis=0)
            np.divide(block, np.where(total > 0, total, 1.0), out=chosen)
            chosen[:, total <= 0] = 1 / len(block)
        return policy

    def log_normalised(self, logits: np.ndarray) -> np.ndarray:
        """Returns the logarithms of the softmax over each information set's entries: float64[E]."""
        logs = np.empty_like(logits)
        for block, chosen in zip(self.blocks(logits), self.blocks(logs), strict=True):
            shifted = block - block.max(axis=0)
            np.subtract(shifted, np.log(np.exp(shifted).sum(axis=0)), out=chosen)
        return logs

    def best_actions(self, q: np.ndarray) -> np.ndarray:
        """Returns the policy that takes the first best action everywhere: float64[E]."""
        policy = np.zeros_like(q)
        for block, chosen in zip(self.blocks(q), self.blocks(policy), strict=True):
            np.put_along_axis(chosen, block.argmax(axis=0)[None], 1.0, axis=0)
        return policy


@dataclasses.dataclass(frozen=True, eq=False)
class PlacementForm:
    """A phantom game: both players' sequences. A table is a pair of float64[E], one for each player.

    Attributes:
      game: the game.
      players: their sequences.
    """

    game: Game
    players: tuple[PlacementSequences, PlacementSequences]

    @property
    def num_infosets(self) -> int:
        """Information sets of both players."""
        return sum(own.num_infosets for own in self.players)

    def uniform(self) -> Table:
        """Returns the table of uniform play."""
        return tuple(own.uniform() for own in self.players)

    def halves(self, entries: np.ndarray) -> Table:
        """Returns what is player 0's and player 1's of entries that hold both in turn, as views."""
        cut = self.players[0].num_entries
        return entries[:cut], entries[cut:]

    def values(self, table: Table) -> ExactValues:
        """Returns what a table is worth to each player, and what its best response earns."""
        expected, best = values_of(self.players, table)
        return ExactValues(tuple(map(float, expected)), tuple(map(float, best)))

    def best_response(self, table: Table, player: int) -> tuple[float, Table]:
        """Returns a player's best answer to a table.

        Args:
          table: what the opponent plays.
          player: who answers.
        Returns:
          (its value to the player, in units of reward; the table with the player's part replaced).
        """
        own, other = self.players[player], self.players[1 - player]
        value, q = own.sweep(None, own.terminal_values(other.realisation(table[1 - player])))
        best = own.best_actions(q)
        return value, (best, table[1]) if player == 0 else (table[0], best)

    def mixed(self, first: Table, second: Table) -> Table:
        """Returns the table whose player 0 plays one table and whose player 1 another."""
        return first[0], second[1]

    def plans(self, table: Table) -> tuple[np.ndarray, np.ndarray]:
        """Returns both players' realisation plans when they play a table."""
        return tuple(own.realisation(entries) for own, entries in zip(self.players, table, strict=True))

    def decisions(self, batch: int) -> Iterator[tuple[int, slice, Any, np.ndarray, Stage]]:
        """Goes through all information sets, at most `batch` of a stage at a time.

        Yields:
          (player, which sets of the stage, their views [n, ...], their legal cells uint8[n, W], the stage).
        """
        rules = self.game.hidden_placement
        for own in self.players:
            for depth, stage in enumerate(own.stages):
                cells = open_cells(rules, own.player, depth)
                for start in range(0, len(stage.lists), batch):
                    rows = slice(start, min(start + batch, len(stage.lists)))
                    lists = stage.lists.take(rows)
                    views = rules.view(own.player, digits(lists.tries, depth), lists.stones)
                    yield own.player, rows, views, cells[lists.stones | lists.failures], stage

    @property
    def views(self) -> Any:
        """The view of every information set, by player and number of tries: [I, ...]."""
        views = [views for _, _, views, _, _ in self.decisions(_MANY)]
        return jax.tree.map(lambda *parts: np.concatenate(parts), *views)

    @functools.cached_property
    def index(self) -> dict[str, np.ndarray]:
        """The index by which a policy finds its rows."""
        return table_index(self)

    def policy(self, table: Table) -> Policy:
        """Returns the policy that plays a table, in float32."""
        rows = np.zeros((self.num_infosets, self.game.num_actions), np.float32)
        first = 0
        for player, sets, _, cells, stage in self.decisions(_MANY):
            block = table[player][stage.entries].reshape(stage.shape)[:, sets]
            np.put_along_axis(
                rows[first : first + len(cells)], cells.astype(np.int64), block.T.astype(np.float32), axis=1
            )
            first += len(cells)
        return table_policy(self.index, rows, self.game)

    def tabulate(self, policy: Policy, progress: Callable[[int, int], None] = lambda done, all_of_them: None) -> Table:
        """Evaluates a policy on every information set.

        Args:
          policy: of the game.
          progress: called with how many information sets are done, and of how many.
        Raises:
          InputError: it is not a distribution over the legal actions somewhere, or a policy of another game.
        """
        check_plays(policy, self.game)
        table, done = tuple(np.empty(own.num_entries) for own in self.players), 0
        for player, rows, views, cells, stage in self.decisions(_BATCH):
            count, missing = len(cells), _BATCH - len(cells)
            padded = jax.tree.map(lambda x, missing=missing: np.pad(x, (0, missing), mode="edge"), views)
            legal = np.zeros((_BATCH, self.game.num_actions), bool)
            legal[np.arange(count)[:, None], cells] = True
            legal[count:] = legal[count - 1]
            probs = np.asarray(_apply(policy, padded, legal))[:count].astype(np.float64)
            chosen = np.take_along_axis(probs, cells.astype(np.int64), axis=1)
            sums = chosen.sum(axis=1)
            wrong = ~(np.abs(sums - 1) <= TOLERANCE) | (chosen < 0).any(axis=1)
            wrong |= ~(np.abs(probs.sum(axis=1) - 1) <= TOLERANCE)
            if wrong.any():
                first = int(np.argmax(wrong))
                raise InputError(
                    f"the policy is not a distribution over the legal actions in {int(wrong.sum())} of {count} "
                    f"information sets of player {player} after {stage.depth} tries, first in number "
                    f"{rows.start + first}: {np.round(probs[first], 4).tolist()}"
                )
            block = table[player][stage.entries].reshape(stage.shape)
            block[:, rows] = (chosen / sums[:, None]).T
            done += count
            progress(done, self.num_infosets)
        return table


@jax.jit
def _apply(policy: Policy, views: Any, legal: Array) -> Array:
    return jax.vmap(policy)(views, legal)


def kept_form(game: Game) -> PlacementForm:
    """Returns a game's form: from memory, where the last one is of a game that does the same; else built."""
    return _kept(game, forget_other_traces(game))


@functools.lru_cache(maxsize=1)
def _kept(game: Game, source: str) -> PlacementForm:
    return placement_form(game)


def placement_form(
    game: Game, progress: Callable[[str, int, int], None] = lambda what, done, all_of_them: None
) -> PlacementForm:
    """Enumerates information sets and builds the payoff map.

    Args:
      game: with `hidden_placement`.
      progress: called with what is done, how much of it, and of how much.
    """
    rules = game.hidden_placement
    reach = tuple(reach_of(rules, player) for player in range(2))
    laid = tuple(families_of(rules, reach[player], player) for player in range(2))
    listed = [_stages(rules, reach[player], laid[player], player) for player in range(2)]
    progress("information sets", 1, 1)
    meetings = meetings_of(laid, functools.partial(progress, "payoffs"))
    sizes = tuple(1 + stages[-1].entries.stop for stages, _ in listed)
    payoff = Payoff(meetings, (listed[0][1], listed[1][1]), sizes)
    return PlacementForm(game, tuple(PlacementSequences(player, listed[player][0], payoff) for player in range(2)))


def _stages(
    rules: HiddenPlacement, reach: Any, families: dict[tuple[int, bool], Any], player: int
) -> tuple[tuple[Stage, ...], list[Places]]:
    """Enumerates a player's decisions, and places the lists they lead to."""
    stages, placed, first = [], [], 0
    sets, parent, split = empty_list(), np.zeros(1, np.int32), 1
    if (0, False) in families:  # the opponent may win with its first try
        placed.append(places(Outcome(sets, np.zeros(1, np.int32)), families[0, False], 0))
    for depth in range(rules.cells):
        if not len(sets):
            break
        found = expand(rules, reach, player, sets, depth)
        stages.append(Stage(depth, sets, found.width, parent, split, slice(first, first + found.width * len(sets))))
        for outcome, won in ((found.won, True), (found.waiting[0], False), (found.waiting[1], False)):
            turns = np.bitwise_count(outcome.lists.stones) if rules.failure_keeps_turn else depth + 1
            for turn in np.unique(turns):
                rows = np.flatnonzero(np.broadcast_to(turns == turn, len(outcome.entry)))
                if len(rows) and (int(turn), won) in families:
                    kept = dataclasses.replace(outcome, lists=outcome.lists.take(rows), entry=outcome.entry[rows])
                    placed.append(places(kept, families[int(turn), won], 1 + first))
        first += found.width * len(sets)
        sets, parent, split = found.next.lists, found.next.entry, found.split
    return tuple(stages), placed
