"""Melds as OpenSpiel's gin rummy numbers, orders and admits them, on four suit masks.

Suits are OpenSpiel's s, c, d, h = 0..3 throughout; the kernel of melds.py does not care. Ids, whatever the deck's size:
sets 5 * rank + missing suit, 5 * rank + 4 with all four suits (0..64); runs of three 65 + 11 * suit + low, of four
109 + 10 * suit + low, of five 149 + 9 * suit + low.

OpenSpiel takes the first of the best meld groups, groups being compared by their melds in the order in which it lists
them: of each quad, lowest rank first, all four, without suit 2, without suit 1; then by rank the other two of a quad or
a triple; then runs of five, of four and of three, by suit and low card. So sets decide: two best groups with the same
sets cover the same cards.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs.batching import lanes_last, where_needed
from envs.cards import NUM_RANKS, NUM_SUITS
from envs.gin_rummy.melding import arrangement, melds
from envs.gin_rummy.melding.melds import OPTIONS, Candidates

NUM_MELDS = 185
RUN_BASES = {3: 65, 4: 109, 5: 149}
_NO_KEY = 65
"""Sorts after every set."""
_KEYS = _NO_KEY + 1
_KEY_BITS = 19
_SINGLES = 3 * NUM_RANKS
"""Where the sets listed one or two a rank begin; before them stand three for each quad."""


def _build_masks() -> np.ndarray:
    masks = np.zeros((NUM_MELDS, NUM_SUITS), np.uint16)
    for rank in range(NUM_RANKS):
        for missing in range(NUM_SUITS + 1):
            masks[5 * rank + missing] = [0 if suit == missing else 1 << rank for suit in range(NUM_SUITS)]
    for length, base in RUN_BASES.items():
        starts = NUM_RANKS - length + 1
        for suit in range(NUM_SUITS):
            for low in range(starts):
                masks[base + starts * suit + low, suit] = ((1 << length) - 1) << low
    return masks


MELD_MASKS = _build_masks()
"""uint16[185, 4]: the suit masks of each meld id."""
_PIECES = {3: (3,), 4: (4,), 5: (5,), 6: (3, 3), 7: (4, 3), 8: (5, 3), 9: (5, 4), 10: (5, 5), 11: (5, 3, 3)}
"""How the first best group divides a block of neighbours into runs, lowest first."""
_BEYOND_THREE = np.int32(sum((min(pieces) - 3) << (2 * size) for size, pieces in _PIECES.items()))
"""By a block's size, two bits each: how far its last piece, which is its shortest, exceeds three."""


class Group(NamedTuple):
    """The first best meld group of a hand.

    Attributes:
      sets: int32[3, 4, ...] suit masks of up to three sets, empty ones among them.
      keys: int32[3, ...] the place of each in OpenSpiel's list.
      runs: int32[4, ...] suit masks of all cards in runs.
      left: int32[4, ...] suit masks of the cards in no meld.
    """

    sets: Array
    keys: Array
    runs: Array
    left: Array


