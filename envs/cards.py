"""Cards: ids, suits, ranks, values, names, and sets of cards as suit masks.

A card's id is `num_ranks * suit + rank`; suits are S, H, D, C = 0..3 and ranks A, 2..9, T, J, Q, K = 0..12, so that the
full deck's ids run from 0 (AS) to 51 (KC). A set of cards is held as four suit masks: bit `rank` of mask `suit`.
"""

from __future__ import annotations

from collections.abc import Iterable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs.errors import InputError

SUITS = "SHDC"
RANKS = "A23456789TJQK"
NUM_SUITS = len(SUITS)
NUM_RANKS = len(RANKS)
NUM_CARDS = NUM_SUITS * NUM_RANKS
VALUES = np.minimum(np.arange(NUM_RANKS, dtype=np.int32) + 1, 10)
"""int[13]: points of a rank, ace 1, court cards 10."""
NO_CARD = 255
"""What views hold as uint8 where there is no card."""


def signed_id(card: Array) -> Array:
    """Returns a card of a view, -1 for none: int32, from uint8 with `NO_CARD` for none."""
    return jnp.where(card == NO_CARD, -1, card.astype(jnp.int32))


def most_points(num_cards: int, num_ranks: int = NUM_RANKS, num_suits: int = NUM_SUITS) -> int:
    """Returns the points of the dearest cards of a deck, `num_cards` of them."""
    return int(np.sort(np.tile(VALUES[:num_ranks], num_suits))[::-1][:num_cards].sum())


def card_name(card: int, num_ranks: int = NUM_RANKS, suits: str = SUITS) -> str:
    """Returns a card's name, rank before suit, e.g. "TD" for the ten of diamonds.

    Args:
      card: id, 0 <= card < 4 * num_ranks.
      num_ranks: ranks of the deck the id belongs to.
      suits: letters of the suits in their order.
    """
    return RANKS[int(card) % num_ranks] + suits[int(card) // num_ranks]


def card_names(cards: Iterable[int], num_ranks: int = NUM_RANKS, suits: str = SUITS) -> list[str]:
    """Returns the names of cards, as of `card_name`."""
    return [card_name(card, num_ranks, suits) for card in cards]


def card_id(name: str, num_ranks: int = NUM_RANKS) -> int:
    """Returns the id of a card named like "TD", "10D" or "td".

    Raises:
      InputError: the name is not a card of the deck.
    """
    text = name.strip().upper().replace("10", "T")
    if len(text) == 2 and text[0] in RANKS[:num_ranks] and text[1] in SUITS:
        return num_ranks * SUITS.index(text[1]) + RANKS.index(text[0])
    raise InputError(f"unknown card {name!r}; a card is a rank {RANKS[:num_ranks]} and a suit {SUITS}, e.g. 'TD'")


def cards_in(mask: np.ndarray, num_ranks: int = NUM_RANKS) -> list[int]:
    """Lists the ids of the cards in four suit masks, ascending (host side)."""
    return [
        num_ranks * suit + rank for suit in range(len(mask)) for rank in range(num_ranks) if int(mask[suit]) >> rank & 1
    ]


def to_mask(cards: Array, num_ranks: int = NUM_RANKS) -> Array:
    """Packs a set of cards into suit masks.

    Args:
      cards: bool[num_suits * num_ranks], True where the card belongs to the set.
      num_ranks: ranks of the deck.
    Returns:
      uint16[4], bit `rank` of mask `suit`; suits the deck lacks are 0.
    """
    by_suit = jnp.asarray(cards, bool).reshape(-1, num_ranks)
    weights = np.left_shift(1, np.arange(num_ranks)).astype(np.uint16)
    masks = jnp.sum(jnp.where(by_suit, weights, np.uint16(0)), axis=1, dtype=jnp.uint16)
    return jnp.pad(masks, (0, NUM_SUITS - masks.shape[0]))


def to_cards(mask: Array, num_ranks: int = NUM_RANKS, num_suits: int = NUM_SUITS) -> Array:
    """Unpacks suit masks: the inverse of `to_mask`.

    Args:
      mask: unsigned[4], bit `rank` of mask `suit`.
    Returns:
      bool[num_suits * num_ranks].
    """
    ranks = np.arange(num_ranks, dtype=mask.dtype)
    return ((mask[:num_suits, None] >> ranks) & mask.dtype.type(1)).astype(bool).reshape(-1)


def card_mask(card: Array, num_ranks: int = NUM_RANKS) -> Array:
    """Returns the suit masks that hold one card: uint16[4]; all zero where `card` is negative."""
    suit, rank = card // num_ranks, card % num_ranks
    bit = jnp.left_shift(jnp.uint16(1), rank.astype(jnp.uint16))
    return jnp.where((np.arange(NUM_SUITS) == suit) & (card >= 0), bit, jnp.uint16(0))


def shuffle(key: Array, num_cards: int = NUM_CARDS) -> Array:
    """Returns a random permutation of the card ids: uint8[num_cards], at most 64 cards.

    One sort of words that hold 26 random bits above the card's id. Equal random bits (once in 50,000 deals of 52)
    leave two cards in the order of their ids.
    """
    noise = jax.random.bits(key, (num_cards,)) & ~jnp.uint32(63)
    return (jnp.sort(noise | np.arange(num_cards, dtype=np.uint32)) & 63).astype(jnp.uint8)


def shuffle_from(deck: Array, first: Array, key: Array) -> Array:
    """Returns a deck, uint8[num_cards], whose cards from place `first`, int32, on are shuffled."""
    place = np.arange(deck.shape[0])
    noise = jax.random.uniform(key, deck.shape)
    return deck[jnp.argsort(jnp.where(place < first, place - np.float32(deck.shape[0]), noise))]
