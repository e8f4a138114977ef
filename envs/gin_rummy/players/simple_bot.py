"""OpenSpiel's simple gin rummy bot as a Policy.

It takes the upcard if that lets it knock or is part of the best meld group of hand and upcard; discards the highest
card outside the best group, the last suit first; knocks at once; at the wall knocks if it may; lays the best group's
melds, the last listed first; and never lays off. "Best group" is OpenSpiel's (openspiel/meld_ids.py).

OpenSpiel's bot has a fault: against gin it passes before it has laid a meld, which ends the round there and counts all
its cards. `faithful` reproduces that; by default it is fixed.

Source: behaviour of open_spiel/bots/gin_rummy/simple_gin_rummy_bot.cc, as pyspiel 2.0.2 plays.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs import cards
from envs.batching import lanes_last, where_needed
from envs.cards import NUM_RANKS, NUM_SUITS
from envs.errors import InputError, shown
from envs.game import Game, Policy
from envs.gin_rummy.core.rules import GinRules
from envs.gin_rummy.event_log.game import GinRummy
from envs.gin_rummy.event_log.state import GinView
from envs.gin_rummy.melding import melds
from envs.gin_rummy.openspiel.game import OpenSpielGinRummy
from envs.gin_rummy.openspiel.ids import (
    DISCARD,
    DRAW,
    FIRST_UPCARD,
    KNOCK,
    KNOCKS,
    LAYS,
    MELDS,
    NUM_WORDS,
    PASS,
    STOCK,
    TAKE,
    WALL,
    WALL_STOCK,
)
from envs.gin_rummy.openspiel.meld_ids import best_group, group_of, last_meld, simple_keys
from envs.gin_rummy.openspiel.state import OpenSpielView, laid_cards, select_player

OPENSPIEL_SUITS = np.array([0, 3, 2, 1])
"""OpenSpiel's suits s, c, d, h as suits S, H, D, C of the other gin games; its own inverse."""
_STOCK, _TAKE, _PASS, _DISCARDS = 0, 1, 2, 3
_EVENT_LOG_DISCARD = 4


def make(game: Game, faithful: bool = False) -> Policy:
    """Builds the bot for a game.

    Args:
      game: `gin_rummy_openspiel` or `gin_rummy`.
      faithful: whether it has the fault of OpenSpiel's bot against gin too; in `gin_rummy` melds lay themselves, and
        it makes no difference.
    Raises:
      InputError: another game, or `faithful` is no bool.
    """
    if not isinstance(faithful, bool | np.bool_):
        raise InputError(f"faithful={shown(repr(faithful))} is not valid; it must be True or False")
    if isinstance(game, OpenSpielGinRummy):
        return Policy(_OpenSpielPlayer(game.rules.num_ranks, bool(faithful)))
    if type(game) is GinRummy:
        return Policy(_EventLogPlayer(game.rules))
    raise InputError(f"simple_bot does not play {game.name}; it plays gin_rummy and gin_rummy_openspiel")


