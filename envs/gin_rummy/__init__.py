"""Gin rummy: exact melds, and the games played with them.

The functions here work on hands as bool[52], True where the card (13 * suit + rank) is held, at most eleven cards;
melds.py, arrangement.py and layoffs.py hold the same on suit masks.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import cards
from envs.errors import InputError
from envs.gin_rummy.melding import arrangement, layoffs, melds

NOT_HELD = melds.NOT_HELD

__all__ = ["NOT_HELD", "best_melds", "deadwood", "deadwood_after_discard", "layoff_deadwood"]


def _mask(hand: Array) -> Array:
    """Returns a hand's suit masks: int32[4]; the number of cards is checked where it can be known.

    Raises:
      InputError: more than eleven cards, in a hand that is not being traced.
    """
    if not isinstance(hand, jax.core.Tracer) and np.sum(np.asarray(hand) != 0) > melds.MOST_CARDS:
        raise InputError(f"a hand of {np.sum(np.asarray(hand) != 0)} cards; it must have at most {melds.MOST_CARDS}")
    return cards.to_mask(hand).astype(jnp.int32)


def deadwood(hand: Array) -> Array:
    """Returns the points of the cards outside the best melds: int32, from bool[52]."""
    return melds.deadwood(_mask(hand))


def deadwood_after_discard(hand: Array) -> Array:
    """Returns the deadwood left after discarding each card: int32[52], NOT_HELD where the card is not in bool[52]."""
    return melds.deadwood_after_discard(_mask(hand)).reshape(-1)


def layoff_deadwood(knocker: Array, defender: Array) -> Array:
    """Returns the defender's least deadwood after the joint optimum of own melds and layoffs.

    Layoffs go on the melds the knocker lays; the rule that gin admits none belongs to settlement.

    Args:
      knocker: bool[52], the hand after its knock's discard.
      defender: bool[52].
    Returns:
      int32 points.
    """
    return layoffs.layoff_deadwood(_mask(knocker), _mask(defender))


def best_melds(hand: Array) -> Array:
    """Returns the melds a hand lays: least deadwood; ties: most cards in sets, then lowest meld ids.

    Args:
      hand: bool[52].
    Returns:
      bool[4, 52], ascending meld id, unused rows empty, runs of at most five cards.
    """
    rows = arrangement.meld_rows(arrangement.arrange(_mask(hand)))
    return jax.vmap(cards.to_cards)(rows)
