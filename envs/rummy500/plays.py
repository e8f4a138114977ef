"""Which plays are legal: masks over actions from the cards held and the cards on the table.

A suit's runs are in a row of 14 places, the ace at 0 (low) or 13 (high). With one deck no two runs of a suit share a
card, so runs are the row's stretches, and a rank has at most one set.

A card X taken from the pile must be played in the same turn: in a new meld, or in the extension of a run together with
a card that was in hand before. Laid one at a time, such an extension is a chain: from the run's end over cards held to
X, and if none of them was in hand before, on beyond X to the first that was. Chains from the two ends of a gap are two
extensions, until X joins their runs: a card in hand before that was laid in one does not count in the other. While
X waits, only plays that hold X or are the next link of a chain that can be finished are legal, so that no turn gets
stuck.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs.rummy500.rules import RummyRules

PLACES = 14
_PLACE = np.arange(PLACES, dtype=np.int32)
_EVERY = (1 << PLACES) - 1


class Cards(NamedTuple):
    """What the plays of a player depend on.

    Attributes:
      hand: bool[4, 13], cards held that were not taken from the pile this turn.
      fresh: bool[4, 13], cards held that were.
      runs: bool[4, 14], places taken on the table.
      sets: bool[13], ranks with a set on the table.
    """

    hand: Array
    fresh: Array
    runs: Array
    sets: Array


class Duty(NamedTuple):
    """What must be played before the turn may end.

    Attributes:
      card: int32, -1 for none.
      direction: int32, 0 while `card` is the card taken; 1 or -1 once it is laid and its chain must go on, up or down.
      backed: bool[2], whether the chain from below, and that from above, holds a card that was in hand before.
    """

    card: Array
    direction: Array
    backed: Array


def row(grid: Array, rules: RummyRules) -> Array:
    """Returns bool[..., 14] from bool[..., 13]: the ace at both its places, where the rules allow them."""
    both = jnp.concatenate([grid, grid[..., :1]], axis=-1)
    allowed = np.ones(PLACES, bool)
    allowed[[0, 13]] = rules.ace_slots
    return both & allowed


class _Chains(NamedTuple):
    """Chains from below and from above to one place: whether each can be finished, and its next place."""

    from_below: Array
    next_up: Array
    from_above: Array
    next_down: Array


def pack(rows: Array) -> Array:
    """Packs rows of places, bool[..., 14], into words: int32[...], bit i for place i."""
    return jnp.sum(jnp.where(rows, np.left_shift(1, _PLACE).astype(np.int32), 0), axis=-1, dtype=jnp.int32)


def _highest(word: Array) -> Array:
    """Returns the highest place in a word: int32, -1 for none."""
    return 31 - lax.clz(word)


def _lowest(word: Array) -> Array:
    """Returns the lowest place in a word: int32, 14 for none."""
    word = word | 1 << PLACES
    return _highest(word & -word)


def _has(word: Array, place: Array) -> Array:
    return (word >> place & 1) > 0


def backed_at(backed: Array, runs: Array, place: Array) -> tuple[Array, Array]:
    """Returns whether a card at `place` is backed as laid from below, and from above; a chain it joins counts too.

    Args:
      backed: bool[2], of the chain from below, and from above.
      runs: int32, a suit's places on the table packed.
      place: int32, 0 to 13.
    """
    joins_below, joins_above = _has(runs << 1, place), _has(runs >> 1, place)
    return backed[0] | (backed[1] & joins_above), backed[1] | (backed[0] & joins_below)


def _chains(hand: Array, held: Array, runs: Array, place: Array, count: Array, backed: Array) -> _Chains:
    """Finds the chains to a card at `place`; all arguments but `backed` broadcast.

    Args:
      hand, held, runs: int32, a suit's row packed: cards in hand before, all cards held, cards on the table.
      place: int32, of the card to be played, one of those held.
      count: int32, cards held in all.
      backed: bool[2], whether a card that was in hand before has been laid in the chain from below, and from above.
    """
    below = (1 << place) - 1
    above = ~below & ~(1 << place) & _EVERY
    gap_below, gap_above = _highest(~held & below), _lowest(~held & above)
    hand_below, hand_above = _highest(hand & below), _lowest(hand & above)
    has_below, has_above = hand_below > gap_below, hand_above < gap_above
    meets_below, meets_above = _has(runs << 1, gap_below + 1), _has(runs, gap_above)
    backed_below, backed_above = backed_at(backed, runs, place)
    top = jnp.where(backed_below | has_below, place, hand_above)
    bottom = jnp.where(backed_above | has_above, place, hand_below)
    held_backs = has_below | has_above
    return _Chains(
        from_below=meets_below & (backed_below | held_backs) & (count - (top - gap_below) >= 1),
        next_up=gap_below + 1,
        from_above=meets_above & (backed_above | held_backs) & (count - (gap_above - bottom) >= 1),
        next_down=gap_above - 1,
    )


def takeable(rules: RummyRules, table: Cards, position: Array, size: Array) -> Array:
    """Returns which pile cards may be taken, each with all after it, and be played: bool[52].

    Args:
      rules: of the table.
      table: before taking; no card is fresh.
      position: int32[4, 13], a card's index in the pile, oldest 0; -1 elsewhere.
      size: int32, cards in the pile.
    """
    in_pile = position >= 0
    count = jnp.sum(table.hand) + size - position
    allowed = row(in_pile, rules)
    at_place = position[:, _PLACE % 13]
    taken = row(in_pile, rules)[:, None, :] & (at_place[:, None, :] >= at_place[:, :, None])
    hand = pack(row(table.hand, rules))[:, None]
    held = hand | pack(taken)
    left = count[:, _PLACE % 13]
    chain = _chains(hand, held, pack(table.runs)[:, None], _PLACE, left, jnp.zeros(2, bool))
    runs = chain.from_below | chain.from_above
    for shift in range(3):
        complete = ((held << 2 >> _PLACE + 2 - shift) & 7) == 7
        backed = ((hand << 2 >> _PLACE + 2 - shift) & 7) > 0
        runs = runs | (complete & _enough(rules, left, 3, backed))
    runs = runs & allowed
    others = np.arange(4)[:, None, None] != np.arange(4)[None, None, :]
    hand_column = table.hand.T[None] & others
    pile_column = in_pile.T[None] & (position.T[None] >= position[:, :, None]) & others
    complete = jnp.sum(hand_column | pile_column, axis=2) >= 2
    sets = complete & _enough(rules, count, 3, jnp.any(hand_column, axis=2))
    any_run = runs[:, :13].at[:, 0].set(runs[:, 0] | runs[:, 13])
    return (in_pile & (any_run | sets)).reshape(-1)


def _enough(rules: RummyRules, count: Array, size: int, backed: Array) -> Array:
    """Returns whether a new meld leaves a card to discard, and one more where it holds only cards just taken."""
    unbacked = count - size >= 2
    return (count - size >= 1) & (backed | (unbacked & (not rules.take_needs_hand_card)))


def plays(rules: RummyRules, table: Cards, duty: Duty) -> Array:
    """Returns which cards may be laid or discarded after the draw: bool[321], the actions from 53 on."""
    held = table.hand | table.fresh
    count = jnp.sum(held)
    free = duty.card < 0
    ids = np.arange(52).reshape(4, 13)
    is_duty = duty.card == ids
    melding = duty.direction == 0
    sets, runs = new_melds(rules, table, count)
    duty_row = row(is_duty, rules)
    with_duty = jnp.stack([duty_row[:, i : i + 12] for i in range(3)]).any(axis=0)
    of_rank = is_duty.T
    set_duty = jnp.stack([*(jnp.any(of_rank & (np.arange(4) != v), axis=1) for v in range(5))], axis=1)
    low, high = lay_offs(rules, table)
    next_low, next_high = _links(rules, table, duty, count, held)
    on_set = held & table.sets
    parts = [
        sets & (free | (set_duty & melding)),
        runs & (free | (with_duty & melding)),
        on_set & free & (count >= 2),
        jnp.where(free, low & (count >= 2), next_low & low),
        jnp.where(free, high & (count >= 2), next_high & high),
        held & free,
    ]
    return jnp.concatenate([part.reshape(-1) for part in parts])


def new_melds(rules: RummyRules, table: Cards, count: Array) -> tuple[Array, Array]:
    """Returns the new melds the cards held allow: sets bool[13, 5], runs bool[4, 12]."""
    hand, held = table.hand.T, (table.hand | table.fresh).T
    sets = []
    for variant in range(5):
        used = np.arange(4) != variant
        complete = jnp.all(held | ~used, axis=1)
        sets.append(complete & _enough(rules, count, int(used.sum()), jnp.any(hand & used, axis=1)))
    held_row, hand_row = row(table.hand | table.fresh, rules), row(table.hand, rules)
    windows = [held_row[:, i : i + 12] for i in range(3)]
    backed = hand_row[:, :12] | hand_row[:, 1:13] | hand_row[:, 2:]
    runs = windows[0] & windows[1] & windows[2] & _enough(rules, count, 3, backed)
    return jnp.stack(sets, axis=1), runs


def lay_offs(rules: RummyRules, table: Cards) -> tuple[Array, Array]:
    """Returns the cards held that fit the low end of a run, and the high end: bool[4, 13] each."""
    held = table.hand | table.fresh
    above = jnp.concatenate([table.runs[:, 12:13], table.runs[:, :12]], axis=1)
    low_ace, high_ace = rules.ace_slots
    aces = np.arange(13) == 0
    return held & table.runs[:, 1:] & (low_ace | ~aces), held & above & (high_ace | ~aces)


def _links(rules: RummyRules, table: Cards, duty: Duty, count: Array, held: Array) -> tuple[Array, Array]:
    """Returns the next links of the chains that can be finished: at low ends, at high ends, bool[4, 13] each."""
    suit, rank = jnp.maximum(duty.card, 0) // 13, jnp.maximum(duty.card, 0) % 13
    hand, all_held, runs = (pack(rows)[suit] for rows in (row(table.hand, rules), row(held, rules), table.runs))
    own = (np.arange(4)[:, None] == suit) & (duty.card >= 0)
    low, high = jnp.zeros((4, 13), bool), jnp.zeros((4, 13), bool)
    for place in (rank, jnp.where(rank == 0, 13, rank)):
        chain = _chains(hand, all_held, runs, place, count, duty.backed)
        allowed = _has(all_held, place) & (duty.direction == 0)
        high = high | (own & (np.arange(13) == chain.next_up % 13) & chain.from_below & allowed)
        low = low | (own & (np.arange(13) == chain.next_down % 13) & chain.from_above & allowed)
    onward = own & (np.arange(13) == rank)
    return low | (onward & (duty.direction < 0)), high | (onward & (duty.direction > 0))
