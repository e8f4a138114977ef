"""Rummy 500 to its target: rounds whose scores are carried on, until one of them reaches it.

The player after the one who began a round begins the next. All chance is decided at the deal: the deck of each round
follows from a number that nobody sees. Rewards are those of the rounds, each paid when its round ends.

The observation is that of a round, and after it each player's score at the start of the round / target, own first, and
rounds played / max_rounds; scores beyond 16 targets count as 16.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import cards, drawing
from envs.errors import InputError
from envs.rules import check_bounds
from envs.rummy500 import determinize
from envs.rummy500.game import POINTS, Rummy500
from envs.rummy500.state import RummyState, RummyView

_BOUND = 16.0
"""No entry of an observation is greater, as adapters promise."""
_MIDDLE = 1 << 15
"""Added to scores in a view, which holds no negative numbers."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class MatchState(RummyState):
    """A match in play: the round under way, and what was before it.

    Attributes:
      totals: int32[P], scores of the finished rounds.
      rounds: int32, finished rounds.
      first: int32, who began the round under way.
      seed: uint32, from which the decks of later rounds follow. Hidden.
    """

    totals: Array
    rounds: Array
    first: Array
    seed: Array


MatchView = NamedTuple("MatchView", [(name, Any) for name in (*RummyView._fields, "totals", "rounds")])
"""What a player may know: the fields of RummyView of the round under way; totals, uint16[P], the scores of finished
rounds + 2^15, relative, own first; rounds, uint16, how many there are."""


def totals_by_seat(view: MatchView) -> list[int]:
    """Returns the scores of finished rounds by seat (host side)."""
    players = len(view.totals)
    return [int(view.totals[(seat - int(view.seat)) % players]) - _MIDDLE for seat in range(players)]


