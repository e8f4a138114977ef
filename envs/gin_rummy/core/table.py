"""The table all gin rummy games share: hands, stock, discard pile, who saw what, and the public log of actions.

A game on top of it decides which actions there are and when; the table moves the cards.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs import cards
from envs.gin_rummy.core.rules import GinRules
from envs.gin_rummy.melding import melds

NOBODY = 2
"""The actor of the deal's log entry."""
DRAW_STOCK, DRAW_DISCARD, DISCARD, KNOCK, PASS = 1, 2, 3, 4, 5
"""Types of log entries; 0 is an empty slot."""
_ACTOR_SHIFT, _TYPE_SHIFT = 9, 6


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Table:
    """Where every card is and what has happened.

    Attributes:
      deck: uint8[cards], the shuffled deck; the stock is what follows the cards dealt and drawn. Hidden.
      hands: uint16[2, 4] suit masks. Private.
      known: uint16[2, 4] cards of each hand that were seen taken from the pile. Public.
      pile: uint8[n], discards oldest first, the first `pile_size` count. Public.
      pile_size: int32.
      pile_cards: uint16[4] suit masks of the pile. Public.
      drawn: int32, cards drawn from the stock.
      taken: int32, the card taken from the pile in this turn and not yet answered by a discard, else -1. Public.
      log: uint16[max_actions] entries (see `entry`); a stock draw's card is the drawer's alone.
      actions: int32, actions so far; action k is log entry k, the deal is entry 0.
      deadwood: int32[2] points of each hand, with a card drawn the least that one discard leaves. Private.
      after: uint8[4, 13] what each discard of a hand with a card drawn leaves, as in melds.Discards. Private.
    """

    deck: Array
    hands: Array
    known: Array
    pile: Array
    pile_size: Array
    pile_cards: Array
    drawn: Array
    taken: Array
    log: Array
    actions: Array
    deadwood: Array
    after: Array


class Entry(NamedTuple):
    """A log entry taken apart: actor 0, 1 or NOBODY; type 0..5; card id, -1 where it is not shown. int32 each."""

    actor: Array
    type: Array
    card: Array


def entry(actor: Array | int, kind: Array | int, card: Array) -> Array:
    """Packs a log entry: uint16, actor << 9 | type << 6 | card + 1."""
    return ((jnp.int32(actor) << _ACTOR_SHIFT) | (jnp.int32(kind) << _TYPE_SHIFT) | (card + 1)).astype(jnp.uint16)


def read(log: Array) -> Entry:
    """Takes log entries apart, elementwise."""
    code = log.astype(jnp.int32)
    return Entry(code >> _ACTOR_SHIFT, (code >> _TYPE_SHIFT) & 7, (code & 63) - 1)


def hide_draws(log: Array, player: Array) -> Array:
    """Returns the log as a player knows it: the card of the other's stock draws removed."""
    actor, kind, _ = read(log)
    hidden = (kind == DRAW_STOCK) & (actor != player)
    return jnp.where(hidden, log & np.uint16(0xFFFF << _TYPE_SHIFT & 0xFFFF), log)


def hands_after(rules: GinRules, dealt: Array, log: Array, player: Array) -> Array:
    """Returns a player's hand after each log entry: uint16[max_actions, 4].

    Args:
      rules: of the deck.
      dealt: uint16[4], the hand at the deal.
      log: uint16[max_actions], the player's stock draws by card.
      player: int32.
    """
    actor, kind, card = read(log)
    moves = (actor == player) & (kind != 0) & (kind != PASS)
    moved = jax.vmap(lambda one: cards.card_mask(one, rules.num_ranks))(jnp.where(moves, card, -1))
    return dealt ^ lax.associative_scan(jnp.bitwise_xor, moved)


