"""The exact form of a game: its tree where it has one, else what its payoffs factor into."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import jax
import numpy as np

from dream.game_tree.exact import ExactForm, ExactValues, is_listed
from dream.game_tree.placement.form import kept_form
from dream.game_tree.placement.lists import BASE
from dream.game_tree.sequence_form import SequenceForm, best_response, checked, exact_values, sequence_form
from dream.game_tree.tabular_policy import table_index, table_policy, tabulate
from dream.game_tree.tree import Tree, kept_tree
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

    def best_response(self, table: np.ndarray, player: int) -> tuple[float, np.ndarray]:
        """Returns a player's best answer to a table: its value, and the table with the player's rows replaced."""
        return best_response(self.tree, table, player)

    def mixed(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Returns the table whose player 0 plays one table and whose player 1 another."""
        return np.where(self.tree.owner[:, None] == 0, first, second)

    def plans(self, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns both players' realisation plans when they play a table."""
        with jax.enable_x64(True):
            entries = [own.entries(checked(self.tree, table)) for own in self.players]
            return tuple(np.asarray(own.realisation(e)) for own, e in zip(self.players, entries, strict=True))

    @functools.cached_property
    def index(self) -> dict[str, np.ndarray]:
        """The index by which a policy finds its rows."""
        return table_index(self.tree)

    def policy(self, table: np.ndarray) -> Policy:
        """Returns the policy that plays a table."""
        return table_policy(self.index, table, self.game)


def exact_form(game: Game, find_tree: Callable[[EnumerableGame], Tree] = kept_tree) -> ExactForm:
    """Returns the form by which a game's exact values are computed.

    Args:
      game: of two players, enumerable or a phantom game.
      find_tree: enumerable game -> its tree.
    Raises:
      InputError: neither, or a tree that cannot be built.
    """
    if isinstance(game, EnumerableGame):
        return TreeForm(find_tree(game))
    if game.hidden_placement is not None and not is_listed(game):
        raise InputError(
            f"{game.name} has {game.hidden_placement.cells} cells: exact values of phantom games are computed for at "
            f"most {BASE - 1}; use a lower bound"
        )
    if game.hidden_placement is None:
        raise InputError(f"{game.name} is not enumerable: exact values cannot be computed; use a lower bound")
    return kept_form(game)
