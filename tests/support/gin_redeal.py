"""Deals anew every card of a hand of `gin_rummy` that one player cannot see, in two independent ways.

`redealt` edits a JAX state in place; `other_deck` builds another deck on which the same public hand could be played.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import slow_gin
from jax import Array

from envs import cards, gin_rummy
from envs.game import Game
from envs.gin_rummy.core import table
from envs.gin_rummy.melding import melds

_CARD_BITS = np.uint16(63)


def redealt(game: Game, state: Any, observer: Array, key: Array) -> Any:
    """Returns a state that differs from the given one in all that `observer` cannot know, and in nothing else.

    The opponent's cards but those seen taken from the pile, and the stock, are shuffled together; the opponent's
    stock draws in the log show random cards; what is cached about the opponent's hand is worked out anew.
    """
    board, other = state.table, 1 - observer
    stock_start = game.rules.dealt + board.drawn
    place = np.arange(cards.NUM_CARDS)
    known = cards.to_cards(board.known[other])
    hidden = cards.to_cards(board.hands[other]) & ~known
    in_stock = jnp.zeros(cards.NUM_CARDS, bool).at[board.deck].set(place >= stock_start)
    deal_key, log_key = jax.random.split(key)
    noise = jax.random.uniform(deal_key, (cards.NUM_CARDS,))
    order = jnp.argsort(jnp.where(hidden | in_stock, noise, 2.0))
    num_hidden = jnp.sum(hidden)
    dealt = jnp.zeros(cards.NUM_CARDS, bool).at[order].set(place < num_hidden)
    hand = cards.to_mask(dealt | known)
    stock = order[jnp.clip(num_hidden + place - stock_start, 0, cards.NUM_CARDS - 1)].astype(jnp.uint8)
    draws = (table.read(board.log).actor == other) & (table.read(board.log).type == table.DRAW_STOCK)
    shown = jax.random.randint(log_key, board.log.shape, 1, cards.NUM_CARDS + 1).astype(jnp.uint16)
    after, deadwood = _reckoned(state, dealt | known, other)
    seat = np.arange(2) == other
    edited = dataclasses.replace(
        board,
        deck=jnp.where(place >= stock_start, stock, board.deck),
        hands=jnp.where(seat[:, None], hand[None], board.hands),
        log=jnp.where(draws, (board.log & ~_CARD_BITS) | shown, board.log),
        deadwood=jnp.where(seat, deadwood, board.deadwood),
        after=after,
    )
    return dataclasses.replace(state, table=edited)


def _reckoned(state: Any, hand: Array, player: Array) -> tuple[Array, Array]:
    """Returns `after` and the player's deadwood as they would be with another hand."""
    drawn = (state.current_player == player) & (jnp.sum(hand) > 10)
    left = gin_rummy.deadwood_after_discard(hand)
    after = jnp.minimum(left, melds.NO_DISCARD).astype(jnp.uint8).reshape(cards.NUM_SUITS, cards.NUM_RANKS)
    deadwood = jnp.where(jnp.sum(hand) > 10, jnp.min(left), gin_rummy.deadwood(hand))
    return jnp.where(drawn, after, state.table.after), deadwood


def other_deck(deck: Sequence[int], actions: Sequence[int], until: int, observer: int, rng: random.Random) -> list[int]:
    """Deals a deck on which the first `until` actions can be played and look the same to one player.

    A card the opponent has discarded must have been dealt to or drawn by it before; beyond that, the opponent's deal
    and draws and the stock that is left are any of the cards whose place the player has not seen.

    Args:
      deck: the deck of a hand.
      actions: the hand as played.
      until: actions played, fewer than the whole hand.
      observer: the player who must notice nothing.
      rng: chooses among the decks that are possible.
    """
    other, hand, drawn = 1 - observer, slow_gin.Hand(deck), 21
    slots = dict.fromkeys(range(10 * other, 10 * other + 10), 0)
    shown: dict[int, int] = {}
    for t, action in enumerate(actions[:until], 1):
        actor = hand.to_act
        hand.play(action)
        _, kind, card = hand.events[-1]
        if kind == slow_gin.EVENT_STOCK:
            if actor == other:
                slots[drawn] = t
            drawn += 1
        elif kind == slow_gin.EVENT_DISCARD and actor == other:
            shown.setdefault(card, t)
    slots |= dict.fromkeys(range(drawn, 52), until + 1)
    hidden = {deck[slot] for slot in slots}
    new = list(deck)
    for card, t in shown.items():
        if card in hidden:
            slot = rng.choice([slot for slot, since in slots.items() if since < t])
            new[slot] = card
            del slots[slot]
            hidden.remove(card)
    for slot, card in zip(slots, rng.sample(sorted(hidden), len(hidden)), strict=True):
        new[slot] = card
    return new