def choice(game: OpenSpielGinRummy, faithful: bool = False) -> Callable[[OpenSpielView, Array], Array]:
    """Builds the bot for `gin_rummy_openspiel` as a function of a view and the packed legal actions.

    Args:
      game: the game.
      faithful: as in `make`.
    Returns:
      (view, uint32[8] as `legal_words` gives) -> int32, the action the Policy is certain of.
    """
    player = _OpenSpielPlayer(game.rules.num_ranks, faithful)

    def chosen(view: OpenSpielView, words: Array) -> Array:
        plain = words[TAKE // 32]
        cards_legal = (words[0] | (plain & np.uint32((1 << TAKE % 32) - 1))) != 0
        may_draw, may_knock = (((plain >> action % 32) & 1) == 1 for action in (STOCK, KNOCKS))
        action = player.action(view, cards_legal, may_draw, may_knock)
        word = functools.reduce(lambda low, n: jnp.where(action // 32 == n, words[n], low), range(NUM_WORDS), words[0])
        legal = (word >> (action % 32).astype(jnp.uint32)) & 1 == 1
        return jnp.where(legal, action, _last(words))

    return chosen


def _last(words: Array) -> Array:
    """Returns the last of the packed actions, -1 for none: int32."""
    last = jnp.int32(-1)
    for n in range(NUM_WORDS):
        last = jnp.where(words[n] != 0, 32 * n + 31 - lax.clz(words[n]).astype(jnp.int32), last)
    return last


class _Plan(NamedTuple):
    """What the bot makes of a hand with a card drawn.

    Attributes:
      left: int32[4] suit masks of the cards outside the best group.
      deadwood: int32, points of those but the highest.
      keys: int32[3], the places of the group's sets (`meld_ids.Group`); -1 in a hand without conflict.
    """

    left: Array
    deadwood: Array
    keys: Array


def _plan(hand: Array, needed: Array) -> _Plan:
    """Analyses a hand, int32[4] suit masks in OpenSpiel's order; where not needed only a lower bound, at no cost."""
    unmatched = melds.unmatched_cards(hand)

    def exact(masks: Array) -> tuple[Array, Array]:
        group = best_group(masks)
        return group.left, group.keys

    simple = unmatched, jnp.full(3, -1)
    left, keys = where_needed(needed & melds.has_conflict(hand), exact, simple, hand)
    return _Plan(left, melds.points_but_highest(left), keys)


def _highest(masks: Array) -> tuple[Array, Array]:
    """Returns suit and rank of the highest rank's last suit, int32 each; meaningless where there is no card."""
    rank = 31 - lax.clz((masks[0] | masks[1] | masks[2] | masks[3]) | 1)
    held = (masks >> rank) & 1
    suit = jnp.max(jnp.where(held == 1, np.arange(NUM_SUITS), 0))
    return suit, rank


def _discard(hand: Array, left: Array, needed: Array) -> tuple[Array, Array]:
    """Returns suit and rank of the discard: the highest card left; if all are melded the first that keeps gin."""
    none_left = needed & jnp.all(left == 0)

    def keeping_gin(hand: Array) -> Array:
        return jnp.argmin(melds.deadwood_after_discard(hand).reshape(-1)).astype(jnp.int32)

    first = where_needed(none_left, keeping_gin, jnp.int32(0), hand)
    suit, rank = _highest(left)
    return jnp.where(none_left, first // NUM_RANKS, suit), jnp.where(none_left, first % NUM_RANKS, rank)


@lanes_last
def _next_meld(whole: Array, hand: Array, keys: Array) -> Array:
    """Returns the meld to lay next, -1 for none: int32 id, from the hand at first, what is left, and `_Plan.keys`."""
    keys = jnp.where(keys < 0, simple_keys(whole), keys)
    return last_meld(group_of(whole, keys), hand)


def _cards_of(ids: Array) -> Array:
    """Returns the cards of melds, 255 for none: int32[4] suit masks, from uint8[3]."""
    return lax.reduce(laid_cards(ids).astype(jnp.int32), np.int32(0), lax.bitwise_or, (0,))


def _only(action: Array, legal: Array) -> Array:
    """Returns certainty of an action, of the last legal one should it be illegal: float32[A]."""
    ids = np.arange(legal.shape[0])
    chosen = jnp.where(jnp.any(legal & (ids == action)), action, jnp.max(jnp.where(legal, ids, -1)))
    return (ids == chosen).astype(jnp.float32)


@dataclasses.dataclass(frozen=True)
class _OpenSpielPlayer:
    """The bot on `gin_rummy_openspiel`."""

    num_ranks: int
    faithful: bool

    def __call__(self, params: tuple[()], view: OpenSpielView, legal: Array) -> Array:
        """Returns the action's probability 1: float32[241]."""
        return _only(self.action(view, jnp.any(legal[:TAKE]), legal[STOCK], legal[KNOCKS]), legal)

    def action(self, view: OpenSpielView, cards_legal: Array, may_draw: Array, may_knock: Array) -> Array:
        """Returns the action, given whether a card may be played, the stock drawn from, knocked: int32."""
        phase = view.phase
        draws = (phase == FIRST_UPCARD) | (phase == DRAW)
        upcard = cards.signed_id(view.upcard)
        offered = jnp.where(draws, cards.card_mask(upcard, self.num_ranks), np.uint16(0)).astype(jnp.int32)
        hand = view.hand.astype(jnp.int32)
        full = (phase == DISCARD) | ((phase == KNOCK) & cards_legal)
        lays = ((phase == KNOCK) | (phase == MELDS)) & ~full
        laid = jnp.where(lays, _cards_of(select_player(view.laid, view.seat)), 0)
        plan = _plan(hand | offered | laid, full | lays | self._may_take(view, hand, offered))
        knocks = plan.deadwood <= view.knock_card
        takes = (knocks | jnp.all(plan.left & offered == 0)) & (view.stock != WALL_STOCK)
        suit, rank = _discard(hand, plan.left, full)
        discard = suit * self.num_ranks + rank
        lays = lays & ~self._gives_up(view)
        meld = where_needed(lays, _next_meld, jnp.int32(-1), hand | laid, hand, plan.keys)
        action = jnp.where(lays & (meld >= 0), LAYS + meld, PASS)
        action = jnp.where(full, jnp.where((phase == DISCARD) & knocks, KNOCKS, discard), action)
        action = jnp.where((phase == WALL) & may_knock, KNOCKS, action)
        return jnp.where(draws, jnp.where(takes, TAKE, jnp.where(may_draw, STOCK, PASS)), action)

    def _may_take(self, view: OpenSpielView, hand: Array, offered: Array) -> Array:
        """Returns whether the upcard may be worth taking (it fits a meld, or the rest allows a knock): bool."""
        unmatched = melds.unmatched_cards(hand | offered)
        fits = jnp.any(offered & ~unmatched != 0)
        return fits | (jnp.any(offered != 0) & (melds.points_but_highest(unmatched) <= view.knock_card))

    def _gives_up(self, view: OpenSpielView) -> Array:
        """Returns whether the bot passes instead of laying its melds, as OpenSpiel's does against gin: bool."""
        if not self.faithful:
            return jnp.bool_(False)
        laid = [jnp.sum(lax.population_count(_cards_of(row))) for row in view.laid]
        own = jnp.sum(lax.population_count(jnp.concatenate([view.hand, view.laid_off]))).astype(jnp.int32)
        mine, theirs = jnp.where(view.seat == 1, laid[1], laid[0]), jnp.where(view.seat == 1, laid[0], laid[1])
        return (view.phase == MELDS) & (theirs == own + mine)


@dataclasses.dataclass(frozen=True)
class _EventLogPlayer:
    """The bot on `gin_rummy`; it does not discard the card it took, which that game forbids."""

    rules: GinRules

    def __call__(self, params: tuple[()], view: GinView, legal: Array) -> Array:
        """Returns the action's probability 1: float32[107]."""
        rules = self.rules
        discards = view.phase == _EVENT_LOG_DISCARD
        top = cards.signed_id(view.top)
        offered = jnp.where(discards, np.uint16(0), cards.card_mask(top, rules.num_ranks))
        offered = offered.astype(jnp.int32)[OPENSPIEL_SUITS]
        hand = view.hand.astype(jnp.int32)[OPENSPIEL_SUITS]
        plan = _plan(hand | offered, jnp.bool_(True))
        knocks = plan.deadwood <= rules.knock_limit
        takes = knocks | jnp.all(plan.left & offered == 0)
        allowed = legal[_DISCARDS : _DISCARDS + rules.num_cards]
        allowed = cards.to_mask(allowed, rules.num_ranks).astype(jnp.int32)[OPENSPIEL_SUITS]
        suit, rank = _discard(hand, plan.left & allowed, discards)
        card = jnp.asarray(OPENSPIEL_SUITS)[suit] * rules.num_ranks + rank
        knock = _DISCARDS + rules.num_cards + card
        discard = jnp.where(knocks & legal[jnp.minimum(knock, legal.shape[0] - 1)], knock, _DISCARDS + card)
        draw = jnp.where(takes & legal[_TAKE], _TAKE, jnp.where(legal[_PASS], _PASS, _STOCK))
        return _only(jnp.where(discards, discard, draw), legal)
