"""Players of `gin_rummy` at the table of `gin_rummy_openspiel`.

Draws, discards and the knock are theirs, on the same facts: cards are renamed from OpenSpiel's order of suits, and a
card taken is not discarded in the same turn, which only that game allows. What follows a knock, and the wall, which
`gin_rummy` has not, are played exactly (openspiel_endgame.py), the knock's discard included.

Where the upcard sets the knock card, they plan by the round's own, as they would by that limit in their rules.

OpenSpiel's view keeps no log. The one that is made up here has what these players read in it: how many discards each
player has made, whose cards are not known, and how the player to act came by its last card.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import cards
from envs.cards import NUM_CARDS, NUM_RANKS
from envs.game import Policy
from envs.gin_rummy.core import table
from envs.gin_rummy.core.rules import GinRules
from envs.gin_rummy.event_log import state as event_log
from envs.gin_rummy.event_log.game import GinRummy
from envs.gin_rummy.event_log.state import GinView
from envs.gin_rummy.melding import melds
from envs.gin_rummy.openspiel import ids
from envs.gin_rummy.openspiel.game import OpenSpielGinRummy
from envs.gin_rummy.openspiel.state import OpenSpielView, select_player
from envs.gin_rummy.players import openspiel_endgame, search
from envs.gin_rummy.players.simple_bot import OPENSPIEL_SUITS

_MOST_ACTIONS, _HIGHEST_KNOCK_CARD = 250, 10
_FIRST_CARD, _FIRST_KNOCK = 3, 3 + NUM_CARDS
_CARDS = (OPENSPIEL_SUITS[:, None] * NUM_RANKS + np.arange(NUM_RANKS)).reshape(-1)
"""int[52]: OpenSpiel's card ids as ids of the other gin games; its own inverse."""


def original(game: OpenSpielGinRummy) -> GinRummy | None:
    """Returns `gin_rummy` with the rules both games share; None where its players cannot be seated.

    They know the full deck, and hide what an observation with open hands shows.
    """
    rules = game.rules
    if rules.num_cards != NUM_CARDS or rules.hand_size != 10 or game.observation == "open_hands":
        return None
    limit = _HIGHEST_KNOCK_CARD if rules.oklahoma else rules.knock_card
    shared = {"gin_bonus": rules.gin_bonus, "undercut_bonus": rules.undercut_bonus, "knock_limit": limit}
    return GinRummy(GinRules(**shared, undercut_on_tie=False, max_actions=_MOST_ACTIONS))


def translated(player: Policy, game: OpenSpielGinRummy) -> Policy:
    """Returns a player of original(game) as a player of `game`."""
    plays = _Translated(player.apply, openspiel_endgame.make(game).apply, game.rules.oklahoma)
    return Policy(plays, player.params)


@dataclasses.dataclass(frozen=True)
class _Translated:
    """Plays by another game's policy, and exactly where that game is over."""

    apply: Callable[[Any, GinView, Array], Array]
    endgame: Callable[[Any, OpenSpielView, Array], Array]
    limit_varies: bool

    def __call__(self, params: Any, view: OpenSpielView, legal: Array) -> Array:
        """Returns the action probabilities: float32[241]."""
        draws = (view.phase == ids.FIRST_UPCARD) | (view.phase == ids.DRAW)
        shared = draws | (view.phase == ids.DISCARD)
        if self.limit_varies:
            params = search.with_knock_limit(params, view.knock_card.astype(jnp.int32))
        probs = jnp.where(shared, self.apply(params, *as_seen(view)), 0.0)
        draw, plain, knocks = jnp.split(probs, [_FIRST_CARD, _FIRST_KNOCK])
        # OpenSpiel's own figure of the deadwood decides whether a knock is legal, and may exceed the true one.
        plain = plain + jnp.where(legal[ids.KNOCKS], 0.0, knocks)
        named = [draw[1], draw[0], draw[2], jnp.where(legal[ids.KNOCKS], jnp.sum(knocks), 0.0)]
        rest = jnp.zeros(legal.shape[0] - ids.LAYS)
        ours = jnp.concatenate([plain[_CARDS], jnp.stack(named), rest])
        return jnp.where(legal, jnp.where(shared, ours, self.endgame((), view, legal)), 0.0)


