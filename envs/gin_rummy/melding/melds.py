"""Exact melds and deadwood on four suit masks, for hands of at most eleven cards.

Melds are sets (3 or 4 of a rank) and runs (3 or more in a suit, ace low). Three facts make the search small:

1. Within a suit, once sets have taken their cards, melding every block of three or more neighbours is optimal: each
   block is itself a run and runs use nothing else. Writing run(m) for the value of those blocks, suits decouple.
2. Eleven cards hold at most three ranks with three or more cards, with counts (4, 4, 3) at most. Quads first, these are
   the candidates a, b, c. A quad has six choices (no set; all but one suit, four ways; all), a triple two.
3. The best arrangement is therefore the maximum over 6 * 6 * 2 = 72 choices of
       total[i, j, u] = points of the sets + sum over suits s of run(m_s without what the sets took of s),
   and a choice takes one of only 2 * 2 * 2 subsets of {a, b, c} from a suit, so 4 * 8 values of run() serve all 72.

Dropping a card touches one suit's run() alone. With G[k, s] the best of total minus suit s's own part over the choices
that take subset k from suit s, the best melds without card (s, r) are worth max over k not using r of
G[k, s] + run(m_s without k and r): all eleven discards come from one enumeration.

Most hands need none of this: where no card is wanted by both a run and a set, taking all of both is optimal.

Everything here works on arrays int32[4, ...]: four suit masks, trailing axes are lanes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs.batching import lanes_last, where_needed
from envs.cards import NUM_RANKS, NUM_SUITS, VALUES

MOST_CARDS = 11
"""Beyond so many cards a hand can have more than three ranks to make sets of, and the result may be too high."""
NOT_HELD = 999
"""Deadwood reported for a discard that is not in the hand; larger than any real one."""
NO_DISCARD = 255
"""The same in uint8."""
_IMPOSSIBLE = -1000
NO_SET, WHOLE = 0, 5
OPTIONS = 6
"""Choices for a candidate rank: 0 no set, 1..4 a set of all suits but option - 1, 5 a set of all it has."""
_TAKES = np.array([[o == WHOLE or (o != NO_SET and s != o - 1) for o in range(OPTIONS)] for s in range(NUM_SUITS)])
"""bool[suit, option]: whether the option takes the suit's card."""
CHOICES = np.array([(i, j, u) for i in range(OPTIONS) for j in range(OPTIONS) for u in (NO_SET, WHOLE)])
"""int[72, 3]: the options for a, b and c."""
_SUBSETS = np.array([[k >> n & 1 for n in range(3)] for k in range(8)])
"""int[8, 3]: whether subset k holds candidate n."""
_SUBSET_OF = np.array(
    [[sum(int(_TAKES[s, o]) << n for n, o in enumerate(c)) for s in range(NUM_SUITS)] for c in CHOICES]
)
"""int[choice, suit]: the subset of {a, b, c} that the choice takes from the suit."""
_APART = [[NO_SET, s + 1] + [o for o in range(1, OPTIONS) if o != s + 1] for s in range(NUM_SUITS)]
"""For each suit the options in an order that parts them: two that leave its card alone, four that take it.

For suit 1 that is [0, 2, 1, 3, 4, 5]: no set, and the set without suit 1, leave the card of suit 1 in its suit; the
sets without suit 0, 2 or 3 and the whole quad take it."""
_CHOICES_APART = np.array([[[[12 * i + 2 * j + u for u in range(2)] for j in o] for i in o] for o in _APART])
"""int[suit, 6, 6, 2]: the choices, those of a and of b parted for the suit.

A choice (i, j, u) has the index 12 i + 2 j + u. For suit 1, [1, :2, :2] are the choices with i and j of 0 and
2, the 2 * 2 * 2 in which neither a nor b takes the card of suit 1; [1, 2:, :2] are those in which a takes it and b does
not. u needs no order: 0 (no set) leaves the card, 1 (the whole) takes it."""
_BITS = (1 << np.arange(NUM_RANKS)).astype(np.int32)
_VALUE_BITS = tuple(int(sum(_BITS[(VALUES >> b & 1).astype(bool)])) for b in range(4))
"""For each binary digit of a card's value the ranks that have it."""


class Candidates(NamedTuple):
    """The ranks a hand could make sets of, quads before triples, lowest rank first.

    Attributes:
      bits: int32[3, ...] one-bit rank masks, 0 where there is none.
      quad: bool[3, ...] whether all four suits are held.
    """

    bits: Array
    quad: Array


def over_suits(by_suit: Array) -> Array:
    """Sums int32[4, ...] over suits, written out as a CPU reduces short axes slowly."""
    return by_suit[0] + by_suit[1] + by_suit[2] + by_suit[3]