@dataclasses.dataclass(frozen=True)
class MatchRummy500(Rummy500):
    """Rummy 500 over rounds.

    Attributes:
      target: the match ends after the round in which a score reaches it; the highest score wins.
      max_rounds: it ends after so many rounds at the latest.
    """

    target: int = 500
    max_rounds: int = 40
    pays_at_end = False

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
          InputError: a rule out of range.
        """
        check_bounds(self, {"target": (1, 10_000), "max_rounds": (1, 200)})

    @property
    def observation_size(self) -> int:
        """Numbers in the observation."""
        return super().observation_size + self.num_players + 1

    @property
    def max_length(self) -> int:
        """Actions after which a match is over."""
        return self.max_rounds * super().max_length

    @property
    def worst_reward(self) -> float:
        """That of a round, in every round."""
        return self.max_rounds * super().worst_reward

    @property
    def largest_payment(self) -> float:
        """The most that is won or lost in one step, which is for one round."""
        return abs(super().worst_reward)

    def init(self, key: Array) -> MatchState:
        """Deals the first round."""
        round_key, seed_key = jax.random.split(key)
        return self._begun(super().init(round_key), jax.random.bits(seed_key))

    def from_deck(self, deck: Array) -> MatchState:
        """Deals the first round from a deck, as in a single one; the decks of later rounds follow from 0."""
        return self._begun(super().from_deck(deck), jnp.uint32(0))

    def _begun_by(self, deal: MatchState, player: Array) -> MatchState:
        begun = super()._begun_by(deal, player)
        return dataclasses.replace(begun, first=begun.current_player)

    def _begun(self, dealt: RummyState, seed: Array) -> MatchState:
        fields = {field.name: getattr(dealt, field.name) for field in dataclasses.fields(RummyState)}
        nothing = jnp.zeros(self.num_players, jnp.int32)
        return MatchState(
            **fields, totals=nothing, rounds=jnp.int32(0), first=dealt.current_player, seed=seed.astype(jnp.uint32)
        )

    def step(self, state: MatchState, action: Array) -> tuple[MatchState, Array, Array]:
        """Plays an action; where it ends a round that is not the last, the next one is dealt."""
        after, rewards, ended = super().step(state, action)
        ends = ended & (state.current_player >= 0)
        totals = state.totals + jnp.where(ends, self.scores(after), 0)
        rounds = state.rounds + ends
        over = (jnp.max(totals) >= self.target) | (rounds >= self.max_rounds)
        after = dataclasses.replace(after, totals=totals, rounds=rounds)
        dealt = self._next(after)
        goes_on = ends & ~over
        new = jax.tree.map(lambda one, two: jnp.where(goes_on, one, two), dealt, after)
        return new, rewards, new.current_player < 0

    def _next(self, state: MatchState) -> MatchState:
        """Deals the next round."""
        key = jax.random.fold_in(jax.random.key(state.seed), state.rounds)
        first = (state.first + 1) % self.num_players
        dealt = super().from_deck(cards.shuffle(key))
        begun = self._begun(dataclasses.replace(dealt, current_player=first), state.seed)
        return dataclasses.replace(begun, totals=state.totals, rounds=state.rounds)

    def view(self, state: MatchState, player: Array) -> MatchView:
        """Returns the view of the round, and the scores before it."""
        player = jnp.asarray(player, jnp.int32)
        relative = (np.arange(self.num_players, dtype=np.int32) + player) % self.num_players
        seen = super().view(state, player)
        return MatchView(
            *seen,
            totals=jnp.clip(state.totals[relative] + _MIDDLE, 0, 2 * _MIDDLE - 1).astype(jnp.uint16),
            rounds=state.rounds.astype(jnp.uint16),
        )

    def determinize(self, view: MatchView, key: Array) -> MatchState:
        """Deals anew what a player cannot see of the round under way, and the decks of later rounds.

        Raises:
          InputError: where the pile is made a new stock; who saw it remembers more than the view.
        """
        if self.rules.reshuffle:
            raise InputError(f"{self.name} with reshuffle cannot redeal what a view does not show")
        deal_key, seed_key = jax.random.split(key)
        seen = RummyView(**{name: getattr(view, name) for name in RummyView._fields})
        dealt = determinize.sample(self.num_players, seen, deal_key, self.rules)
        seat = view.seat.astype(jnp.int32)
        return dataclasses.replace(
            self._begun(dealt, jax.random.bits(seed_key)),
            totals=view.totals.astype(jnp.int32)[(np.arange(self.num_players) - seat) % self.num_players] - _MIDDLE,
            rounds=view.rounds.astype(jnp.int32),
            first=(dealt.current_player - dealt.turns) % self.num_players,
        )

    def resample_chance(self, state: MatchState, key: Array) -> MatchState:
        """Shuffles the stock, and draws the decks of later rounds anew."""
        stock_key, seed_key = jax.random.split(key)
        return dataclasses.replace(super().resample_chance(state, stock_key), seed=jax.random.bits(seed_key))

    def encode(self, view: MatchView) -> Array:
        """Returns the observation vector, as the module says."""
        totals = (view.totals.astype(jnp.float32) - _MIDDLE) / np.float32(self.target)
        totals = jnp.clip(totals, -_BOUND, _BOUND)
        rounds = view.rounds[None].astype(jnp.float32) / np.float32(self.max_rounds)
        return jnp.concatenate([super().encode(view), totals, rounds])

    def potential(self, state: MatchState, player: Array) -> Array:
        """Returns the score of the match if the round under way ended now, / 100."""
        now = jnp.where(state.current_player < 0, 0.0, super().potential(state, player))
        return state.totals[player] / POINTS + now

    def result(self, state: MatchState, player: Array) -> dict[str, Array]:
        """Returns the share of the match's win, the score of the match, and the rounds it took."""
        best = state.totals == jnp.max(state.totals)
        by_name = {
            "shared_win_rate": best[player] / jnp.sum(best),
            "score": state.totals[player],
            "rounds": state.rounds,
        }
        return {name: value.astype(jnp.float32) for name, value in by_name.items()}

    def deal_of(self, state: MatchState) -> tuple[int, ...]:
        """Returns the first deck, who acts first, and the number the later decks follow from."""
        return (*super().deal_of(state), int(state.seed))

    def from_deal(self, deal: Sequence[int | float]) -> MatchState:
        """Deals the first deck; after it who acts first, and the number the later decks follow from.

        Raises:
          InputError: no permutation of the cards, no such player, or no 32-bit number.
        """
        seed = deal[-1] if len(deal) > 1 else -1
        if type(seed) is not int or not 0 <= seed < 2**32:
            raise InputError("the deal ends with no number of 32 bits, from which later decks follow")
        return dataclasses.replace(super().from_deal(deal[:-1]), seed=jnp.uint32(seed))

    def to_dict(self, state: MatchState) -> dict[str, Any]:
        """Describes the round under way, and the match."""
        whole = {"totals": np.asarray(state.totals).tolist(), "rounds": int(state.rounds), "target": self.target}
        return {**super().to_dict(state), **whole}

    def scene(self, state: MatchState, viewer: int | None = None) -> drawing.Scene:
        """Returns the round under way, and the scores of those before."""
        shown = super().scene(state, viewer)
        totals = ", ".join(f"player {n} {int(total)}" for n, total in enumerate(np.asarray(state.totals)))
        row = drawing.Row("score", note=f"{totals} of {self.target} after {int(state.rounds)} rounds")
        return dataclasses.replace(shown, rows=(*shown.rows, row))