def as_seen(view: OpenSpielView) -> tuple[GinView, Array]:
    """Returns what a player of `gin_rummy` sees and may do, at a draw or a discard of its own: GinView, bool[107]."""
    offered, draws, full = (view.phase == phase for phase in (ids.FIRST_UPCARD, ids.DRAW, ids.DISCARD))
    seat, previous = view.seat.astype(jnp.int32), _renamed(view.previous)
    hand = view.hand[OPENSPIEL_SUITS]
    own_known = select_player(view.known, view.seat)[OPENSPIEL_SUITS]
    took = full & jnp.any(own_known & cards.card_mask(previous) != 0)
    taken = jnp.where(took, previous, -1)
    left = melds.deadwood_after_discard(hand.astype(jnp.int32)).reshape(-1)
    free = (left < melds.NOT_HELD) & (np.arange(NUM_CARDS) != taken) & full
    knocks = free & (left <= view.knock_card)
    deadwood = jnp.where(full, jnp.min(left), melds.deadwood(hand.astype(jnp.int32)))
    log, length = _log(view, taken)
    upcard = _renamed(view.upcard)
    forced = offered & (view.passes == 2)
    by_offer = jnp.where(forced, event_log.FORCED_STOCK, event_log.FIRST_OFFER + view.passes)
    in_play = jnp.where(draws, event_log.DRAW, jnp.where(full, event_log.DISCARD, event_log.OVER))
    seen = GinView(
        hand=hand,
        pile=view.pile[OPENSPIEL_SUITS] | cards.card_mask(upcard),
        known=select_player(view.known, 1 - view.seat)[OPENSPIEL_SUITS],
        log=log,
        length=length.astype(jnp.uint8),
        seat=view.seat,
        top=jnp.where(full, previous, upcard).astype(jnp.uint8),
        stock=view.stock,
        opponent_cards=jnp.uint8(10),
        phase=jnp.where(offered, by_offer, in_play).astype(jnp.uint8),
        to_act=view.turn == seat,
        deadwood=deadwood.astype(jnp.uint8),
        can_knock=jnp.any(knocks),
        can_gin=jnp.any(knocks & (left == 0)),
    )
    may_draw = jnp.stack([forced | draws, (offered & ~forced) | (draws & (upcard >= 0)), offered & ~forced])
    return seen, jnp.concatenate([may_draw, free, knocks])


def _renamed(card: Array) -> Array:
    """Returns a card by its id in the other gin games, -1 for none: int32."""
    return jnp.where(card == cards.NO_CARD, -1, jnp.asarray(_CARDS)[jnp.minimum(card, NUM_CARDS - 1)])


def _log(view: OpenSpielView, taken: Array) -> tuple[Array, Array]:
    """Returns the log as far as it can be known, and its length: uint16[250], int32."""
    offered, full = view.phase == ids.FIRST_UPCARD, view.phase == ids.DISCARD
    stock = NUM_CARDS - 2 * 10 - 1
    drawn = stock - view.stock.astype(jnp.int32) + view.takes + (~offered & (view.passes < 2))
    turns = drawn - full
    starter = jnp.where(view.passes == 1, 1, 0)
    places = np.arange(_MOST_ACTIONS)
    actor = (starter + places - 1) % 2
    discards = table.entry(actor, table.DISCARD, jnp.full(_MOST_ACTIONS, -1))
    deal = table.entry(table.NOBODY, table.DISCARD, jnp.full(_MOST_ACTIONS, -1))
    kind = jnp.where(taken >= 0, table.DRAW_DISCARD, table.DRAW_STOCK)
    last = table.entry(view.seat, kind, jnp.full(_MOST_ACTIONS, taken))
    log = jnp.where(places == 0, deal, jnp.where(places <= turns, discards, np.uint16(0)))
    log = jnp.where(full & (places == turns + 1), last, log)
    return log, 1 + turns + full
