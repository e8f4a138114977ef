"""A game of hidden stones in sequence form: what dream/game_tree/exact.py asks of a game, without a tree."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from dream.game_tree.placement.lists import Lists, empty_list, expand
from dream.game_tree.placement.payoff import Payoff, Places, families_of, meetings_of, places
from dream.game_tree.placement.reach import reach_of
from envs.game import Game, HiddenPlacement


@dataclasses.dataclass(frozen=True, eq=False)
class Stage:
    """A player's decisions after so many own tries: R information sets of W actions each.

    Attributes:
      lists: of the information sets.
      width: W.
      parent: int32[R], the entry of the stage before that each set follows; first those after a success.
      split: how many sets follow a success.
      entries: where the stage's [W, R] block is among the player's entries.
    """

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

    def counterfactual_values(self, policy: np.ndarray | None, opponent: np.ndarray) -> tuple[float, np.ndarray]:
        """Sweeps the decisions backwards.

        Args:
          policy: float64[E], what the player plays; None for its best response.
          opponent: the opponent's realisation plan.
        Returns:
          (value of the game to the player, Q float64[E]).
        """
        values = self.terminal_values(opponent)
        nothing, q = values[0], values[1:]
        chosen = None if policy is None else self.blocks(policy)
        below = None
        for n in reversed(range(len(self.stages))):
            here = q[self.stages[n].entries]
            if below is not None:
                after = self.stages[n + 1]
                here[after.parent[: after.split]] += below[: after.split]
                here[after.parent[after.split :]] += below[after.split :]
            block = here.reshape(self.stages[n].shape)
            below = block.max(axis=0) if chosen is None else np.einsum("wr,wr->r", chosen[n], block)
        return float(nothing + below.sum()), q

    def over_actions(self, entries: np.ndarray) -> np.ndarray:
        """Returns the sum over each information set's actions, for each action: float64[E]."""
        out = np.empty_like(entries)
        for block, total in zip(self.blocks(entries), self.blocks(out), strict=True):
            total[:] = block.sum(axis=0)
        return out

    def normalised(self, weights: np.ndarray) -> np.ndarray:
        """Divides the weights of each information set by their sum; uniform where they are all 0."""
        policy = np.empty_like(weights)
        for block, chosen in zip(self.blocks(weights), self.blocks(policy), strict=True):
            total = block.sum(axis=0)
            np.divide(block, np.where(total > 0, total, 1.0), out=chosen)
            chosen[:, total <= 0] = 1 / len(block)
        return policy

    def best_actions(self, q: np.ndarray) -> np.ndarray:
        """Returns the policy that takes the first best action everywhere: float64[E]."""
        policy = np.zeros_like(q)
        for block, chosen in zip(self.blocks(q), self.blocks(policy), strict=True):
            np.put_along_axis(chosen, block.argmax(axis=0)[None], 1.0, axis=0)
        return policy


@dataclasses.dataclass(frozen=True, eq=False)
class PlacementForm:
    """A game of hidden stones: both players' sequences.

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
    return PlacementForm(
        game, tuple(PlacementSequences(player, listed[player][0], payoff) for player in range(2))
    )


def _stages(
    rules: HiddenPlacement, reach: Any, families: dict[tuple[int, bool], Any], player: int
) -> tuple[tuple[Stage, ...], list[Places]]:
    """Enumerates a player's decisions, and places the lists they lead to."""
    stages, placed, first = [], [], 0
    sets, parent, split = empty_list(), np.zeros(1, np.int32), 1
    for depth in range(rules.cells):
        if not len(sets):
            break
        found = expand(rules, reach, player, sets, depth)
        stages.append(Stage(sets, found.width, parent, split, slice(first, first + found.width * len(sets))))
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
