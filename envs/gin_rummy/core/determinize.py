"""What a player cannot see, dealt anew: tables on which a round would have looked the same to one player.

A deal is consistent with a view if the player would have seen exactly that view: its own cards, the pile and the
upcard where they were, and every card that the opponent discarded in the opponent's hand by then. `sample` draws one
uniformly among all consistent deals, how the opponent's choices came about left aside, and gives the whole table: the
opponent's draws are in the log, so its views along the round can be computed too. A game that shows more of the hidden
cards, such as that a knock was possible, says by the `accepts` of `sample_accepted` which deals are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs import cards
from envs.gin_rummy.core import likely, table
from envs.gin_rummy.core.rejection import first_accepted
from envs.gin_rummy.core.rules import GinRules
from envs.gin_rummy.core.table import Table
from envs.gin_rummy.melding import melds

NEVER = 1 << 10
"""Stands for the time of what has not happened."""


class LoggedView(Protocol):
    """What the view of a game on a table holds at least, as GinView documents it."""

    hand: Array
    pile: Array
    known: Array
    log: Array
    length: Array
    seat: Array
    stock: Array
    to_act: Array
    deadwood: Array


class Places(NamedTuple):
    """What a view shows of the deck's places, 0..cards-1 in the order of `from_deck`.

    Attributes:
      fixed: int32[cards], the card the player knows to have lain there, -1 where it does not know.
      since: int32[cards], the action with which the opponent got the card of that place, 0 for the deal; NEVER for
        places of others and of the stock.
      drawn_at: int32[max_actions], the place whose card was drawn by that action; meaningless for other actions.
      shown: bool[max_actions], whether that action is the opponent's discard of a card seen there first.
      first: int32[cards], the log entry that a card was first seen in, NEVER for cards of no entry.
      hidden: bool[cards] card ids never seen: in the opponent's hand or in the stock.
    """

    fixed: Array
    since: Array
    drawn_at: Array
    shown: Array
    first: Array
    hidden: Array


def sample(rules: GinRules, view: LoggedView, drawn: Array, key: Array) -> Table:
    """Draws a table uniformly among those consistent with a view.

    Args:
      rules: sizes of deck and hands.
      view: of either player, in play.
      drawn: bool, whether the player to act holds the card it drew and has yet to discard.
      key: consumed.
    Returns:
      The Table; seen by view.seat it is bit for bit the one that was seen.
    """
    places = places_of(rules, view)
    return _as_table(rules, view, drawn, places, *_fill(rules, places, view, key))


def sample_accepted(
    rules: GinRules, view: LoggedView, drawn: Array, key: Array, accepts: Callable[[Array], Array]
) -> tuple[Table, Array]:
    """Draws a table as `sample` does, given that it is consistent with what else the game shows.

    Args:
      rules, view, drawn, key: as of `sample`.
      accepts: (opponent's hand after each log entry, int32[max_actions, 4]) -> bool. Tables that it does not accept are
        drawn again, as `first_accepted` says.
    Returns:
      The Table, and bool, whether it is accepted.
    """
    places = places_of(rules, view)

    def dealt(key: Array) -> tuple[Array, Array]:
        return _fill(rules, places, view, key)

    def fits(deal: tuple[Array, Array]) -> Array:
        return accepts(their_hands(rules, view, deal[0], filled_log(rules, view, places, deal[0])))

    deal, fine = first_accepted(dealt, fits, key)
    return _as_table(rules, view, drawn, places, *deal), fine


def sample_likely(rules: GinRules, view: LoggedView, drawn: Array, key: Array) -> tuple[Table, Array]:
    """Draws a table on which the opponent has melded by now: with density exp(-b deadwood), nearly, as likely.py says.

    Args:
      rules, view, drawn, key: as of `sample`.
    Returns:
      The Table, and float32, the logarithm of a weight that makes the tables uniform again: b times the deadwood.
    """
    places, (fill_key, chain_key) = places_of(rules, view), jax.random.split(key)
    deck, theirs = _fill(rules, places, view, fill_key)
    b = likely.sharpness(likely.turns_in(view.log, 1 - view.seat.astype(jnp.int32)))
    stock = (places.fixed < 0) & (places.since == NEVER)
    sizes = rules.hand_size + 1, rules.num_cards - 2 * rules.hand_size
    at = [jnp.nonzero(these, size=size, fill_value=0)[0] for these, size in zip((theirs, stock), sizes, strict=True)]
    hidden = likely.Hidden(deck[at[0]], jnp.sum(theirs), deck[at[1]], jnp.sum(stock))
    led, deadwood = likely.led(rules, hidden, view.known, b, chain_key)
    for places_there, cards_of, count in ((at[0], led.held, led.held_count), (at[1], led.stock, led.stock_count)):
        counts = np.arange(len(places_there)) < count
        deck = deck.at[jnp.where(counts, places_there, rules.num_cards)].set(cards_of, mode="drop")
    return _as_table(rules, view, drawn, places, deck, theirs), b * deadwood


def their_hands(rules: GinRules, view: LoggedView, deck: Array, log: Array) -> Array:
    """Returns the opponent's hand after each entry of a filled log on its deck: int32[max_actions, 4]."""
    other, place = 1 - view.seat.astype(jnp.int32), np.arange(rules.num_cards)
    dealt = (place // rules.hand_size == other) & (place < 2 * rules.hand_size)
    held = jnp.any(dealt[:, None] & (deck[:, None] == place), axis=0)
    return table.hands_after(rules, cards.to_mask(held, rules.num_ranks), log, other).astype(jnp.int32)


def filled_log(rules: GinRules, view: LoggedView, places: Places, deck: Array) -> Array:
    """Returns the log with the opponent's stock draws by card: uint16[max_actions]."""
    actor, kind, _ = table.read(view.log)
    draws = (kind == table.DRAW_STOCK) & (actor != view.seat.astype(jnp.int32))
    stock_card = deck[jnp.minimum(places.drawn_at, rules.num_cards - 1)].astype(jnp.int32)
    return jnp.where(draws, table.entry(actor, kind, stock_card), view.log)


def places_of(rules: GinRules, view: LoggedView) -> Places:
    """Returns what a view shows of the deck's places."""
    actor, kind, card = table.read(view.log)
    size, seat = rules.hand_size, view.seat.astype(jnp.int32)
    places, times, ids = (np.arange(n) for n in (rules.num_cards, rules.max_actions, rules.num_cards))
    draws = kind == table.DRAW_STOCK
    drawn_at = rules.dealt + jnp.cumsum(draws) - draws
    at_place = draws[:, None] & (drawn_at[:, None] == places)
    drawn_card = jnp.max(jnp.where(at_place, card[:, None], -1), axis=0)
    others = actor == 1 - seat
    drawn_since = jnp.min(jnp.where(at_place & others[:, None], times[:, None], NEVER), axis=0)

    seen = card[:, None] == ids
    first = jnp.min(jnp.where(seen, times[:, None], NEVER), axis=0)
    opens = seen & (first == times[:, None]) & ((kind == table.DISCARD) | (kind == table.KNOCK))[:, None]
    shown = jnp.any(opens & others[:, None], axis=1)
    held = cards.to_cards(view.hand, rules.num_ranks, rules.num_suits)
    own_deal = jnp.any(opens & (actor == seat)[:, None], axis=0) | (held & (first == NEVER))
    # The own deal's order within the hand is not known, and means nothing.
    own_place = jnp.where(own_deal, seat * size + jnp.cumsum(own_deal) - 1, NEVER)
    dealt_card = jnp.max(jnp.where(own_place[:, None] == places, ids[:, None], -1), axis=0)
    fixed = jnp.where(places == 2 * size, card[0], jnp.maximum(dealt_card, drawn_card))
    in_their_deal = (places // size == 1 - seat) & (places < 2 * size)
    return Places(
        fixed=fixed,
        since=jnp.where(in_their_deal, 0, drawn_since),
        drawn_at=drawn_at,
        shown=shown,
        first=first,
        hidden=(first == NEVER) & ~held,
    )


def _fill(rules: GinRules, places: Places, view: LoggedView, key: Array) -> tuple[Array, Array]:
    """Deals the cards whose place is not known: the deck int32[cards], and where the opponent's hidden cards are.

    Cards the opponent has shown come first, in the order they were shown: each with equal probability from one of the
    places the opponent had by then and none of the earlier ones came from. How many these are does not depend on the
    earlier choices, so all deals come out equally likely.
    """
    _, _, card = table.read(view.log)
    order = jnp.cumsum(places.shown)
    shown_key, deal_key = jax.random.split(key)

    def body(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        n, deck, is_open = carry
        time = jnp.argmax(order > n)
        possible = is_open & (places.since < time)
        ranks = jnp.cumsum(possible)
        choice = jax.random.randint(jax.random.fold_in(shown_key, n), (), 0, jnp.maximum(ranks[-1], 1))
        here = possible & (ranks == choice + 1)
        return n + 1, jnp.where(here, card[time], deck), is_open & ~here

    start = (jnp.int32(0), places.fixed, places.since < NEVER)
    _, deck, theirs = lax.while_loop(lambda carry: carry[0] < order[-1], body, start)
    mixed = cards.shuffle(deal_key, rules.num_cards).astype(jnp.int32)
    is_hidden = places.hidden[mixed]
    rank = jnp.cumsum(is_hidden) - 1
    empty = deck < 0
    turn = jnp.cumsum(empty) - 1
    filled = jnp.max(jnp.where(is_hidden & (rank == turn[:, None]), mixed, 0), axis=1)
    return jnp.where(empty, filled, deck), theirs


def _as_table(rules: GinRules, view: LoggedView, drawn: Array, places: Places, deck: Array, theirs: Array) -> Table:
    """Builds the table a deck has led to; `theirs` bool[cards] are the places of the opponent's hidden cards."""
    _, kind, card = table.read(view.log)
    seat = view.seat.astype(jnp.int32)
    ids = np.arange(rules.num_cards)
    hidden = jnp.any(theirs[:, None] & (deck[:, None] == ids), axis=0)
    hand = cards.to_mask(hidden, rules.num_ranks) | view.known
    hands = _by_seat(seat, view.hand, hand)
    acts = jnp.where(view.to_act, view.hand, hand).astype(jnp.int32)
    options = melds.discards(acts, drawn, rules.knock_limit)
    kept = jnp.where(drawn & ~view.to_act, options.least, melds.deadwood(hand.astype(jnp.int32)))
    last = view.length.astype(jnp.int32) - 1
    pile, pile_size = _pile(rules, view)
    return Table(
        deck=deck.astype(jnp.uint8),
        hands=hands,
        known=_by_seat(seat, _taken_by(rules, view, seat), view.known),
        pile=pile,
        pile_size=pile_size,
        pile_cards=view.pile,
        drawn=rules.num_cards - rules.dealt - view.stock.astype(jnp.int32),
        taken=jnp.where(drawn & (kind[last] == table.DRAW_DISCARD), card[last], -1),
        log=filled_log(rules, view, places, deck),
        actions=last,
        deadwood=_by_seat(seat, view.deadwood.astype(jnp.int32), kept),
        after=jnp.where(drawn, options.after, np.uint8(melds.NO_DISCARD)),
    )


def _by_seat(seat: Array, own: Array, other: Array) -> Array:
    """Stacks what belongs to a player and to its opponent by seat."""
    return jnp.where(seat == 1, jnp.stack([other, own]), jnp.stack([own, other]))


def _taken_by(rules: GinRules, view: LoggedView, player: Array) -> Array:
    """Returns the own cards that the opponent saw taken from the pile: uint16[4]."""
    actor, kind, card = table.read(view.log)
    held = cards.to_cards(view.hand, rules.num_ranks, rules.num_suits)
    takes = (kind == table.DRAW_DISCARD) & (actor == player)
    # A card taken and let go again is no longer held; one held that was ever taken was taken for good last.
    taken = jnp.any(takes[:, None] & (card[:, None] == np.arange(rules.num_cards)), axis=0)
    return cards.to_mask(held & taken, rules.num_ranks)


def _pile(rules: GinRules, view: LoggedView) -> tuple[Array, Array]:
    """Returns the pile and its size as the table keeps them: what was taken still stands above the size."""
    _, kind, card = table.read(view.log)
    put_down = (kind == table.DISCARD) | (kind == table.KNOCK)
    size = jnp.cumsum(put_down.astype(jnp.int32) - (kind == table.DRAW_DISCARD))
    slots = np.arange(rules.num_cards - 2 * rules.hand_size)
    here = put_down[:, None] & (size[:, None] - 1 == slots)
    latest = jnp.max(jnp.where(here, np.arange(rules.max_actions)[:, None], -1), axis=0)
    return jnp.where(latest >= 0, card[latest], 0).astype(jnp.uint8), size[-1]
