"""Exact values from the players' sequences alone: realisation plans in, values of sequences out.

What a game has to offer for it, and the formulas on top, which are the same for a game walked through whole
(sequence_form.py) and for one whose payoffs factor (placement/). With X a realisation plan and G_p(s) the payoff to p
of ending play with sequence s against the opponent's plan,

    value of play      = sum over p's sequences s of X_p(s) G_p(s),
    best response      = a sweep over p's decisions from the last to the first that takes the best action,
    NashConv           = sum over players of (best response - value of play).

Arrays are of the form's own kind, NumPy's or JAX's; a player's "entries" are its legal actions in all information sets.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import jax
import numpy as np

from dream.game_tree.placement.lists import BASE
from envs.game import EnumerableGame, Game, Policy

Entries = Any
"""float64[E] of one player, NumPy or JAX."""


class OwnSequences(Protocol):
    """One player's sequences: 0 is the empty one, 1 + e is entry e."""

    def realisation(self, policy: Entries) -> Any:
        """Returns X: each sequence's product of the player's own probabilities, float64[1 + E]."""

    def terminal_values(self, opponent: Any) -> Any:
        """Returns G: the payoff of ending play with each sequence against an opponent's plan, float64[1 + E]."""

    def sweep(self, policy: Entries | None, terminal: Any) -> tuple[Any, Entries]:
        """Returns (value of the game, counterfactual values Q float64[E]) of a policy, None for the best response."""

    def total(self, entries: Entries) -> Entries:
        """Returns for each entry the sum over its information set."""

    def legal_only(self, entries: Entries) -> Entries:
        """Returns entries with 0 where they are no legal action's but padding."""

    def normalised(self, weights: Entries) -> Entries:
        """Divides the weights of each information set by their sum; uniform where they are all 0."""


class ExactForm(Protocol):
    """A two-player game whose values can be computed exactly; tables are of the form's own kind."""

    @property
    def game(self) -> Game:
        """The game."""

    @property
    def num_infosets(self) -> int:
        """Information sets of both players."""

    @property
    def players(self) -> tuple[OwnSequences, OwnSequences]:
        """Both players' sequences."""

    def tabulate(self, policy: Policy, progress: Callable[[int, int], None] = ...) -> Any:
        """Returns a policy's table, evaluated on every information set; raises InputError where it is none."""

    def values(self, table: Any) -> ExactValues:
        """Returns what a table is worth."""

    def best_response(self, table: Any, player: int) -> tuple[float, Any]:
        """Returns a player's best answer to a table: its value, and the table with the player's part replaced."""

    def mixed(self, first: Any, second: Any) -> Any:
        """Returns the table whose player 0 plays one table and whose player 1 another."""

    def plans(self, table: Any) -> tuple[Any, Any]:
        """Returns both players' realisation plans when they play a table."""

    def policy(self, table: Any) -> Policy:
        """Returns the policy that plays a table."""


@dataclasses.dataclass(frozen=True)
class ExactValues:
    """What a policy of both players is worth, in units of reward.

    Attributes:
      expected: the value of the game to each player when both play it.
      best: each player's best response to it.
    """

    expected: tuple[float, float]
    best: tuple[float, float]

    @property
    def nash_conv(self) -> float:
        """What both best responses gain; exploitability is half of it."""
        return sum(self.best) - sum(self.expected)


def round_robin(form: ExactForm, plans: Sequence[tuple[Any, Any]]) -> np.ndarray:
    """Returns what each of n policies earns against each other, the mean over both seats: float64[n, n], in reward.

        payoff[i, j] = (X_0^i . G_0(X_1^j) - X_0^j . G_0(X_1^i)) / 2

    Args:
      form: the game, zero-sum.
      plans: each policy's realisation plans, of player 0 and of player 1.
    """
    first = np.empty((len(plans), len(plans)))
    with jax.enable_x64(True):
        for j, (_, answer) in enumerate(plans):
            gained = form.players[0].terminal_values(answer)
            first[:, j] = [float((plan * gained).sum()) for plan, _ in plans]
    return (first - first.T) / 2


def is_exact(game: Game) -> bool:
    """Returns whether a game's values can be computed exactly, by its tree or without."""
    return game.num_players == 2 and (isinstance(game, EnumerableGame) or is_listed(game))


def is_listed(game: Game) -> bool:
    """Returns whether a game is a phantom game whose lists of tries can be held: a cell is a decimal digit of them."""
    return game.hidden_placement is not None and game.hidden_placement.cells < BASE


def has_exploitability(game: Game) -> bool:
    """Returns whether a game has an exact exploitability: its values are exact, and it is zero-sum."""
    return is_exact(game) and game.zero_sum


def values_of(players: tuple[OwnSequences, OwnSequences], policies: tuple[Entries, Entries]) -> tuple[list, list]:
    """Returns the value of play and of a best response, of each player in turn."""
    plans = [own.realisation(policy) for own, policy in zip(players, policies, strict=True)]
    terminal = [own.terminal_values(plans[1 - p]) for p, own in enumerate(players)]
    expected = [(plan * gained).sum() for plan, gained in zip(plans, terminal, strict=True)]
    return expected, [own.sweep(None, gained)[0] for own, gained in zip(players, terminal, strict=True)]