def points(masks: Array) -> Array:
    """Returns the points of the cards in each rank mask: int32, elementwise."""
    digits = [lax.population_count(masks & mask) << b for b, mask in enumerate(_VALUE_BITS)]
    return digits[0] + digits[1] + digits[2] + digits[3]


def run_cards(masks: Array) -> Array:
    """Returns the cards of each suit mask that have two neighbours in a row: all blocks of three or more."""
    middle = masks & (masks >> 1) & (masks >> 2)
    return middle | (middle << 1) | (middle << 2)


def threes(masks: Array) -> Array:
    """Returns the ranks held in three or more suits: int32[...] rank mask."""
    s, h, d, c = masks[0], masks[1], masks[2], masks[3]
    return (s & h & (d | c)) | (d & c & (s | h))


def has_conflict(masks: Array) -> Array:
    """Returns whether some card is wanted by both a run and a set: bool[...]."""
    runs = run_cards(masks)
    return ((runs[0] | runs[1] | runs[2] | runs[3]) & threes(masks)) != 0


def unmatched_cards(masks: Array) -> Array:
    """Returns the cards that no meld of the hand can use: int32[4, ...]."""
    return masks & ~(run_cards(masks) | threes(masks))


def candidates(masks: Array) -> Candidates:
    """Returns the ranks with three or four cards, at most three of them."""
    quads = masks[0] & masks[1] & masks[2] & masks[3]
    triples = threes(masks) & ~quads
    bits, quad = [], []
    for _ in range(3):
        is_quad = quads != 0
        source = jnp.where(is_quad, quads, triples)
        bit = source & -source
        bits.append(bit)
        quad.append(is_quad)
        quads = quads & ~bit
        triples = jnp.where(is_quad, triples, triples & ~bit)
    return Candidates(jnp.stack(bits), jnp.stack(quad))


def removals(cands: Candidates) -> Array:
    """Returns the ranks each subset k of {a, b, c} takes from a suit: int32[8, ...]."""
    lanes = (1,) * (cands.bits.ndim - 1)
    masks = [-_SUBSETS[:, n].astype(np.int32).reshape((8, *lanes)) for n in range(3)]
    return (masks[0] & cands.bits[0]) | (masks[1] & cands.bits[1]) | (masks[2] & cands.bits[2])


def option_points(cands: Candidates) -> Array:
    """Returns the points of each option of each candidate, very low where it is impossible: int32[3, 6, ...]."""
    value = points(cands.bits)
    part = jnp.where(cands.quad, 3 * value, _IMPOSSIBLE)
    whole = jnp.where(cands.quad, 4 * value, jnp.where(cands.bits != 0, 3 * value, _IMPOSSIBLE))
    return jnp.stack([jnp.zeros_like(value), part, part, part, part, whole], axis=1)


def of_choice(by_option: Array) -> list[Array]:
    """Spreads a value of each option over the choices: for a, b and c int32[72, ...], from int32[3, 6, ...]."""
    return [by_option[n][CHOICES[:, n]] for n in range(3)]


def choice_points(cands: Candidates, part: Array) -> Array:
    """Returns the melded points of every choice, given each suit's own part.

    Args:
      cands: the candidate ranks.
      part: int32[8, 4, ...], points melded in suit s once the sets took subset k of {a, b, c} from it.
    Returns:
      int32[72, ...]: sets plus all suits; negative where the choice is impossible.
    """
    in_sets = of_choice(option_points(cands))
    in_suits = part[_SUBSET_OF, np.arange(NUM_SUITS)]
    return in_sets[0] + in_sets[1] + in_sets[2] + over_suits(jnp.moveaxis(in_suits, 1, 0))


def best_rest(total: Array, part: Array) -> Array:
    """Returns G[k, s]: the best melded points outside suit s over the choices that take subset k from it.

    Args:
      total: int32[72, ...] as `choice_points` gives.
      part: int32[8, 4, ...] as `choice_points` takes.
    Returns:
      int32[8, 4, ...].
    """

    def parted(options: list[Array]) -> list[Array]:
        """Returns the best of the first two options, which leave the suit's card, and of the four that take it.

        Of suit 1 and values 9, 4, 7, 1, 8, 2 for _APART's [0, 2, 1, 3, 4, 5] these are 9 and 8. Done for a and then for
        b, with c's two options left as they are, this gives G of the eight subsets, k = a + 2 b + 4 c.
        """
        return [functools.reduce(jnp.maximum, group) for group in (options[:2], options[2:])]

    apart = total[_CHOICES_APART]
    by_a = parted([apart[:, i] for i in range(OPTIONS)])
    by_ab = [parted([rest[:, j] for j in range(OPTIONS)]) for rest in by_a]
    best = jnp.stack([by_ab[a][b][:, c] for c in range(2) for b in range(2) for a in range(2)])
    return best - part