def deal(rules: GinRules, deck: Array) -> Table:
    """Deals from the top of a deck: a hand to player 0, one to player 1, the upcard; the rest is the stock.

    Args:
      rules: sizes of deck and hands.
      deck: integer[cards], a permutation of the card ids.
    """
    deck = jnp.asarray(deck).astype(jnp.uint8)
    size = rules.hand_size
    owner = jnp.zeros(rules.num_cards, jnp.int32).at[deck].set(np.arange(rules.num_cards) // size)
    hands = jnp.stack([cards.to_mask(owner == p, rules.num_ranks) for p in range(2)])
    upcard = deck[2 * size].astype(jnp.int32)
    pile = jnp.zeros(rules.num_cards - 2 * size, jnp.uint8).at[0].set(deck[2 * size])
    return Table(
        deck=deck,
        hands=hands,
        known=jnp.zeros((2, 4), jnp.uint16),
        pile=pile,
        pile_size=jnp.int32(1),
        pile_cards=cards.card_mask(upcard, rules.num_ranks),
        drawn=jnp.int32(0),
        taken=jnp.int32(-1),
        log=jnp.zeros(rules.max_actions, jnp.uint16).at[0].set(entry(NOBODY, DISCARD, upcard)),
        actions=jnp.int32(0),
        deadwood=jax.vmap(melds.deadwood)(hands.astype(jnp.int32)),
        after=jnp.full((cards.NUM_SUITS, cards.NUM_RANKS), melds.NO_DISCARD, jnp.uint8),
    )


def top_card(table: Table) -> Array:
    """Returns the pile's present top: int32 card id, -1 where the pile is empty."""
    top = table.pile[jnp.maximum(table.pile_size - 1, 0)].astype(jnp.int32)
    return jnp.where(table.pile_size > 0, top, -1)


def stock_left(rules: GinRules, table: Table) -> Array:
    """Returns the number of cards in the stock: int32."""
    return rules.num_cards - rules.dealt - table.drawn


def move(rules: GinRules, table: Table, player: Array, kind: Array, discard: Array) -> Table:
    """Plays one action: moves its card and writes it into the log.

    Args:
      rules: sizes of deck and hands.
      table: the table before.
      player: int32, who acts.
      kind: int32, the log type of the action.
      discard: int32, the card that leaves the hand; used by DISCARD and KNOCK only.
    """
    draws, takes = kind == DRAW_STOCK, kind == DRAW_DISCARD
    discards = (kind == DISCARD) | (kind == KNOCK)
    top = top_card(table)
    stock_card = table.deck[jnp.minimum(rules.dealt + table.drawn, rules.num_cards - 1)].astype(jnp.int32)
    card = jnp.where(discards, discard, jnp.where(draws, stock_card, top))
    bit = cards.card_mask(card, rules.num_ranks)
    own = (np.arange(2) == player)[:, None]
    nothing = np.uint16(0)
    actions = table.actions + 1
    hands = table.hands ^ jnp.where(own & (kind != PASS), bit, nothing)
    after, deadwood = _deadwood(rules, table, jnp.where(player == 1, hands[1], hands[0]), draws | takes, discards, card)
    return Table(
        deck=table.deck,
        hands=hands,
        known=jnp.where(own & takes, table.known | bit, jnp.where(own & discards, table.known & ~bit, table.known)),
        pile=jnp.where(
            (np.arange(table.pile.shape[0]) == table.pile_size) & discards, card.astype(jnp.uint8), table.pile
        ),
        pile_size=table.pile_size + discards - takes,
        pile_cards=table.pile_cards ^ jnp.where(discards | takes, bit, nothing),
        drawn=table.drawn + draws,
        taken=jnp.where(takes, top, jnp.where(discards, -1, table.taken)),
        log=jnp.where(np.arange(rules.max_actions) == actions, entry(player, kind, card), table.log),
        actions=actions,
        deadwood=jnp.where(own[:, 0] & (kind != PASS), deadwood, table.deadwood),
        after=after,
    )


def _deadwood(
    rules: GinRules, table: Table, hand: Array, draws: Array, discards: Array, card: Array
) -> tuple[Array, Array]:
    """Returns what a hand's discards leave after a draw, and the hand's deadwood: `after` and `deadwood` of the Table.

    A draw's analysis also gives the deadwood its discard will leave; where it was not made, the hand is simple.
    """
    hand = hand.astype(jnp.int32)
    options = melds.discards(hand, draws, rules.knock_limit)
    suit, rank = card // rules.num_ranks, card % rules.num_ranks
    left = table.after[suit, rank].astype(jnp.int32)
    kept = jnp.where(left == melds.NO_DISCARD, melds.simple_deadwood(hand), left)
    after = jnp.where(draws, options.after, jnp.where(discards, np.uint8(melds.NO_DISCARD), table.after))
    return after, jnp.where(draws, options.least, kept)


def hand_of(table: Table, player: Array) -> Array:
    """Returns a player's hand: int32[4] suit masks, as the meld kernel takes them."""
    return jnp.where(player == 1, table.hands[1], table.hands[0]).astype(jnp.int32)


def count(masks: Array) -> Array:
    """Returns the number of cards in four suit masks: int32."""
    return melds.over_suits(lax.population_count(masks).astype(jnp.int32))
