"""Suits named by their holder: what makes hands that differ by a renaming of suits one and the same.

The rules never distinguish suits. So each player may name them by what it was dealt: a suit's code is its ranks in the
own hand, then the upcard's rank if it has that suit; the suit of the largest code is called S, the next H, and so on.
Two deals that a renaming of suits turns into each other then look alike to the player, from the first decision to the
last. Names never change within a hand, so that what was seen and done before keeps its name.

Suits of equal code could be named either way. The choice must be random, and each player's its own: what both know
would let them correlate their play, and an order that follows from the other's cards would reveal these. So `init`
draws it, and where deals are listed up to a renaming - player 0's suits in order, which makes the order of player 1's
alike suits mean something - each way for player 1 to name them is listed.

The names of a player are `labels`, uint8[4]: suit s is called labels[s].
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import cards

_ALL = np.arange(cards.NUM_SUITS)


def labels_of(hand: Array, upcard: Array, num_ranks: int, order: Array = _ALL) -> Array:
    """Returns the names a player gives the suits: uint8[4].

    Args:
      hand: uint16[4] suit masks of the hand dealt.
      upcard: uint16[4] suit masks of the deal's upcard.
      num_ranks: ranks of the deck.
      order: int32[4], all different: of alike suits the lower one comes first.
    """
    code = (hand.astype(jnp.int32) << num_ranks) | upcard.astype(jnp.int32)
    before = (code[None] > code[:, None]) | ((code[None] == code[:, None]) & (order[None] < order[:, None]))
    return jnp.sum(before, axis=1).astype(jnp.uint8)


def random_order(key: Array, num_suits: int) -> Array:
    """Returns a random order of the suits, those the deck lacks last: int32[4]; `key` is consumed."""
    noise = (jax.random.bits(key, (cards.NUM_SUITS,)) >> 4).astype(jnp.int32) & ~(cards.NUM_SUITS - 1)
    return jnp.where(num_suits > _ALL, noise, 1 << 30) | _ALL.astype(np.int32)


def inverse(labels: Array) -> Array:
    """Returns which suit each name stands for: uint8[4]."""
    return jnp.sum((labels[None] == _ALL[:, None]) * _ALL, axis=1).astype(jnp.uint8)


def rename_masks(masks: Array, labels: Array) -> Array:
    """Returns suit masks in a player's names: unsigned[4]."""
    return masks[inverse(labels)]


def rename_card(card: Array, labels: Array, num_ranks: int) -> Array:
    """Returns card ids in a player's names, int32; negative ones stay."""
    renamed = labels.astype(jnp.int32)[card // num_ranks] * num_ranks + card % num_ranks
    return jnp.where(card < 0, card, renamed)


def rename_flags(flags: Array, labels: Array, num_ranks: int) -> Array:
    """Returns flags of cards, [cards], in the order of a player's names."""
    by_suit = flags.reshape(-1, num_ranks)
    return by_suit[inverse(labels)[: by_suit.shape[0]]].reshape(-1)


def _codes(hand: Sequence[int], upcard: int, num_ranks: int, num_suits: int) -> list[int]:
    """Returns each suit's code, on the host."""
    codes = [0] * num_suits
    for card in hand:
        codes[card // num_ranks] |= 1 << (num_ranks + card % num_ranks)
    codes[upcard // num_ranks] |= 1 << upcard % num_ranks
    return codes


def orbit(hand: Sequence[int], upcard: int, num_ranks: int, num_suits: int) -> int:
    """Returns how many hands and upcards look like this one, itself included; 0 if its suits are not in order."""
    codes = _codes(hand, upcard, num_ranks, num_suits)
    if codes != sorted(codes, reverse=True):
        return 0
    alike = [codes.count(code) for code in set(codes)]
    return math.factorial(num_suits) // math.prod(map(math.factorial, alike))


def all_labels(hand: Sequence[int], upcard: int, num_ranks: int, num_suits: int) -> Iterator[tuple[int, ...]]:
    """Yields every way to name a player's suits in order of their codes, as labels of all four suits."""
    codes = _codes(hand, upcard, num_ranks, num_suits)
    wanted = sorted(codes, reverse=True)
    for labels in itertools.permutations(range(num_suits)):
        if all(wanted[label] == code for label, code in zip(labels, codes, strict=True)):
            yield *labels, *range(num_suits, cards.NUM_SUITS)
