"""Which melds a hand lays: the arrangement of least deadwood, one and the same for everybody.

Ties are broken by most cards in sets, then by lowest meld ids. Ids: the 13 * 5 sets by rank - without S, H, D, C, then
all four - then runs by length 3, 4, 5, by suit and lowest card; the ascending lists of ids are compared and the first
difference decides. Two arrangements that tie on deadwood and on cards in sets have equally many sets, so the set ids
decide alone, and a block of six or more is laid as threes with the rest of three to five at its upper end.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs.batching import lanes_last
from envs.cards import NUM_RANKS, NUM_SUITS
from envs.gin_rummy.melding.melds import (
    CHOICES,
    NO_SET,
    OPTIONS,
    WHOLE,
    Candidates,
    candidates,
    choice_points,
    of_choice,
    over_suits,
    points,
    removals,
    run_cards,
)

_NO_ID = 1 << 10
"""Sorts after every meld id."""
_MOST_MELDS = 3
"""Eleven cards make three melds at most."""


class Arrangement(NamedTuple):
    """A hand split into melds and deadwood.

    Attributes:
      sets: int32[3, 4, ...] suit masks of up to three sets, ascending rank, empty ones last.
      runs: int32[4, ...] suit masks of all cards in runs.
      deadwood: int32[...] points.
    """

    sets: Array
    runs: Array
    deadwood: Array


@lanes_last
def arrange(masks: Array) -> Arrangement:
    """Returns the arrangement that is laid: least deadwood; ties: most cards in sets, then lowest meld ids.

    Args:
      masks: int32[4, ...] suit masks of at most eleven cards.
    Source: the project's rules of gin rummy, "Settlement".
    """
    cands = candidates(masks)
    left = masks[None] & ~removals(cands)[:, None]
    total = choice_points(cands, points(run_cards(left)))
    ids, sizes = _set_ids(masks, cands)
    in_sets = of_choice(sizes)
    first, second, third = sorted3(*of_choice(ids))
    order = (first * 66 + second) * 66 + third
    # 7 bits of points, 4 of cards in sets, 19 of ids: one int32 compares all three in turn.
    score = (((total << 4) | (in_sets[0] + in_sets[1] + in_sets[2])) << 19) + (1 << 19) - 1 - order
    choice = jnp.argmax(jnp.where(total < 0, -1, score), axis=0)
    sets = _sets_of(masks, cands, jnp.moveaxis(jnp.asarray(CHOICES, jnp.int32)[choice], -1, 0))
    runs = run_cards(masks & ~(sets[0] | sets[1] | sets[2]))
    return Arrangement(_ascending(sets), runs, over_suits(points(masks)) - jnp.max(total, axis=0))


def _set_ids(masks: Array, cands: Candidates) -> tuple[Array, Array]:
    """Returns each option's meld id (65 for no set) and number of cards, for a, b and c: int32[3, 6, ...]."""
    lanes = (1,) * (masks.ndim - 1)
    options = np.arange(OPTIONS).reshape((1, OPTIONS, *lanes))
    rank = 31 - lax.clz(cands.bits | 1)
    missing = over_suits(jnp.where((masks[:, None] & cands.bits) == 0, np.arange(NUM_SUITS).reshape((4, 1, *lanes)), 0))
    whole = jnp.where(cands.quad, 4, missing)[:, None]
    ids = jnp.where(options == NO_SET, 65, 5 * rank[:, None] + jnp.where(options == WHOLE, whole, options - 1))
    sizes = jnp.where(options == NO_SET, 0, 3 + ((options == WHOLE) & cands.quad[:, None]))
    return ids, sizes


def sorted3(x: Array, y: Array, z: Array) -> tuple[Array, Array, Array]:
    """Sorts three arrays elementwise: the least, the middle, the greatest."""
    low, high = jnp.minimum(x, y), jnp.maximum(x, y)
    return jnp.minimum(low, z), jnp.maximum(low, jnp.minimum(high, z)), jnp.maximum(high, z)


def _sets_of(masks: Array, cands: Candidates, chosen: Array) -> Array:
    """Returns the cards that the chosen options, int32[3, ...], take: int32[3, 4, ...]."""
    suits = np.arange(NUM_SUITS).reshape((1, NUM_SUITS) + (1,) * (masks.ndim - 1))
    option = chosen[:, None]
    takes = (option == WHOLE) | ((option != NO_SET) & (option != suits + 1))
    return jnp.where(takes, masks[None] & cands.bits[:, None], 0)


def _ascending(sets: Array) -> Array:
    """Orders up to three sets by rank, empty ones last: int32[3, 4, ...]."""
    ranks = sets[:, 0] | sets[:, 1] | sets[:, 2] | sets[:, 3]
    low, middle, high = sorted3(*jnp.where(ranks == 0, 1 << NUM_RANKS, ranks))
    any_rank = sets[0] | sets[1] | sets[2]
    return jnp.stack([any_rank & rank for rank in (low, middle, high)])


def meld_rows(laid: Arrangement) -> Array:
    """Lists an arrangement's melds, ascending meld id, runs in pieces of three to five.

    Args:
      laid: one arrangement (no trailing axes).
    Returns:
      int32[4, 4] suit masks of each meld, unused rows empty.
    """
    set_ranks = laid.sets[:, 0] | laid.sets[:, 1] | laid.sets[:, 2] | laid.sets[:, 3]
    rows, ids = list(laid.sets), [jnp.where(rank == 0, _NO_ID, n) for n, rank in enumerate(set_ranks)]
    left = laid.runs
    for _ in range(_MOST_MELDS):
        piece, piece_id = _lowest_piece(left)
        left = left & ~piece
        rows.append(piece)
        ids.append(piece_id)
    order = jnp.argsort(jnp.stack(ids))
    return jnp.stack(rows)[order[: _MOST_MELDS + 1]]


def _lowest_piece(runs: Array) -> tuple[Array, Array]:
    """Returns the first piece to lay of the first suit with runs: its suit masks int32[4] and meld id int32."""
    suit = jnp.argmax(runs != 0)
    block = runs[suit]
    low = block & -block
    start = 31 - lax.clz(low | 1)
    length = lax.population_count(block & ~(block + low))
    length = jnp.where(length <= 5, length, 3)
    of_length = 65 + suit * (14 - length) + start + (length - 3) * NUM_SUITS * 11 - jnp.where(length == 5, 4, 0)
    piece = jnp.where(np.arange(NUM_SUITS) == suit, block & ((low << length) - low), 0)
    return piece, jnp.where(block == 0, _NO_ID, of_length)
