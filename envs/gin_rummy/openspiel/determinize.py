"""What a player of OpenSpiel's gin rummy cannot see, dealt anew.

Every card that has shown stays in sight until it is laid: in a hand that was seen to take it, on the pile, as the
upcard, in a meld. So the cards never seen are exchangeable between the stock and the opponent's hand, except that a
knock says something of the knocker's hand, as long as it hides any:

| the opponent | hands that are consistent |
|---|---|
| has knocked and is yet to discard | deadwood_with_draw within the knock card |
| is laying its melds | the deadwood of what it holds is within the knock card |
| has laid them | the points of what it holds are within the knock card |

Few hands allow a knock: where `first_accepted` finds none, `annealed` leads hands there.

A view shows neither which of the pile's cards the knocker discarded nor the order of play. The condition of the first
row is therefore dropped in the other two, where OpenSpiel's rougher count would exclude a few hands more; and the deck
of the state that is made begins with the cards that have left the stock, in an order that means nothing.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs import cards
from envs.batching import where_needed
from envs.gin_rummy.core import likely
from envs.gin_rummy.core.rejection import MOST_PROPOSALS, PARTICLES, annealed, first_accepted
from envs.gin_rummy.melding import melds
from envs.gin_rummy.openspiel import ids, meld_ids
from envs.gin_rummy.openspiel.state import OpenSpielRules, OpenSpielState, OpenSpielView, laid_cards, select_player

_LANES = 16
"""Views for which hands are led together: each has PARTICLES of them."""
_MOST_POINTS = 10
"""No rules let a knocker keep more."""


def sample(rules: OpenSpielRules, view: OpenSpielView, key: Array) -> OpenSpielState:
    """Draws a state uniformly among those that would look the same.

    Args:
      rules: of the game.
      view: of either player, in play.
      key: consumed.
    Returns:
      The OpenSpielState; seen by view.seat it is bit for bit the one that was seen.
    """
    hidden = _hidden(rules, view)
    chosen = _consistent(rules, view, hidden, key)
    return _state(rules, view, hidden, hidden.known | cards.to_mask(chosen, rules.num_ranks), key)


def _consistent(rules: OpenSpielRules, view: OpenSpielView, hidden: _Hidden, key: Array) -> Array:
    """Returns a uniform choice of the unseen cards, given what a knock says of the opponent's hand: bool[cards]."""
    laid = ((view.phase == ids.LAYOFF) | (view.phase == ids.MELDS)) & (view.turn == view.seat)
    of_any, above = functools.partial(_any_hand, rules, hidden), functools.partial(_above_limit, rules, view, hidden)
    held, fits = first_accepted(of_any, lambda chosen: above(chosen) == 0, key)
    lead_key = jax.random.fold_in(key, MOST_PROPOSALS)
    held = where_needed(
        ~fits, functools.partial(_led_hand, rules), held, view, hidden, lead_key,
        smallest_chunk=_LANES, largest_chunk=_LANES,
    )  # fmt: skip
    return jnp.where(laid, _stopped_hand(rules, view, hidden, key), held)


