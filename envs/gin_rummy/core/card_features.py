"""What a gin rummy observation says of each card held, and of the hand as a whole, in numbers of order 1.

Discards (and knocks) mean the same thing of all the cards they can be of, so that a network may score them by one
shared function (`dream/networks/card_scorer.py`). There are eleven places: the cards of the hand, with the pile's top
before a draw, in the order of ids. L is the deadwood left by discarding a card of these eleven, D the own deadwood, W
that with the pile's top in hand, in points. Around a card, for each of the planes hand, pile with its top, known to be
the opponent's, unseen: the four cards of its suit at ranks -2, -1, +1, +2, and the number of cards of its rank in other
suits / 3 (20 numbers).

| of a card, in this order; zeros in an empty place | numbers |
|---|---|
| (L - least L) / 10, at most 3; 1 where L is the least | 2 |
| min(L, 50) / 25; min(L, 10) / 10; 1 where L is 0 | 3 |
| partner_count / 4; completions / 4; discard_risk / 8; 1 where it melds with cards held; 1 for the pile's top | 5 |
| 1: there is a card; value / 10; rank, one-hot | 15 |
| around it | 20 |

| of the hand, in this order | numbers |
|---|---|
| min(x, 50) / 25 and min(x, 10) / 10 of D and W | 4 |
| (D - W) / 10 in [-2, 2]; 1 where W < D; 1 with a card drawn | 3 |
| cards known to be the opponent's / 5, pile / 20, unseen / 31 | 3 |
| the pile's top, zeros without one: 1 where it melds with cards held; 1; value / 10; rank, one-hot; around it | 36 |

Where the observation shows what the opponent discarded, there is a fifth plane of those cards around a card (25 numbers
instead of 20), and there is more, with B the lowest rank it has discarded and A the rank it discarded last:

| more | numbers |
|---|---|
| of a card, before "1": (rank - B) / 6, (rank - A) / 6, in [-1, 1]; rank > B; rank > A; zeros without a discard | 4 |
| of the hand, at the end: B, one-hot, A, one-hot, zeros without a discard; cards the opponent discarded / 10 | 27 |

A player that discards its highest unmatched card holds few above B but in melds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from envs.cards import NUM_CARDS, NUM_RANKS, NUM_SUITS, VALUES, to_mask
from envs.gin_rummy.melding import melds, outs
from envs.rules import DeckRules

PLACES = 11
_STEPS = np.array([-2, -1, 1, 2])


def are_of(rules: DeckRules) -> bool:
    """Returns whether the features are right for a game: of the full deck and hands of ten."""
    return rules.num_cards == NUM_CARDS and rules.hand_size == PLACES - 1


class Seen(NamedTuple):
    """What an observation shows.

    Attributes:
      hand, pile, top, known: float32[52], 1 for the cards held, in the pile below its top, its top, and known to be the
        opponent's.
      deadwood: float32, the own deadwood, points; with a card drawn the least over one discard.
      discarded: float32[52], the cards the opponent has discarded, or None where that is not shown.
      last: int32, the card it discarded last, -1 for none.
    """

    hand: Array
    pile: Array
    top: Array
    known: Array
    deadwood: Array
    discarded: Array | None = None
    last: Array | None = None


class Features(NamedTuple):
    """The features of a position.

    Attributes:
      whole: float32[46] of the hand as a whole.
      each: float32[11, 45] of each card.
      cards: int32[11], ids of the cards that may be discarded, -1 in an empty place, all -1 before a draw.
    """

    whole: Array
    each: Array
    cards: Array


def of_position(seen: Seen) -> Features:
    """Returns the two tables of the module."""
    drawn = jnp.sum(seen.hand) > PLACES - 1
    offered = jnp.where(drawn, 0.0, seen.top)
    eleven = seen.hand + offered
    pile = seen.pile + seen.top
    unseen = 1.0 - seen.hand - pile - seen.known
    own, free, known = (to_mask(plane > 0).astype(jnp.int32) for plane in (eleven, unseen, seen.known))
    left = melds.deadwood_after_discard(own).reshape(-1).astype(jnp.float32)
    least, least_kept = jnp.min(left), jnp.min(jnp.where(offered > 0, np.float32(melds.NOT_HELD), left))
    cards = held_cards(eleven)
    around = (seen.hand, pile, seen.known, unseen) + (() if seen.discarded is None else (seen.discarded,))
    after = pick(left, cards)
    each = [
        jnp.minimum((after - least) / 10.0, 3.0),
        after == least,
        *points(after),
        after < 0.5,
        pick(outs.partner_count(own, free), cards) / 4.0,
        pick(outs.completions(own, free), cards) / 4.0,
        pick(outs.discard_risk(free, known), cards) / 8.0,
        pick(melds_with(eleven), cards),
        pick(offered, cards),
    ]
    recalled, by_card = ([], []) if seen.discarded is None else _recalled(seen.discarded, seen.last, cards)
    each += by_card
    gain = seen.deadwood - least_kept
    top = top_card(seen.top)
    whole = [
        jnp.stack(points(seen.deadwood) + points(least_kept)),
        jnp.stack([jnp.clip(gain / 10.0, -2.0, 2.0), gain > 0.5, drawn]),
        jnp.stack([jnp.sum(seen.known) / 5.0, jnp.sum(pile) / 20.0, jnp.sum(unseen) / 31.0]),
        pick(melds_with(seen.hand), top),
        of_cards(top, around)[0],
        *recalled,
    ]
    filled = (cards < NUM_CARDS)[:, None]
    rows = jnp.concatenate([jnp.stack(each, axis=-1) * filled, of_cards(cards, around)], axis=-1)
    return Features(jnp.concatenate(whole), rows, jnp.where(drawn & filled[:, 0], cards, -1))


def _recalled(discarded: Array, last: Array, cards: Array) -> tuple[list[Array], list[Array]]:
    """Returns what the opponent's discards add for the hand and for each of cards int32[K], in the module's order."""
    ranks = jnp.any(discarded.reshape(NUM_SUITS, NUM_RANKS) > 0, axis=0)
    marks = [jnp.where(jnp.any(ranks), jnp.argmax(ranks), -1), jnp.where(last < 0, -1, last % NUM_RANKS)]
    above = [jnp.where(mark < 0, 0, cards % NUM_RANKS - mark) for mark in marks]
    whole = [(mark == np.arange(NUM_RANKS)).astype(jnp.float32) for mark in marks] + [jnp.sum(discarded)[None] / 10.0]
    return whole, [jnp.clip(x / 6.0, -1.0, 1.0) for x in above] + [(x > 0).astype(jnp.float32) for x in above]


def held_cards(held: Array) -> Array:
    """Returns the cards of a plane in the order of ids, NUM_CARDS in empty places: int32[11].

    Args:
      held: float32[52], at most eleven ones.
    """
    before = jnp.cumsum(held)
    return jnp.sum(before <= np.arange(PLACES, dtype=np.float32)[:, None], axis=1, dtype=jnp.int32)


def top_card(top: Array) -> Array:
    """Returns the one card of a plane, NUM_CARDS where it is empty: int32[1]."""
    return jnp.where(jnp.any(top > 0), jnp.argmax(top), NUM_CARDS)[None]


def pick(values: Array, cards: Array) -> Array:
    """Returns what values float32[52] hold for cards int32[K], 0 for NUM_CARDS: float32[K]."""
    return values.at[cards].get(mode="fill", fill_value=0.0)


def points(x: Array) -> list[Array]:
    """Returns points on two scales, a wide and a fine one."""
    return [jnp.minimum(x, 50.0) / 25.0, jnp.minimum(x, 10.0) / 10.0]


def of_cards(cards: Array, planes: Sequence[Array]) -> Array:
    """Returns the features of cards whatever the hand: 1, value / 10, rank one-hot, what planes hold around them.

    Args:
      cards: int32[K], NUM_CARDS for none.
      planes: P times float32[52].
    Returns:
      float32[K, 15 + 5 P], zeros for none.
    """
    grid = jnp.stack(planes).reshape(len(planes), NUM_SUITS, NUM_RANKS)
    suit, rank = jnp.divmod(jnp.minimum(cards, NUM_CARDS - 1), NUM_RANKS)
    room = NUM_RANKS + 4
    padded = jnp.pad(grid, ((0, 0), (0, 0), (2, 2))).reshape(len(planes), -1)
    near = padded[:, (suit * room + rank + 2)[:, None] + _STEPS]
    others = jnp.sum(grid, axis=1)[:, rank] - grid[:, suit, rank]
    around = jnp.concatenate([near, others[:, :, None] / 3.0], axis=-1)
    ranks = rank[:, None] == np.arange(NUM_RANKS)
    plain = [jnp.ones((cards.shape[0], 1)), (jnp.asarray(VALUES)[rank] / 10.0)[:, None], ranks]
    features = jnp.concatenate([*plain, jnp.moveaxis(around, 0, 1).reshape(cards.shape[0], -1)], axis=-1)
    return jnp.where((cards < NUM_CARDS)[:, None], features, 0.0)


def melds_with(hand: Array) -> Array:
    """Returns 1 for each card that melds with two others of the hand: float32[52]."""
    grid = hand.reshape(NUM_SUITS, NUM_RANKS)
    low2, low1, high1, high2 = outs.around(grid)
    runs = low2 * low1 + low1 * high1 + high1 * high2
    others = jnp.sum(grid, axis=0) - grid
    return ((runs > 0) | (others >= 2)).astype(jnp.float32).reshape(-1)
