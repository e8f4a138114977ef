"""What OpenSpiel's gin rummy allows after a knock: the knocker's discard, the melds to lay, the cards to lay off.

A meld may be laid, a card discarded, where what is left can still come to the limit. Two facts make that cheap:

1. Taking neighbours out of a run of a suit cuts its block in two; what is lost is the points of those pieces that are
   one or two cards long. So of all runs of a suit, whatever the hand, the cost is a function of their two ends.
2. Where no card is wanted by both a run and a set every meld stands, and that cost decides. Otherwise it decides for
   each choice of sets (melds.py), with the best of the other suits over the choices that take the same from this one.

Suits are OpenSpiel's s, c, d, h = 0..3; arrays are int32[4, ...], four suit masks, trailing axes are lanes; actions are
packed, action a in bit a % 32 of word a // 32.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs.cards import NUM_RANKS, NUM_SUITS, VALUES
from envs.gin_rummy.melding import melds
from envs.gin_rummy.melding.melds import OPTIONS, WHOLE, Candidates
from envs.gin_rummy.openspiel.ids import KNOCK, LAYOFF, LAYS, MELDS, NUM_WORDS, PASS, TAKE
from envs.gin_rummy.openspiel.meld_ids import RUN_BASES, layoffs
from envs.gin_rummy.openspiel.state import OpenSpielRules

_ANYTHING = 1000
"""More than any hand can lose."""


def pack(rules: OpenSpielRules, masks: Array, flags: Iterable[Array]) -> list[Array]:
    """Packs suit masks of card actions and flags of the actions from 52 up: uint32[...] words, the first two."""
    low, high = jnp.zeros_like(masks[0], jnp.uint32), jnp.zeros_like(masks[0], jnp.uint32)
    for suit in range(rules.num_suits):
        mask, shift = masks[suit].astype(jnp.uint32), suit * rules.num_ranks
        if shift < 32:
            low = low | (mask << shift)
        if shift >= 32:
            high = high | (mask << (shift - 32))
        elif shift + rules.num_ranks > 32:
            high = high | (mask >> (32 - shift))
    for n, flag in enumerate(flags):
        high = high | (flag.astype(jnp.uint32) << (TAKE - 32 + n))
    return [low, high]


def _any(values: Iterable[Array]) -> Array:
    return functools.reduce(operator.or_, values)


def _fragments(masks: Array) -> tuple[list[Array], list[Array]]:
    """Returns the points lost below a cut before rank r and above it, for r = 0..13: int32[...] each.

    Args:
      masks: int32[...] suit masks. A cut loses the cards next to it where they are one or two in a row.
    """
    below = masks << 1, masks << 2, masks << 3
    below_one, below_two = below[0] & ~below[1], below[0] & below[1] & ~below[2]
    above_one, above_two = masks & ~(masks >> 1), masks & (masks >> 1) & ~(masks >> 2)
    value = [0, 0, *VALUES.tolist(), 0, 0]

    def lost(one: Array, two: Array, rank: int, first: int, second: int) -> Array:
        of_two = jnp.where((two >> rank) & 1 == 1, np.int32(first + second), 0)
        return jnp.where((one >> rank) & 1 == 1, np.int32(first), of_two)

    cuts = range(NUM_RANKS + 1)
    return (
        [lost(below_one, below_two, r, value[r + 1], value[r]) for r in cuts],
        [lost(above_one, above_two, r, value[r + 2], value[r + 3]) for r in cuts],
    )


def _runs(masks: Array, slack: Array) -> list[Array]:
    """Returns which runs of three, four and five can be taken out: rank masks of their lowest cards, int32[...] each.

    Args:
      masks: int32[...] suit masks.
      slack: int32[...], the most points that what is left of the suit's runs may lose.
    """
    below, above = _fragments(masks)
    held = masks & (masks >> 1)
    runs = []
    for length in RUN_BASES:
        held = held & (masks >> (length - 1))
        fits = [
            jnp.where(below[r] + above[r + length] <= slack, np.int32(1 << r), 0) for r in range(NUM_RANKS - length + 1)
        ]
        runs.append(held & _any(fits))
    return runs


def _after_simple(masks: Array, deadwood: Array) -> list[Array]:
    """Returns the deadwood each discard leaves of a hand without conflict, by rank: int32[4, ...] each.

    Args:
      masks: int32[4, ...] suit masks.
      deadwood: int32[...] points of the unmatched cards.
    """
    runs, threes = melds.run_cards(masks), melds.threes(masks)
    quads = masks[0] & masks[1] & masks[2] & masks[3]
    below, above = _fragments(runs)
    after = []
    for rank, value in enumerate(VALUES.tolist()):
        in_set = jnp.where((quads >> rank) & 1 == 1, 0, np.int32(2 * value))
        other = jnp.where((threes >> rank) & 1 == 1, in_set, np.int32(-value))
        lost = jnp.where((runs >> rank) & 1 == 1, below[rank] + above[rank + 1], other[None])
        after.append(jnp.where((masks >> rank) & 1 == 1, deadwood + lost, melds.NOT_HELD))
    return after


def _kept(after: list[Array], knock_card: Array) -> Array:
    """Returns the cards whose discard leaves no more than the knock card, or, failing that, least: int32[4, ...]."""
    least = functools.reduce(jnp.minimum, after)
    limit = jnp.maximum(knock_card, functools.reduce(jnp.minimum, list(least)))
    return _any(jnp.where(left <= limit, np.int32(1 << rank), 0) for rank, left in enumerate(after))


def _meld_words(cands: Candidates, sets: list[Array], runs: list[Array]) -> list[Array]:
    """Packs melds into words, the first two of them without cards: uint32[...] each.

    Args:
      cands: the ranks the sets are of.
      sets: for each of them its five sets, bit m missing suit m, bit 4 the whole quad: int32[...].
      runs: rank masks of the lowest cards of runs of three, four and five: int32[4, ...] each.
    """
    words = [jnp.zeros_like(sets[0], jnp.uint32) for _ in range(NUM_WORDS)]
    for bit, some in zip(cands.bits, sets, strict=True):
        first = LAYS + 5 * (31 - lax.clz(bit | 1))
        some = some.astype(jnp.uint32)
        for word in range(LAYS // 32, (LAYS + 5 * NUM_RANKS - 1) // 32 + 1):
            up, down = first - 32 * word, 32 * word - first
            up_to, down_to = (jnp.clip(shift, 0, 31).astype(jnp.uint32) for shift in (up, down))
            shifted = jnp.where(up >= 0, jnp.where(up < 32, some << up_to, 0), jnp.where(down < 32, some >> down_to, 0))
            words[word] = words[word] | shifted
    for (length, base), lowest in zip(RUN_BASES.items(), runs, strict=True):
        starts = NUM_RANKS - length + 1
        for suit in range(NUM_SUITS):
            word, shift = divmod(LAYS + base + starts * suit, 32)
            mask = lowest[suit].astype(jnp.uint32)
            words[word] = words[word] | (mask << shift)
            if shift + starts > 32:
                words[word + 1] = words[word + 1] | (mask >> (32 - shift))
    return words


def _missing(hand: Array, bit: Array) -> Array:
    """Returns the bits of the suits without a rank: int32[...]."""
    return _any(jnp.where(hand[suit] & bit == 0, np.int32(1 << suit), 0) for suit in range(NUM_SUITS))


def _joined(rules: OpenSpielRules, cards: Array, passes: Array, melded: list[Array]) -> Array:
    nothing = jnp.zeros_like(passes)
    flags = [passes if action == PASS else nothing for action in range(TAKE, LAYS)]
    low, high = pack(rules, cards, flags)
    return jnp.stack([low | melded[0], high | melded[1], *melded[2:]])


def _full(rules: OpenSpielRules, hand: Array, phase: Array) -> Array:
    """Returns whether the knocker has yet to discard: bool[...]."""
    return (phase == KNOCK) & (melds.over_suits(lax.population_count(hand)) > rules.hand_size)


def simple_words(
    rules: OpenSpielRules, hand: Array, laid: Array, laid_off: Array, phase: Array, knock_card: Array
) -> Array:
    """Returns the legal actions, but for a knocker whose hand has a conflict.

    Args:
      rules: of the game.
      hand: int32[4, ...] suit masks of the cards in hand.
      laid: int32[3, 4, ...] suit masks of the knocker's melds, empty where there is none.
      laid_off: int32[4, ...] suit masks of the cards laid off.
      phase: int32[...], of the game: one of the three after a knock.
      knock_card: int32[...] points.
    Returns:
      uint32[8, ...].
    """
    knocks, full = phase == KNOCK, _full(rules, hand, phase)
    deadwood = melds.simple_deadwood(hand)
    limit = jnp.maximum(knock_card, deadwood)
    # In a conflict there is a meld, and a hand with a meld may stop where its points are within the knock card.
    passes = ~knocks | (~full & (melds.over_suits(melds.points(hand)) <= limit))
    kept = _kept(_after_simple(hand, deadwood), knock_card)
    fits = layoffs(laid, laid_off, (1 << rules.num_ranks) - 1) & hand
    chosen = jnp.where(full, kept, jnp.where(phase == LAYOFF, fits, 0))
    slack = jnp.where(phase == MELDS, _ANYTHING, limit - deadwood)  # the defender lays what it likes
    layable = jnp.where((knocks & ~full) | (phase == MELDS), hand, 0)
    cands = melds.candidates(layable)
    sets = []
    for bit, quad in zip(cands.bits, cands.quad, strict=True):
        whole = jnp.where(melds.points(bit) <= slack, np.int32(0b11111), np.int32(0b10000))
        sets.append(jnp.where(quad, whole, jnp.where(bit == 0, 0, _missing(hand, bit))))
    return _joined(rules, chosen, passes, _meld_words(cands, sets, _runs(layable, slack[None])))


def knocker_words(rules: OpenSpielRules, hand: Array, phase: Array, knock_card: Array) -> Array:
    """Returns the legal actions of a knocker, whatever its hand: uint32[8, ...]; arguments as `simple_words` has."""
    full = _full(rules, hand, phase)
    cands = melds.candidates(hand)
    left = hand[None] & ~melds.removals(cands)[:, None]
    part = melds.points(melds.run_cards(left))
    total = melds.choice_points(cands, part)
    points = melds.over_suits(melds.points(hand))
    limit = jnp.maximum(knock_card, points - jnp.max(total, axis=0))
    enough = points - limit
    runs = [_any(list(run)) for run in _runs(left, melds.best_rest(total, part) + part - enough)]
    sets = []
    for n, (bit, quad) in enumerate(zip(cands.bits, cands.quad, strict=True)):
        fits = [jnp.max(total[melds.CHOICES[:, n] == o], axis=0, initial=-1) >= enough for o in range(OPTIONS)]
        of_quad = _any(jnp.where(fits[option], np.int32(1 << option - 1), 0) for option in range(1, OPTIONS))
        of_triple = jnp.where(fits[WHOLE] & (bit != 0), _missing(hand, bit), 0)
        sets.append(jnp.where(quad, of_quad, of_triple))
    words = [jnp.where(full, np.uint32(0), word) for word in _meld_words(cands, sets, runs)]
    after = melds.deadwood_after_discard(hand)
    kept = jnp.where(full, _kept([after[:, rank] for rank in range(NUM_RANKS)], knock_card), 0)
    return _joined(rules, kept, ~full & (points <= limit), words)
