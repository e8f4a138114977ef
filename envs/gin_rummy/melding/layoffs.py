"""The defender's answer to a knock: own melds and layoffs chosen together, or melds first.

A layoff extends a knocker's run at either end or completes a knocker's set of three. For every choice of the defender's
sets (melds.py) the rest decouples by suit: of a suit's remaining cards, those in a block of three or more together with
the knocker's runs are melded or laid off - a block that touches a knocker's run is laid off on it, any other is a run
of the defender's own - and a card that completes a knocker's set is laid off on that.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from envs.batching import lanes_last
from envs.gin_rummy.melding.arrangement import Arrangement, arrange
from envs.gin_rummy.melding.melds import candidates, choice_points, most_melded, over_suits, points, removals, run_cards


def set_completions(sets: Array) -> Array:
    """Returns the cards that complete sets of three.

    Args:
      sets: int32[3, 4, ...] suit masks of the knocker's sets.
    Returns:
      int32[4, ...] suit masks.
    """
    ranks = sets[:, 0] | sets[:, 1] | sets[:, 2] | sets[:, 3]
    missing = ranks[:, None] & ~sets
    return missing[0] | missing[1] | missing[2]


@lanes_last
def _deadwood_against(sets: Array, runs: Array, defender: Array) -> Array:
    free = set_completions(sets)

    def covered(left: Array) -> Array:
        return (run_cards(left | runs) | free) & left

    return over_suits(points(defender)) - most_melded(defender, covered)


@lanes_last
def _melds_first(sets: Array, runs: Array, defender: Array) -> Array:
    free = set_completions(sets)
    cands = candidates(defender)
    left = defender[None] & ~removals(cands)[:, None]
    own = run_cards(left)
    unmatched = left & ~own
    laid_off = (run_cards(unmatched | runs) | free) & unmatched
    melded = choice_points(cands, points(own))
    covered = choice_points(cands, points(own | laid_off))
    # Both are below 2^8 where the choice is possible and negative where it is not: one number compares them in turn.
    best = jnp.max((melded << 8) + covered, axis=0)
    return over_suits(points(defender)) - (best & 255)


def melds_first_deadwood(laid: Arrangement, defender: Array) -> Array:
    """Returns the deadwood of a defender who melds first and then lays off unmelded cards only.

    Of the own arrangements of least deadwood it takes the one that lays off most. An unmatched card is laid off where
    it makes a block with a knocker's run, which the unmatched cards of one suit alone never are, or completes a set.

    Args:
      laid: the knocker's arrangement.
      defender: int32[4] suit masks of at most eleven cards.
    Returns:
      int32 points.
    Source: the 16-action document, section 10, "Normal Knock".
    """
    return _melds_first(laid.sets, laid.runs, defender)


def deadwood_against(laid: Arrangement, defender: Array) -> Array:
    """Returns the defender's least deadwood over all own melds and layoffs on the knocker's melds.

    Args:
      laid: the knocker's arrangement.
      defender: int32[4] suit masks of at most eleven cards.
    Returns:
      int32 points.
    """
    return _deadwood_against(laid.sets, laid.runs, defender)


def layoff_deadwood(knocker: Array, defender: Array) -> Array:
    """Returns `deadwood_against` the melds the knocker lays: int32 points, from two hands of int32[4] suit masks."""
    return deadwood_against(arrange(knocker), defender)
