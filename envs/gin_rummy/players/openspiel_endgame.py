"""Exact play of what follows a knock in `gin_rummy_openspiel`, for a learner that leaves those decisions to it.

The knocker discards what leaves least deadwood and lays OpenSpiel's best melds; the defender lays off a card wherever
that does not spoil the least deadwood it can come to by own melds and layoffs together; at the wall a knock is made if
it may be. Every other decision is left open: there all probabilities are 0.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs.batching import lanes_last, where_needed
from envs.cards import NUM_SUITS
from envs.errors import InputError
from envs.game import Game, Policy
from envs.gin_rummy.melding import melds
from envs.gin_rummy.openspiel.game import OpenSpielGinRummy
from envs.gin_rummy.openspiel.ids import KNOCK, LAYOFF, MELDS, PASS, TAKE, WALL
from envs.gin_rummy.openspiel.state import OpenSpielView, laid_cards, select_player
from envs.gin_rummy.players import simple_bot

_MOST_LAYOFFS = 10


def make(game: Game) -> Policy:
    """Builds the assistant for `gin_rummy_openspiel`.

    Raises:
      InputError: another game.
    """
    if not isinstance(game, OpenSpielGinRummy):
        raise InputError(f"exact_endgame does not play {game.name}; it plays gin_rummy_openspiel")
    return Policy(_Endgame(game.rules.num_ranks, simple_bot.make(game)))


@dataclasses.dataclass(frozen=True)
class _Endgame:
    """The assistant's choice, from a view."""

    num_ranks: int
    bot: Policy

    def __call__(self, params: tuple[()], view: OpenSpielView, legal: Array) -> Array:
        """Returns the action's probability 1, or all 0 where the decision is left open: float32[A]."""
        phase, nothing = view.phase, jnp.zeros(legal.shape[0])
        discards = (phase == KNOCK) & jnp.any(legal[:TAKE])
        lays = ((phase == KNOCK) & ~discards) | (phase == MELDS) | (phase == WALL)
        chosen = where_needed(lays, lambda view, legal: self.bot(view, legal), nothing, view, legal)
        chosen = where_needed(discards, self._least, chosen, view, legal)
        return where_needed(phase == LAYOFF, self._laid_off, chosen, view, legal)

    def _least(self, view: OpenSpielView, legal: Array) -> Array:
        """Returns the discard that leaves least deadwood, the first of several: float32[A]."""
        left = melds.deadwood_after_discard(view.hand.astype(jnp.int32))[:, : self.num_ranks].reshape(-1)
        open_to = legal[: left.shape[0]]
        best = jnp.argmin(jnp.where(open_to, left, jnp.max(left) + 1))
        return (np.arange(legal.shape[0]) == best).astype(jnp.float32)

    def _laid_off(self, view: OpenSpielView, legal: Array) -> Array:
        """Returns a layoff that keeps the least deadwood in reach, a pass if there is none: float32[A]."""
        rows = laid_cards(select_player(view.laid, 1 - view.seat))
        hand, rows, off = (masks.astype(jnp.int32) for masks in (view.hand, rows, view.laid_off))
        now = _least_deadwood(hand, _ends(rows, off))
        open_to = jnp.nonzero(legal[:TAKE], size=_MOST_LAYOFFS, fill_value=TAKE)[0]

        def after(card: Array) -> Array:
            bit = jnp.where(np.arange(NUM_SUITS) == card // self.num_ranks, 1 << (card % self.num_ranks), 0)
            return jnp.where(card < TAKE, _least_deadwood(hand & ~bit, _ends(rows, off | bit)), melds.NOT_HELD)

        left = jax.vmap(after)(open_to)
        best = jnp.argmin(left)
        action = jnp.where((left[best] <= now) & (now < melds.deadwood(hand)), open_to[best], PASS)
        return (np.arange(legal.shape[0]) == action).astype(jnp.float32)


class _Ends(NamedTuple):
    """Where cards may be laid off; int32[4] suit masks.

    Attributes:
      now: the cards that may be laid off.
      above, below: those of them that allow one more beyond them, upwards and downwards.
    """

    now: Array
    above: Array
    below: Array


def _ends(rows: Array, laid_off: Array) -> _Ends:
    """Returns the places left at melds: a set lacks its fourth card, a run grows by two at either end.

    Args:
      rows: int32[n, 4] suit masks of the knocker's melds, empty where there is none.
      laid_off: int32[4] suit masks of the cards laid off so far.
    """
    is_set = lax.population_count(rows[:, 0] | rows[:, 1] | rows[:, 2] | rows[:, 3]) == 1
    ranks = (rows[:, 0] | rows[:, 1] | rows[:, 2] | rows[:, 3])[:, None]
    fourth = jnp.where(is_set[:, None], ranks & ~rows, 0)
    runs = jnp.where(is_set[:, None], 0, rows)
    above, below = (runs << 1) & ~runs, (runs >> 1) & ~runs
    beyond = ((above & laid_off) << 1) | ((below & laid_off) >> 1)
    now, above, below = (_union(x) & ~laid_off for x in (fourth | above | below | beyond, above, below))
    return _Ends(now, above, below)


def _union(rows: Array) -> Array:
    return lax.reduce(rows, np.int32(0), lax.bitwise_or, (0,))


def _least_deadwood(hand: Array, ends: _Ends) -> Array:
    """Returns the least deadwood over own melds and layoffs: int32 points.

    For every choice of own sets (melds.py) the rest decouples: three neighbours are a run of one's own, fewer are laid
    off as far as an end reaches.
    """
    return _least_in_reach(hand, *ends)


@lanes_last
def _least_in_reach(hand: Array, now: Array, above: Array, below: Array) -> Array:
    def covered(left: Array) -> Array:
        second = ((left & above) << 1) | ((left & below) >> 1)
        return (melds.run_cards(left) | now | second) & left

    return melds.over_suits(melds.points(hand)) - melds.most_melded(hand, covered)
