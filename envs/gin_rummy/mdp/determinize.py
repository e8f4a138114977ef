"""What a player of `gin_rummy_mdp` cannot see, dealt anew.

A view of this game also shows when the opponent had to decide about a knock, so after each of its discards it is known
whether its deadwood was within the knock limit. Deals of which that is not true are drawn again. An opponent that has
played on several times held a small hand each time, and hardly any deal does: where none fits within the bound of
`first_accepted`, deals are led there by swaps of hidden cards, as `annealed` says, and `_swapped` which swaps.
`sample_likely` leads deals on, by the same swaps, to hands such as an opponent has by now.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs import cards
from envs.batching import where_needed
from envs.gin_rummy.core import determinize, likely, table
from envs.gin_rummy.core.determinize import NEVER
from envs.gin_rummy.core.rejection import MOST_PROPOSALS, PARTICLES, annealed
from envs.gin_rummy.core.rules import MdpRules
from envs.gin_rummy.core.table import Table
from envs.gin_rummy.mdp.encoding import DISCARD, KNOCK, OVER, MdpView
from envs.gin_rummy.melding import melds

_LANES = 16
"""Views for which deals are led together: each has PARTICLES of them."""


class Dealt(NamedTuple):
    """A table and what follows from its log; fields of the state, which documents them."""

    table: Table
    picked: Array
    declined: Array
    takes: Array


def sample(rules: MdpRules, view: MdpView, key: Array) -> Dealt:
    """Draws a table uniformly among those consistent with a view.

    Args:
      rules: of the game.
      view: of either player, in play.
      key: consumed.
    Returns:
      Dealt; seen by view.seat it is bit for bit what was seen.
    """
    accepts = functools.partial(_decides_where_shown, rules, view)
    board, fits = determinize.sample_accepted(rules, view, view.phase == DISCARD, key, accepts)
    lead_key = jax.random.fold_in(key, MOST_PROPOSALS)
    board = where_needed(
        ~fits, functools.partial(_led, rules), board, view, board, lead_key,
        smallest_chunk=_LANES, largest_chunk=_LANES,
    )  # fmt: skip
    return _as_dealt(board)


def sample_likely(rules: MdpRules, view: MdpView, key: Array) -> tuple[Dealt, Array]:
    """Draws a table with density exp(-b deadwood of the opponent), nearly, among those consistent with a view.

    A Metropolis chain that begins with a uniform one; b as core/likely.py says.

    Args:
      rules, view, key: as of `sample`.
    Returns:
      Dealt, and float32, the logarithm of a weight that makes the tables uniform again.
    """
    sample_key, move_key, luck_key = jax.random.split(key, 3)
    board = sample(rules, view, sample_key).table
    hidden = _hidden(rules, view)
    # One more entry, of which nothing is asked: the hand as it is now.
    hidden = hidden._replace(at=jnp.append(hidden.at, board.actions), asked=jnp.append(hidden.asked, -1))
    b = likely.sharpness(likely.turns_in(view.log, 1 - view.seat.astype(jnp.int32)))
    keys, luck = jax.random.split(move_key, likely.SWAPS), jax.random.exponential(luck_key, (likely.SWAPS,))

    def found(deal: _Deal) -> tuple[_Deal, Array, Array]:
        deadwood = jax.vmap(melds.deadwood)(deal.hands)
        return deal, _wrong_by(rules, hidden, deadwood), deadwood[-1]

    def move(n: Array, at: tuple[_Deal, Array, Array]) -> tuple[_Deal, Array, Array]:
        """Makes swap n - 1. With n = 0 it counts the first deal only, here because the count takes long to compile."""
        first = n == 0
        swapped = _swapped(rules, hidden, at[0], keys[n - 1])
        other = found(jax.tree.map(lambda new, old: jnp.where(first, old, new), swapped, at[0]))
        fine = first | ((other[1] <= at[1]) & (b * (other[2] - at[2]) < luck[n - 1]))
        return jax.tree.map(lambda new, old: jnp.where(fine, new, old), other, at)

    hands = _hands_at(determinize.their_hands(rules, view, board.deck, board.log), hidden.at)
    start = _Deal(board.deck.astype(jnp.int32), hands), jnp.int32(0), jnp.int32(0)
    deal, _, deadwood = lax.fori_loop(0, likely.SWAPS + 1, move, start)
    return _as_dealt(_on_deck(rules, view, board, deal.deck.astype(jnp.uint8))), b * deadwood


def _as_dealt(board: Table) -> Dealt:
    """Adds what follows from a table's log."""
    actor, kind, card = table.read(board.log)
    own = actor == np.arange(2)[:, None]
    takes = own & (kind == table.DRAW_DISCARD)
    leaves = own & (kind == table.DRAW_STOCK)
    return Dealt(
        table=board,
        picked=_union(card, takes),
        declined=_union(_tops_before(board.log), leaves),
        takes=jnp.sum(takes, axis=1, dtype=jnp.int32),
    )