@lanes_last
def best_group(masks: Array) -> Group:
    """Returns OpenSpiel's best meld group: most points; ties: the one listed first.

    Args:
      masks: int32[4, ...] suit masks of at most eleven cards.
    """
    cands = melds.candidates(masks)
    left = masks[None] & ~melds.removals(cands)[:, None]
    total = melds.choice_points(cands, melds.points(melds.run_cards(left)))
    first, second, third = arrangement.sorted3(*melds.of_choice(_keys(cands)))
    order = (first * _KEYS + second) * _KEYS + third
    # One comparison of points and order; the order of the winner gives its sets.
    best = jnp.max((total << _KEY_BITS) + (1 << _KEY_BITS) - 1 - order, axis=0)
    order = (1 << _KEY_BITS) - 1 - (best & ((1 << _KEY_BITS) - 1))
    return group_of(masks, jnp.stack([order // _KEYS**2, order // _KEYS % _KEYS, order % _KEYS]))


def group_of(masks: Array, keys: Array) -> Group:
    """Returns the group of a hand, int32[4, ...], that has the sets with these places, int32[3, ...]; 65 for no set."""
    sets = jnp.stack([_set_of(masks, key) for key in keys])
    rest = masks & ~(sets[0] | sets[1] | sets[2])
    runs = melds.run_cards(rest)
    return Group(sets, keys, runs, rest & ~runs)


def simple_keys(masks: Array) -> Array:
    """Returns the places of the best group's sets in a hand without conflict, all sets it can make: int32[3, ...]."""
    cands = melds.candidates(masks)
    rank = 31 - lax.clz(cands.bits | 1)
    return jnp.where(cands.bits == 0, _NO_KEY, jnp.where(cands.quad, 3 * rank, _SINGLES + 2 * rank))


def _set_of(masks: Array, key: Array) -> Array:
    """Returns the cards of the set at a place in OpenSpiel's list, nothing for 65: int32[4, ...] suit masks."""
    early = key < _SINGLES
    rank = jnp.where(early, key // 3, (key - _SINGLES) // 2)
    held = masks & jnp.where(key == _NO_KEY, 0, jnp.left_shift(1, rank))
    quad = (held[0] & held[1] & held[2] & held[3]) != 0
    missing = jnp.where(early, (3 - key % 3) % 3, jnp.where((key - _SINGLES) % 2 == 0, 3, 0))
    drops = quad & ~(early & (key % 3 == 0))
    suits = np.arange(NUM_SUITS).reshape((NUM_SUITS,) + (1,) * key.ndim)
    return jnp.where(drops & (suits == missing), 0, held)


def _keys(cands: Candidates) -> Array:
    """Returns each option's place among the sets in OpenSpiel's list, 65 for no set: int32[3, 6, ...]."""
    rank = 31 - lax.clz(cands.bits | 1)
    single = _SINGLES + 2 * rank
    quad = [jnp.full_like(rank, _NO_KEY), single + 1, 3 * rank + 2, 3 * rank + 1, single, 3 * rank]
    triple = [jnp.full_like(rank, _NO_KEY)] * (OPTIONS - 1) + [single]
    return jnp.where(cands.quad[:, None], jnp.stack(quad, axis=1), jnp.stack(triple, axis=1))


def deadwood_with_draw(masks: Array, needed: Array, limit: Array) -> Array:
    """Returns the deadwood OpenSpiel computes for a hand and a drawn card: that of the first best group of all cards
    but its highest one. It may exceed what the best discard leaves.

    Args:
      masks: int32[4] suit masks of a hand with one card drawn.
      needed: bool; where False the result is meaningless and costs nothing.
      limit: int32; exact where the result is at most this, else some number above it.
    Returns:
      int32 points.
    """  # noqa: D205
    unmatched = melds.unmatched_cards(masks)
    bound = melds.points_but_highest(unmatched)

    def exact(masks: Array) -> Array:
        return melds.points_but_highest(best_group(masks).left)

    return where_needed(needed & (bound <= limit) & melds.has_conflict(masks), exact, bound, masks)


def layoffs(laid: Array, laid_off: Array, ranks: int) -> Array:
    """Returns the cards that may be laid off on melds.

    OpenSpiel lets a run grow by two cards at either end: the second once the first has been laid off, wherever.

    Args:
      laid: int32[n, 4] suit masks of the knocker's melds, empty where there is none.
      laid_off: int32[4] suit masks of the cards laid off so far.
      ranks: rank mask of the deck, an int.
    Returns:
      int32[4] suit masks.
    """
    s, c, d, h = laid[:, 0], laid[:, 1], laid[:, 2], laid[:, 3]
    is_set = ((s | c) & (d | h)) | (s & c) | (d & h)
    completes = jnp.where(is_set[:, None] != 0, is_set[:, None] & ~laid, 0)
    runs = jnp.where(is_set[:, None] != 0, 0, laid)
    above, below = (runs << 1) & ~runs, (runs >> 1) & ~runs
    beyond = ((above & laid_off) << 1) | ((below & laid_off) >> 1)
    every = completes | above | below | beyond
    return lax.reduce(every, np.int32(0), lax.bitwise_or, (0,)) & ranks


def last_meld(group: Group, hand: Array) -> Array:
    """Returns the meld of a group that OpenSpiel lists last, of those still in hand: int32[...] id, -1 for none.

    Runs come after sets, the shortest last; of a block of neighbours that is its highest piece.

    Args:
      group: of the whole hand.
      hand: int32[4, ...] suit masks of what is left of it, melds being laid from the last listed.
    """
    best, found = jnp.full_like(hand[0], -1), jnp.full_like(hand[0], -1)
    for n in range(3):
        cards = list(group.sets[n])
        ranks = cards[0] | cards[1] | cards[2] | cards[3]
        absent = [jnp.where(cards[suit] == 0, suit, 0) for suit in range(NUM_SUITS)]
        whole = (cards[0] & cards[1] & cards[2] & cards[3]) != 0
        meld = 5 * (31 - lax.clz(ranks | 1)) + jnp.where(whole, NUM_SUITS, sum(absent))
        gone = [cards[suit] & ~hand[suit] for suit in range(NUM_SUITS)]
        unlaid = (ranks != 0) & (gone[0] | gone[1] | gone[2] | gone[3] == 0)
        later = unlaid & (group.keys[n] > best)
        best, found = jnp.where(later, group.keys[n], best), jnp.where(later, meld, found)
    for suit in range(NUM_SUITS):
        left = group.runs[suit] & hand[suit]
        for _ in range(3):
            low = left & -left
            block = left & ~(left + low)
            left = left & ~block
            length = 3 + ((_BEYOND_THREE >> (2 * lax.population_count(block))) & 3)
            start = 32 - lax.clz(block) - length
            key = _NO_KEY + 1 + (5 - length) * 64 + suit * 16 + start
            meld = _run_id(length, suit, start)
            later = (block != 0) & (key > best)
            best, found = jnp.where(later, key, best), jnp.where(later, meld, found)
    return found


def _run_id(length: Array, suit: int, start: Array) -> Array:
    base = jnp.where(length == 3, RUN_BASES[3], jnp.where(length == 4, RUN_BASES[4], RUN_BASES[5]))
    return base + (NUM_RANKS + 1 - length) * suit + start