def most_melded(masks: Array, covered: Callable[[Array], Array]) -> Array:
    """Returns the most points that sets of a hand and `covered` cards of what is left can hold: int32[...].

    Args:
      masks: int32[4, ...] the hand.
      covered: int32[8, 4, ...] suit masks left by the sets -> the cards of them that count as melded.
    """
    cands = candidates(masks)
    left = masks[None] & ~removals(cands)[:, None]
    return jnp.max(choice_points(cands, points(covered(left))), axis=0)


@lanes_last
def _deadwood_exact(masks: Array) -> Array:
    return over_suits(points(masks)) - most_melded(masks, run_cards)


@lanes_last
def deadwood_after_discard(masks: Array) -> Array:
    """Returns the deadwood left after each single discard.

    Args:
      masks: int32[4, ...] suit masks of at most eleven cards.
    Returns:
      int32[4, 13, ...] points by suit and rank; NOT_HELD where the card is not in the hand.
    """
    lanes = (1,) * (masks.ndim - 1)
    cands = candidates(masks)
    removed = removals(cands)
    left = masks[None] & ~removed[:, None]
    part = points(run_cards(left))
    rest = best_rest(choice_points(cands, part), part)
    bits = _BITS.reshape((1, NUM_RANKS, *lanes))

    def best_without(best: Array, subset: tuple[Array, Array, Array]) -> tuple[Array, None]:
        taken, kept, others = subset
        melded = others[:, None] + points(run_cards(kept[:, None] & ~bits))
        return jnp.maximum(best, jnp.where((taken & bits) != 0, _IMPOSSIBLE, melded)), None

    nothing = jnp.full((NUM_SUITS, NUM_RANKS, *masks.shape[1:]), _IMPOSSIBLE, jnp.int32)
    best, _ = lax.scan(best_without, nothing, (removed, left, rest))
    deadwood = over_suits(points(masks)) - VALUES.reshape((1, NUM_RANKS, *lanes)) - best
    return jnp.where((masks[:, None] & bits) != 0, deadwood, NOT_HELD)


def deadwood(masks: Array) -> Array:
    """Returns the points of the cards outside the best melds, all cards counted.

    Args:
      masks: int32[4] suit masks of at most eleven cards.
    Returns:
      int32 points.
    """
    return where_needed(has_conflict(masks), _deadwood_exact, simple_deadwood(masks), masks)


def simple_deadwood(masks: Array) -> Array:
    """Returns the deadwood of a hand without conflict, where every meld stands: int32 points."""
    return over_suits(points(unmatched_cards(masks)))


class Discards(NamedTuple):
    """What discarding from an eleven-card hand leaves.

    Attributes:
      after: uint8[4, 13] deadwood left by discarding the card of that suit and rank; NO_DISCARD where it is not held.
        All NO_DISCARD where the hand is `simple`: without conflict, and no discard leaves as little as the limit.
      least: int32, the least deadwood any discard leaves.
    """

    after: Array
    least: Array


def discards(masks: Array, drawn: Array, limit: int) -> Discards:
    """Returns what each discard leaves, worked out only for the few hands where it matters.

    No discard leaves less than the unmatched cards without the highest, so most hands cannot knock; and where nothing
    is in conflict every meld stands, so that bound is reached: if no card is unmatched, some meld has a fourth card to
    give.

    Args:
      masks: int32[4] suit masks of eleven cards.
      drawn: bool; where False the result is meaningless and costs nothing.
      limit: points up to which a knock is allowed, below NO_DISCARD.
    """
    unmatched = unmatched_cards(masks)
    bound = points_but_highest(unmatched)
    simple = Discards(jnp.full((NUM_SUITS, NUM_RANKS), NO_DISCARD, jnp.uint8), bound)

    def exact(masks: Array) -> Discards:
        after = jnp.minimum(deadwood_after_discard(masks), NO_DISCARD)
        return Discards(after.astype(jnp.uint8), jnp.min(after))

    return where_needed(drawn & (has_conflict(masks) | (bound <= limit)), exact, simple, masks)


def highest_card(masks: Array) -> Array:
    """Returns the points of the highest card of a hand, 0 for none: int32."""
    ranks = masks[0] | masks[1] | masks[2] | masks[3]
    return jnp.minimum(32 - lax.clz(ranks), VALUES[-1])


def points_but_highest(masks: Array) -> Array:
    """Returns the points of a hand's cards but the highest: int32."""
    return over_suits(points(masks)) - highest_card(masks)
