"""A match of rummy 500 as a plain object: rounds of RummyGame with scores carried on."""

from __future__ import annotations

from typing import Any

import numpy as np

from envs.errors import InputError
from envs.rules import build_rules
from envs.rummy500.host import RummyGame, seed_of
from envs.rummy500.rules import RummyRules
from envs.values import read_as


class RummyMatch:
    """Rounds until a score reaches the target; the player after the one who began a round begins the next.

    Attributes:
      target: the score that ends the match.
      game: the round under way, or the last one.
      totals: each player's score of the rounds that are finished and counted.
      history: each counted round's scores.
    """

    def __init__(self, num_players: int = 3, target: int = 500, seed: int | None = None, **rules: Any) -> None:
        """Deals the first round.

        Args:
          num_players: 2 to 6.
          target: 1 or more.
          seed: of all deals; a random one by default.
          **rules: further fields of `RummyRules`.
        Raises:
          InputError: too many players, an unknown rule, a target below 1, or no seed of 32 bits.
        """
        target = read_as(int, target)
        if type(target) is not int or target < 1:
            raise InputError(f"target={target!r} is not valid; it must be a whole number, 1 or more")
        self._rules, self._rng = {"num_players": num_players, **rules}, np.random.default_rng(seed_of(seed))
        checked = build_rules(RummyRules, RummyRules(), self._rules)
        self.target, self.totals, self.history = target, [0] * checked.num_players, list[list[int]]()
        self.game = self._dealt(int(self._rng.integers(checked.num_players)) if checked.random_first else 0)

    def _dealt(self, first: int) -> RummyGame:
        self._first = first
        order = self._rng.permutation(52).tolist()
        game = RummyGame(deck=order, **self._rules)
        game.begin(first)
        return game

    @property
    def is_over(self) -> bool:
        """Whether a counted score has reached the target."""
        return max(self.totals) >= self.target

    @property
    def winners(self) -> list[int]:
        """The seats of the highest score; empty while the match is on."""
        return [seat for seat, total in enumerate(self.totals) if total == max(self.totals)] if self.is_over else []

    def step(self, action: int | str) -> None:
        """Plays an action of the player to act, by its id or its name; where it ends the round, its scores count.

        Raises:
          InputError: an illegal action.
        """
        self.game.step(action)
        if self.game.is_over:
            scores = self.game.scores()
            self.history.append(scores)
            self.totals = [total + score for total, score in zip(self.totals, scores, strict=True)]

    def next_round(self) -> None:
        """Deals the next round.

        Raises:
          InputError: the present one is not over, or the match is.
        """
        if not self.game.is_over:
            raise InputError("the round is not over")
        if self.is_over:
            raise InputError(f"the match is over; scores {self.totals}")
        self.game = self._dealt((self._first + 1) % len(self.totals))

    def __repr__(self) -> str:
        """Returns how the match stands."""
        return f"RummyMatch(target {self.target}, rounds {len(self.history)}, scores {self.totals})"