def _union(card: Array, chosen: Array) -> Array:
    """Returns the cards of the chosen log entries of both players: uint16[2, 4] from int32[T] and bool[2, T]."""
    held = jnp.any(chosen[:, :, None] & (card[:, None] == np.arange(cards.NUM_CARDS)), axis=1)
    return jax.vmap(cards.to_mask)(held)


def _tops_before(log: Array) -> Array:
    """Returns the pile's top before each log entry: int32[T], -1 where the pile was empty."""
    _, kind, card = table.read(log)
    put_down = kind == table.DISCARD
    size = jnp.cumsum(put_down.astype(jnp.int32) - (kind == table.DRAW_DISCARD))
    times = np.arange(len(log))
    same_place = put_down & (size == size[:, None]) & (times <= times[:, None])
    latest = jnp.max(jnp.where(same_place, times, -1), axis=1)
    tops = jnp.where((latest >= 0) & (size > 0), card[latest], -1)
    return jnp.roll(tops, 1).at[0].set(-1)


class _Hidden(NamedTuple):
    """What a view leaves open, the same for all deals that are consistent with its cards.

    Attributes:
      since: int32[cards], the action with which the opponent got the card of a place of the deck, 0 for the deal;
        NEVER for places of others and of the stock.
      until: int32[cards], the action with which the opponent showed a card by its discard, NEVER for cards not seen.
      theirs: int32[cards], the places with a `since` whose card the player did not know then; the first `count` count.
      open: int32[cards], those and the stock's; the first `open_count` count.
      at, asked: int32[D], the opponent's discards and what follows each, as `_decisions` says.
    """

    since: Array
    until: Array
    theirs: Array
    count: Array
    open: Array
    open_count: Array
    at: Array
    asked: Array


class _Deal(NamedTuple):
    """A deck, int32[cards], and the opponent's hand after each of its discards on it, int32[D, 4]."""

    deck: Array
    hands: Array


def _led(rules: MdpRules, view: MdpView, board: Table, key: Array) -> Table:
    """Draws a table of which all is true that the view shows, nearly uniformly, as `annealed` says.

    Args:
      rules: of the game.
      view: of either player, in play.
      board: any table that is consistent with the cards the view shows.
      key: consumed.
    """
    start_key, lead_key = jax.random.split(key)
    hidden = _hidden(rules, view)

    def start(key: Array) -> _Deal:
        proposed = determinize.sample(rules, view, view.phase == DISCARD, key)
        hands = determinize.their_hands(rules, view, proposed.deck, proposed.log)
        return _Deal(proposed.deck.astype(jnp.int32), _hands_at(hands, hidden.at))

    deals = jax.vmap(start)(jax.random.split(start_key, PARTICLES))
    move, energy = functools.partial(_swapped, rules, hidden), functools.partial(_contradiction, rules, hidden)
    deal, _ = annealed(deals, move, energy, lead_key)
    return _on_deck(rules, view, board, deal.deck.astype(jnp.uint8))


def _hidden(rules: MdpRules, view: MdpView) -> _Hidden:
    """Returns what a view leaves open."""
    places = determinize.places_of(rules, view)
    is_open = places.fixed < 0
    is_theirs = is_open & (places.since < NEVER)
    theirs, every = (jnp.nonzero(these, size=rules.num_cards, fill_value=0)[0] for these in (is_theirs, is_open))
    at, asked = _decisions(rules, view)
    return _Hidden(places.since, places.first, theirs, jnp.sum(is_theirs), every, jnp.sum(is_open), at, asked)


