"""What a gin rummy observation says of each card held, and of the hand as a whole, in numbers of order 1.

Discards (and knocks) mean the same thing of all the cards they can be of, so that a network may rate them by one rule
(`dream/networks/slots.py`). A slot is a card of the hand, or the pile's top before a draw; in the order of ids. L is the
deadwood left by shedding a card from these eleven, D the own deadwood, W that with the pile's top in hand, in points.
Around a card, for each of the planes hand, pile with its top, known to be the opponent's, unseen: the four cards of its
suit at ranks -2, -1, +1, +2, and the number of cards of its rank in other suits / 3 (20 numbers).

| of a slot, in this order; zeros in an empty one | numbers |
|---|---|
| (L - least L) / 10, at most 3; 1 where L is the least | 2 |
| min(L, 50) / 25; min(L, 10) / 10; 1 where L is 0 | 3 |
| links / 4; completions / 4; danger / 8; 1 where it melds with cards held; 1 where it is the pile's top | 5 |
| 1: there is a card; value / 10; rank, one-hot | 15 |
| around it | 20 |

| of the hand, in this order | numbers |
|---|---|
| min(x, 50) / 25 and min(x, 10) / 10 of D and W | 4 |
| (D - W) / 10 in [-2, 2]; 1 where W < D; 1 with a card drawn | 3 |
| cards known to be the opponent's / 5, pile / 20, unseen / 31 | 3 |
| the pile's top, zeros without one: 1 where it melds with cards held; 1; value / 10; rank, one-hot; around it | 36 |
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from envs.cards import NUM_CARDS, NUM_RANKS, NUM_SUITS, VALUES
from envs.gin_rummy import melds, outs

SLOTS = 11
CARD = np.concatenate([np.tile(VALUES, NUM_SUITS)[:, None] / 10.0, np.tile(np.eye(NUM_RANKS), (NUM_SUITS, 1))], axis=1)
"""float[52, 14]: value / 10 and rank of each card."""


class Seen(NamedTuple):
    """What an observation shows.

    Attributes:
      hand, pile, top, known: float32[52], 1 for the cards held, in the pile below its top, its top, and known to be the
        opponent's.
      deadwood: float32, the own deadwood, points; with a card drawn the least over one discard.
    """

    hand: Array
    pile: Array
    top: Array
    known: Array
    deadwood: Array


class Slots(NamedTuple):
    """What is told.

    Attributes:
      whole: float32[46] of the hand as a whole.
      each: float32[11, 45] of each slot.
      cards: int32[11], ids of the cards to be shed, -1 in an empty slot, all -1 before a draw.
    """

    whole: Array
    each: Array
    cards: Array


def told(seen: Seen) -> Slots:
    """Returns the two tables of the module."""
    drawn = jnp.sum(seen.hand) > SLOTS - 1
    offered = jnp.where(drawn, 0.0, seen.top)
    eleven = seen.hand + offered
    pile = seen.pile + seen.top
    unseen = 1.0 - seen.hand - pile - seen.known
    left = melds.deadwood_after_discard(_masks(eleven)).reshape(-1).astype(jnp.float32)
    least = jnp.min(jnp.where(offered > 0, np.float32(melds.NOT_HELD), left))
    table = jnp.concatenate([_of_left(left), _of_cards(seen, eleven, offered, unseen)], axis=-1)
    around = around_cards((seen.hand, pile, seen.known, unseen))
    cards = jnp.concatenate([jnp.ones((NUM_CARDS, 1)), jnp.asarray(CARD, jnp.float32), around], axis=-1)
    picked, each = of_held(eleven, jnp.concatenate([table, cards], axis=-1))
    gain = seen.deadwood - least
    whole = [
        jnp.stack(points(seen.deadwood) + points(least)),
        jnp.stack([jnp.clip(gain / 10.0, -2.0, 2.0), gain > 0.5, drawn]),
        jnp.stack([jnp.sum(seen.known) / 5.0, jnp.sum(pile) / 20.0, jnp.sum(unseen) / 31.0]),
        seen.top @ jnp.concatenate([melds_with(seen.hand)[:, None], cards], axis=-1),
    ]
    return Slots(jnp.concatenate(whole), each, jnp.where(drawn, picked, -1))


def points(x: Array) -> list[Array]:
    """Returns points on two scales, a wide and a fine one."""
    return [jnp.minimum(x, 50.0) / 25.0, jnp.minimum(x, 10.0) / 10.0]


def around_cards(planes: tuple[Array, ...]) -> Array:
    """Returns what planes float32[52] hold around each card: float32[52, 5 a plane]."""
    parts = []
    for plane in planes:
        shifted, others = _neighbours(plane)
        parts += [*shifted, others / 3.0]
    return jnp.stack(parts, axis=-1)


def melds_with(hand: Array) -> Array:
    """Returns 1 for each card that melds with two others of the hand: float32[52]."""
    (low2, low1, high1, high2), others = _neighbours(hand)
    runs = low2 * low1 + low1 * high1 + high1 * high2
    return ((runs > 0) | (others >= 2)).astype(jnp.float32)


def of_held(held: Array, table: Array) -> tuple[Array, Array]:
    """Picks the rows of the cards held, in the order of ids.

    Args:
      held: float32[52], at most eleven ones.
      table: float32[52, F].
    Returns:
      (cards int32[11], -1 for none; float32[11, F], zeros for none).
    """
    before = jnp.cumsum(held)
    cards = jnp.sum(before <= np.arange(SLOTS, dtype=np.float32)[:, None], axis=1)
    rows = table.at[cards].get(mode="fill", fill_value=0.0)
    return jnp.where(cards < NUM_CARDS, cards, -1).astype(jnp.int32), rows


def _of_left(left: Array) -> Array:
    """Returns what is told of L: float32[52, 5]; meaningless for cards not held."""
    least = jnp.min(left)
    return jnp.stack([jnp.minimum((left - least) / 10.0, 3.0), left == least, *points(left), left < 0.5], axis=-1)


def _of_cards(seen: Seen, eleven: Array, offered: Array, unseen: Array) -> Array:
    own, free, known = (_masks(plane) for plane in (eleven, unseen, seen.known))
    return jnp.stack(
        [
            outs.links(own, free) / 4.0,
            outs.completions(own, free) / 4.0,
            outs.danger(free, known) / 8.0,
            melds_with(eleven),
            offered,
        ],
        axis=-1,
    )


def _masks(plane: Array) -> Array:
    """Returns a plane of cards as suit masks: int32[4]."""
    bits = plane.reshape(NUM_SUITS, NUM_RANKS).astype(jnp.int32) << np.arange(NUM_RANKS)
    return jnp.sum(bits, axis=1)


def _neighbours(plane: Array) -> tuple[list[Array], Array]:
    """Returns a plane at ranks -2, -1, +1, +2 of each card's suit, and the sum over its rank's other suits."""
    grid = plane.reshape(NUM_SUITS, NUM_RANKS)
    padded = jnp.pad(grid, ((0, 0), (2, 2)))
    shifted = [padded[:, 2 + step : 2 + step + NUM_RANKS].reshape(-1) for step in (-2, -1, 1, 2)]
    return shifted, (jnp.sum(grid, axis=0) - grid).reshape(-1)
