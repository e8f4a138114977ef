"""What cards are worth beyond the melds they are in: to the opponent, and with cards still to come."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from envs.cards import NUM_CARDS, NUM_RANKS, NUM_SUITS

TYPICAL_DEADWOOD = np.array([52, 52, 44, 38, 32, 28, 25, 23, 22, 21, 20, 18, 17, 16], np.float32)
"""Mean deadwood of an opponent at turn 0, 1, ...: two simple bots, 500 hands (the domain notes' figures)."""


def _third_cards() -> np.ndarray:
    """Returns the cards that make a meld of three with two others, NUM_CARDS where there is none: int[52, 52, 2]."""
    third = np.full((NUM_CARDS, NUM_CARDS, 2), NUM_CARDS)
    for a, b in np.argwhere(~np.eye(NUM_CARDS, dtype=bool)):
        (suit_a, rank_a), (suit_b, rank_b) = divmod(a, NUM_RANKS), divmod(b, NUM_RANKS)
        low, high = min(rank_a, rank_b), max(rank_a, rank_b)
        found = []
        if low == high:
            found = [NUM_RANKS * suit + low for suit in range(NUM_SUITS) if suit not in (suit_a, suit_b)]
        elif suit_a == suit_b and high - low <= 2:
            ranks = (low + 1,) if high - low == 2 else (low - 1, high + 1)
            found = [NUM_RANKS * suit_a + rank for rank in ranks if 0 <= rank < NUM_RANKS]
        third[a, b, : len(found)] = found
    return third


_THIRD_CARDS = _third_cards()


def completing(third: Array, held: Array) -> Array:
    """Returns how many of some cards would make a meld of three with one of a hand and any other card.

    Args:
      third: bool[52], the cards that count.
      held: int32[n], the hand's cards.
    Returns:
      int32[n, 52].
    """
    return jnp.sum(jnp.append(third, False)[jnp.asarray(_THIRD_CARDS)[held]], axis=2, dtype=jnp.int32)


def grid(masks: Array) -> Array:
    """Returns suit masks as float32[4, 13]."""
    return ((masks[:, None] >> np.arange(NUM_RANKS)) & 1).astype(jnp.float32)


def around(cards: Array, beyond: int = 0) -> tuple[Array, ...]:
    """Returns what [4, 13] holds two and one rank below each card and one and two above, `beyond` past ace and king."""
    padded = jnp.pad(cards, ((0, 0), (2, 2)), constant_values=beyond)
    return tuple(padded[:, 2 + step : 2 + step + NUM_RANKS] for step in (-2, -1, 1, 2))


def _pairs(weights: Array) -> Array:
    """Returns, for each card, the sum over the pairs it melds with of the product of their weights: float32[52]."""
    low2, low1, high1, high2 = around(weights)
    runs = low2 * low1 + low1 * high1 + high1 * high2
    total = jnp.sum(weights, axis=0)
    others, squares = total - weights, jnp.sum(weights**2, axis=0) - weights**2
    return (runs + (others**2 - squares) / 2).reshape(-1)


def discard_risk(unseen: Array, known: Array) -> Array:
    """Returns how many pairs the opponent may hold that meld with a card, a card it is known to hold counting twice."""
    return _pairs(grid(unseen) + 2.0 * grid(known))


def partner_count(hand: Array, unseen: Array) -> Array:
    """Returns how many unseen cards would meld with a card and another own card: float32[52]."""
    own, free = grid(hand), grid(unseen)
    mixed = _pairs(own + free) - _pairs(own) - _pairs(free)
    return mixed * own.reshape(-1)


def completions(hand: Array, unseen: Array) -> Array:
    """Returns how many unseen cards would meld with a card and another own card: float32[52], 0 for cards not held.

    Unlike `partner_count` each unseen card counts once, however many own cards it would meld with.

    Args:
      hand, unseen: int32[4] suit masks without bits beyond the king.
    """
    own, free = grid(hand), grid(unseen)
    low2, low1, high1, high2 = around(own > 0)
    gap_low2, gap_low1, gap_high1, gap_high2 = around(free)
    in_runs = gap_low2 * low1 + gap_low1 * (low2 | high1) + gap_high1 * (low1 | high2) + gap_high2 * high1
    partners = jnp.sum(own, axis=0) - own
    in_sets = (jnp.sum(free, axis=0) - free) * (partners > 0)
    return ((in_runs + in_sets) * own).reshape(-1)