def _swapped(rules: MdpRules, hidden: _Hidden, deal: _Deal, key: Array) -> _Deal:
    """Swaps the cards of a place of the opponent's and of any other, unless a card was shown before it would be got."""
    one_key, two_key = jax.random.split(key)
    one = hidden.theirs[jax.random.randint(one_key, (), 0, jnp.maximum(hidden.count, 1))]
    two = hidden.open[jax.random.randint(two_key, (), 0, jnp.maximum(hidden.open_count, 1))]
    first, last = (bound(hidden.since[one], hidden.since[two]) for bound in (jnp.minimum, jnp.maximum))
    hands, fine = deal.hands, jnp.bool_(True)
    for card, place in ((deal.deck[one], two), (deal.deck[two], one)):
        moves = (first <= hidden.at) & (hidden.at < jnp.minimum(last, hidden.until[card]))
        hands = hands ^ jnp.where(moves[:, None], cards.card_mask(card, rules.num_ranks).astype(jnp.int32), 0)
        fine = fine & ((hidden.since[place] < hidden.until[card]) | (hidden.until[card] == NEVER))
    deck = deal.deck.at[one].set(deal.deck[two]).at[two].set(deal.deck[one])
    return jax.tree.map(lambda new, old: jnp.where(fine, new, old), _Deal(deck, hands), deal)


def _contradiction(rules: MdpRules, hidden: _Hidden, deal: _Deal) -> Array:
    """Returns by how many points in all the opponent's deadwood is on the wrong side of the knock limit: int32."""
    return _wrong_by(rules, hidden, jax.vmap(melds.deadwood)(deal.hands))


def _wrong_by(rules: MdpRules, hidden: _Hidden, deadwood: Array) -> Array:
    """Returns `_contradiction` of hands by their deadwood, int32[D]: int32."""
    above = deadwood - rules.knock_limit
    wrong = jnp.where(hidden.asked == 1, jnp.maximum(above, 0), jnp.maximum(1 - above, 0))
    return jnp.sum(jnp.where(hidden.asked < 0, 0, wrong), dtype=jnp.int32)


def _on_deck(rules: MdpRules, view: MdpView, board: Table, deck: Array) -> Table:
    """Returns the table of another deck on which the view is the same: uint8[cards]."""
    log = determinize.filled_log(rules, view, determinize.places_of(rules, view), deck)
    hand = determinize.their_hands(rules, view, deck, log)[board.actions]
    picks = (view.phase == DISCARD) & ~view.to_act
    options = melds.discards(hand, picks, rules.knock_limit)
    own = np.arange(2) == view.seat
    return dataclasses.replace(
        board,
        deck=deck,
        log=log,
        hands=jnp.where(own[:, None], board.hands, hand.astype(jnp.uint16)),
        deadwood=jnp.where(own, board.deadwood, jnp.where(picks, options.least, melds.deadwood(hand))),
        after=jnp.where(picks, options.after, board.after),
    )


def _decides_where_shown(rules: MdpRules, view: MdpView, hands: Array) -> Array:
    """Returns whether the opponent's deadwood allowed a knock after the discards that a decision followed: bool.

    Args:
      rules: of the game.
      view: of the player who does not see the hands.
      hands: int32[max_actions, 4], the opponent's after each log entry.
    """
    at, asked = _decisions(rules, view)
    could = jax.vmap(melds.deadwood)(_hands_at(hands, at)) <= rules.knock_limit
    return jnp.all((could == (asked == 1)) | (asked < 0)) | (view.phase == OVER)


def _decisions(rules: MdpRules, view: MdpView) -> tuple[Array, Array]:
    """Returns the opponent's discards, int32[D], and what follows each, int32[D]: 1 a knock decision, 0 none.

    Past the last discard they are NEVER and -1.
    """
    actor, kind, _ = table.read(view.log)
    discards = (kind == table.DISCARD) & (actor == 1 - view.seat.astype(jnp.int32))
    decides_now = (view.phase == KNOCK) & ~view.to_act
    at = jnp.nonzero(discards, size=_most_discards(rules), fill_value=NEVER)[0]
    passes = jnp.roll(kind == table.PASS, -1).at[at].get(mode="fill", fill_value=False)
    follows = passes | (decides_now & (at == view.length.astype(jnp.int32) - 1))
    return at, jnp.where(at < NEVER, follows.astype(jnp.int32), -1)


def _hands_at(hands: Array, at: Array) -> Array:
    """Returns the hands after some log entries, int32[D, 4], none where there is no entry: they cost nothing then."""
    return hands.at[at].get(mode="fill", fill_value=0)


def _most_discards(rules: MdpRules) -> int:
    """Returns how many discards one player can make: every second turn, each of two actions at least."""
    return rules.max_actions // 4 + 1
