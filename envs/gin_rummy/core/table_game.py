"""What games on the shared table have in common: deals as decks, deadwood, and how rounds make a game."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import cards, dealing
from envs.game import Game
from envs.gin_rummy.core.rules import GinRules, match_rules, preset_name
from envs.gin_rummy.core.table import Table
from envs.match_rules import MatchRules

_POINTS = np.float32(100)
"""Of deadwood in a potential of 1."""


class TableGame(Game):
    """A game of gin rummy whose state has a `table` and a `phase`; what can be done on it is the game's own.

    Attributes:
      rules: of the round.
    """

    rules: GinRules

    @property
    def max_length(self) -> int:
        """Actions after which a round is over."""
        return self.rules.max_actions

    @property
    def preset(self) -> str | None:
        """The name of the preset that the rules are."""
        return preset_name(self.rules)

    def match_rules(self, preset: str | None = None) -> MatchRules:
        """Returns how rounds make a game: of a preset, by default the one these rules are."""
        return match_rules(self.rules, preset)

    def deal_of(self, state: Any) -> tuple[int, ...]:
        """Returns the deck."""
        return dealing.whole_deck(jax.device_get(state.table.deck), self.rules.num_cards)

    def from_deal(self, deal: Sequence[int | float]) -> Any:
        """Deals a deck.

        Raises:
          InputError: it is no permutation of the cards.
        """
        return dealing.dealt(self, dealing.check_deck(deal, self.rules.num_cards))

    def resample_chance(self, state: Any, key: Array) -> Any:
        """Shuffles the stock."""
        deck = cards.shuffle_from(state.table.deck, self.rules.dealt + state.table.drawn, key)
        return dataclasses.replace(state, table=dataclasses.replace(state.table, deck=deck))

    def phase(self, state: Any) -> Array:
        """Returns the index into the game's PHASES: int32."""
        return state.phase

    def potential(self, state: Any, player: Array) -> Array:
        """Returns -deadwood / 100 of the hand of `player`: float32."""
        return -self._deadwood(state.table, player) / _POINTS

    def _deadwood(self, board: Table, player: Array) -> Array:
        """Returns a player's deadwood, the least over one discard if a card has been drawn: int32 points."""
        return jnp.where(player == 1, board.deadwood[1], board.deadwood[0])
