"""The exact form of a game: its tree where it has one, else what its payoffs factor into."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import numpy as np

from dream.game_tree.exact import ExactForm, ExactValues
from dream.game_tree.placement.form import kept_form
from dream.game_tree.sequence_form import SequenceForm, exact_values, sequence_form
from dream.game_tree.tabular_policy import tabulate
from dream.game_tree.tree import Tree, build_tree
from envs.errors import InputError
from envs.game import EnumerableGame, Game, Policy


@dataclasses.dataclass(frozen=True, eq=False)
class TreeForm:
    """A game walked through whole; a table is float64[I, A].

    Attributes:
      tree: the game's.
    """

    tree: Tree

    @property
    def game(self) -> Game:
        """The game."""
        return self.tree.game

    @property
    def num_infosets(self) -> int:
        """Information sets of both players."""
        return self.tree.num_infosets

    @property
    def players(self) -> SequenceForm:
        """Both players' sequences."""
        return sequence_form(self.tree)

    def tabulate(
        self, policy: Policy, progress: Callable[[int, int], None] = lambda done, all_of_them: None
    ) -> np.ndarray:
        """Returns a policy's table; raises InputError where it is none."""
        table = tabulate(self.tree, policy)
        progress(self.num_infosets, self.num_infosets)
        return table

    def values(self, table: np.ndarray) -> ExactValues:
        """Returns what a table is worth to each player, and what its best response earns."""
        return exact_values(self.tree, table)


_built = functools.lru_cache(maxsize=4)(build_tree)


def exact_form(game: Game, find_tree: Callable[[EnumerableGame], Tree] = _built) -> ExactForm:
    """Returns the form by which a game's exact values are computed.

    Args:
      game: of two players, enumerable or one of hidden stones.
      find_tree: enumerable game -> its tree.
    Raises:
      InputError: neither, or a tree that cannot be built.
    """
    if isinstance(game, EnumerableGame):
        return TreeForm(find_tree(game))
    if game.hidden_placement is None:
        raise InputError(f"{game.name} is not enumerable: exact values are out of reach; use a lower bound")
    return kept_form(game)
