"""What a knock is worth."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from envs.gin_rummy.arrangement import arrange
from envs.gin_rummy.layoffs import deadwood_against
from envs.gin_rummy.rules import GinRules

DRAW, KNOCK, GIN, UNDERCUT = 1, 2, 3, 4
"""How a hand ended; 0 while it goes on."""


class Settlement(NamedTuple):
    """A knock settled.

    Attributes:
      points: int32, what the knocker wins; negative when undercut.
      ending: int32, KNOCK, GIN or UNDERCUT.
    """

    points: Array
    ending: Array


def settle(rules: GinRules, knocker: Array, defender: Array, deadwood: Array) -> Settlement:
    """Settles a knock: gin admits no layoffs, else the defender melds and lays off at the joint optimum.

    Args:
      rules: bonuses and the rule for ties.
      knocker: int32[4] suit masks, after the knock's discard.
      defender: int32[4] suit masks.
      deadwood: int32, the defender's own deadwood before layoffs.
    """
    laid = arrange(knocker)
    is_gin = laid.deadwood == 0
    against = deadwood_against(laid, defender)
    margin = against - laid.deadwood
    undercut = (margin <= 0) if rules.undercut_on_tie else (margin < 0)
    after_knock = margin - jnp.where(undercut, rules.undercut_bonus, 0)
    points = jnp.where(is_gin, deadwood + rules.gin_bonus, after_knock)
    ending = jnp.where(is_gin, GIN, jnp.where(undercut, UNDERCUT, KNOCK))
    return Settlement(points, ending)