def sample_likely(rules: OpenSpielRules, view: OpenSpielView, key: Array) -> tuple[OpenSpielState, Array]:
    """Draws a state with density exp(-b deadwood of the opponent), nearly, as core/likely.py says.

    Args:
      rules, view, key: as of `sample`.
    Returns:
      The state, and float32, the logarithm of a weight that makes the states uniform again. Once somebody has knocked
      what the knock says is known, and they are uniform.
    """
    hidden, (hand_key, chain_key, stock_key, knock_key) = _hidden(rules, view), jax.random.split(key, 4)
    chosen = _any_hand(rules, hidden, hand_key)
    drawn = rules.num_cards - rules.dealt - view.stock.astype(jnp.int32)
    b = likely.sharpness((drawn + view.takes.astype(jnp.int32)) // 2)  # by both players, in turn
    sides = (chosen, rules.hand_size + 1), (hidden.unseen & ~chosen, rules.num_cards - 2 * rules.hand_size)
    held, stock = (jnp.nonzero(these, size=size, fill_value=0)[0] for these, size in sides)
    deal = likely.Hidden(held, jnp.sum(chosen), stock, jnp.sum(sides[1][0]))
    led, deadwood = likely.led(rules, deal, hidden.known, b, chain_key)
    counts = np.arange(len(held)) < led.held_count
    chosen = jnp.zeros(rules.num_cards, bool).at[jnp.where(counts, led.held, rules.num_cards)].set(True, mode="drop")
    knocked = (view.phase == ids.KNOCK) | (view.phase == ids.LAYOFF) | (view.phase == ids.MELDS)
    chosen = jnp.where(knocked, _consistent(rules, view, hidden, knock_key), chosen)
    state = _state(rules, view, hidden, hidden.known | cards.to_mask(chosen, rules.num_ranks), stock_key)
    return state, jnp.where(knocked, 0.0, b * deadwood)


class _Hidden(NamedTuple):
    """What the opponent may hold.

    Attributes:
      known: uint16[4], cards of its hand that were seen.
      unseen: bool[cards], in its hand or in the stock.
      wanted: int32, cards of its hand that are not known.
    """

    known: Array
    unseen: Array
    wanted: Array


def _hidden(rules: OpenSpielRules, view: OpenSpielView) -> _Hidden:
    known = select_player(view.known, 1 - view.seat.astype(jnp.int32))
    upcard = cards.signed_id(view.upcard)
    laid = lax.reduce(laid_cards(view.laid), np.uint16(0), lax.bitwise_or, (0, 1))
    seen = view.hand | known | view.pile | laid | view.laid_off | cards.card_mask(upcard, rules.num_ranks)
    unseen = ~cards.to_cards(seen, rules.num_ranks, rules.num_suits)
    return _Hidden(known, unseen, jnp.sum(unseen, dtype=jnp.int32) - view.stock.astype(jnp.int32))


def _any_hand(rules: OpenSpielRules, hidden: _Hidden, key: Array) -> Array:
    """Returns a uniform choice of the unseen cards: bool[cards]."""
    mixed = cards.shuffle(key, rules.num_cards).astype(jnp.int32)
    rank = jnp.cumsum(hidden.unseen[mixed])
    return jnp.zeros(rules.num_cards, bool).at[mixed].set(hidden.unseen[mixed] & (rank <= hidden.wanted))


def _above_limit(rules: OpenSpielRules, view: OpenSpielView, hidden: _Hidden, chosen: Array) -> Array:
    """Returns by how many points an opponent that has knocked could not have done so with these cards: int32.

    Args:
      rules, view, hidden: of the game, of the other player, and what it does not see.
      chosen: bool[cards], the opponent's hidden cards; 0 points where it has not knocked.
    """
    limit = view.knock_card.astype(jnp.int32)
    hand = (hidden.known | cards.to_mask(chosen, rules.num_ranks)).astype(jnp.int32)
    full = melds.over_suits(lax.population_count(hand)) > rules.hand_size
    knocked = (view.phase == ids.KNOCK) & (view.turn != view.seat)
    with_draw = meld_ids.deadwood_with_draw(hand, full & knocked, limit)
    left = jnp.where(full, with_draw, melds.deadwood(hand))
    return jnp.where(knocked, jnp.maximum(left - limit, 0), 0)


def _led_hand(rules: OpenSpielRules, view: OpenSpielView, hidden: _Hidden, key: Array) -> Array:
    """Returns a choice of the unseen cards that allows the knock, nearly uniform, as `annealed` says: bool[cards]."""
    start_key, lead_key = jax.random.split(key)
    start = jax.vmap(functools.partial(_any_hand, rules, hidden))(jax.random.split(start_key, PARTICLES))

    def swapped(chosen: Array, key: Array) -> Array:
        """Puts one of the chosen cards back and takes one of the others."""
        noise = jax.random.uniform(key, (2, rules.num_cards))
        sides = jnp.stack([chosen, hidden.unseen & ~chosen])
        moves = jnp.argmax(jnp.where(sides, noise, -1.0), axis=1)[:, None] == np.arange(rules.num_cards)
        return jnp.where(jnp.all(jnp.any(sides, axis=1)), chosen ^ moves[0] ^ moves[1], chosen)

    return annealed(start, swapped, functools.partial(_above_limit, rules, view, hidden), lead_key)[0]


def _stopped_hand(rules: OpenSpielRules, view: OpenSpielView, hidden: _Hidden, key: Array) -> Array:
    """Returns a hand of one that has laid its melds: few enough points, where that can be: bool[cards].

    Cards are gone through in order. With W[c, n, p] the number of ways to choose n of the unseen cards from c on of at
    most p points, a card is chosen with the share of W that does so, which makes all choices equally likely.
    """
    values = cards.VALUES[np.arange(rules.num_cards) % rules.num_ranks]
    left = view.knock_card.astype(jnp.int32) - melds.over_suits(melds.points(hidden.known.astype(jnp.int32)))
    sizes, points = np.arange(rules.hand_size + 1)[:, None], np.arange(_MOST_POINTS + 1)

    def with_card(ways: Array, value: Array) -> Array:
        """W after one card is put in front, [n, p]: of the choices that take it."""
        fits = (sizes > 0) & (points >= value)
        return jnp.where(fits, ways[np.maximum(sizes - 1, 0), jnp.maximum(points - value, 0)], 0.0)

    def backward(ways: Array, card: tuple[Array, Array]) -> tuple[Array, Array]:
        unseen, value = card
        return ways + jnp.where(unseen, with_card(ways, value), 0.0), ways

    none = jnp.broadcast_to(jnp.where(sizes == 0, 1.0, 0.0), (rules.hand_size + 1, _MOST_POINTS + 1))
    total, after = lax.scan(backward, none, (hidden.unseen, values), reverse=True)

    def forward(carry: tuple[Array, Array], card: tuple[Array, ...]) -> tuple[tuple[Array, Array], Array]:
        wanted, left = carry
        unseen, value, ways, noise = card
        taking = with_card(ways, value)[wanted, left]
        takes = unseen & (noise * (taking + ways[wanted, left]) < taking)
        return (wanted - takes, left - jnp.where(takes, value, 0)), takes

    noise = jax.random.uniform(key, (rules.num_cards,))
    wanted = jnp.minimum(hidden.wanted, rules.hand_size)
    within = jnp.clip(left, 0, _MOST_POINTS)
    chosen = lax.scan(forward, (wanted, within), (hidden.unseen, values, after, noise))[1]
    possible = (left >= 0) & (total[wanted, within] > 0)
    return jnp.where(possible, chosen, _any_hand(rules, hidden, key))


def _state(rules: OpenSpielRules, view: OpenSpielView, hidden: _Hidden, hand: Array, key: Array) -> OpenSpielState:
    """Returns the state of a view with this hand of the opponent, uint16[4]."""
    seat, phase, turn = (x.astype(jnp.int32) for x in (view.seat, view.phase, view.turn))
    own_or_theirs = cards.to_cards(view.hand | hand, rules.num_ranks, rules.num_suits)
    in_stock = hidden.unseen & ~own_or_theirs
    mixed = cards.shuffle(jax.random.fold_in(key, 1), rules.num_cards).astype(jnp.int32)
    deck = mixed[jnp.argsort(in_stock[mixed], stable=True)]
    hands = jnp.where(seat == 1, jnp.stack([hand, view.hand]), jnp.stack([view.hand, hand]))
    upcard, previous = map(cards.signed_id, (view.upcard, view.previous))
    limit = view.knock_card.astype(jnp.int32)
    at_wall = jnp.where(phase == ids.WALL, cards.card_mask(upcard, rules.num_ranks), np.uint16(0))
    eleven = (select_player(hands, turn) | at_wall).astype(jnp.int32)
    asked = (phase == ids.WALL) | (phase == ids.DISCARD)
    deadwood = meld_ids.deadwood_with_draw(eleven, asked, limit)
    lays = (phase == ids.LAYOFF) | (phase == ids.MELDS)
    return OpenSpielState(
        deck=deck.astype(jnp.uint8),
        hands=hands,
        known=view.known,
        discarded=view.discarded,
        pile=view.pile,
        laid_off=view.laid_off,
        laid=view.laid,
        upcard=upcard,
        previous=previous,
        drawn=rules.num_cards - rules.dealt - view.stock.astype(jnp.int32),
        takes=view.takes.astype(jnp.int32),
        passes=view.passes.astype(jnp.int32),
        knock_card=limit,
        phase=phase,
        turn=turn,
        current_player=turn,
        knocker=jnp.where(phase == ids.KNOCK, turn, jnp.where(lays, 1 - turn, -1)),
        repeated=view.repeated,
        can_knock=asked & (deadwood <= limit),
    )
