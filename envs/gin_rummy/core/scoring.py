"""What a knock is worth."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from envs import cards
from envs.gin_rummy.core.rules import GinRules
from envs.gin_rummy.melding import melds
from envs.gin_rummy.melding.arrangement import arrange
from envs.gin_rummy.melding.layoffs import deadwood_against, melds_first_deadwood

TIE, KNOCK, GIN, UNDERCUT = 1, 2, 3, 4
"""How a round ended; 0 while it goes on. A TIE is a round in which nobody knocked."""
ENDINGS = ("in play", "tie", "knock", "gin", "undercut")
"""The same in words."""

GIN_SUFFERED = -0.85
"""The least categorical reward."""


class Settlement(NamedTuple):
    """A knock settled.

    Attributes:
      points: int32, what the knocker wins; negative when undercut.
      ending: int32, KNOCK, GIN or UNDERCUT.
    """

    points: Array
    ending: Array


def settle(rules: GinRules, knocker: Array, defender: Array, deadwood: Array, discard: Array) -> Settlement:
    """Settles a knock: gin admits no layoffs, else the defender melds and lays off as the rules say.

    Args:
      rules: bonuses, the rule for equal deadwood, and how the defender answers. Where big gin is played, a knock with
        gin whose discard could have been melded too is big gin: the discard is the game's form, and changes nothing.
      knocker: int32[4] suit masks, after the knock's discard.
      defender: int32[4] suit masks.
      deadwood: int32, the defender's own deadwood before layoffs.
      discard: int32, the card the knock discarded.
    """
    laid = arrange(knocker)
    is_gin = laid.deadwood == 0
    answer = deadwood_against if rules.layoff == "exact" else melds_first_deadwood
    against = answer(laid, defender)
    margin = against - laid.deadwood
    undercut = (margin <= 0) if rules.undercut_on_tie else (margin < 0)
    after_knock = margin - jnp.where(undercut, rules.undercut_bonus, 0)
    gin_bonus = jnp.int32(rules.gin_bonus)
    if rules.big_gin_bonus:
        eleven = knocker | cards.card_mask(discard, rules.num_ranks).astype(jnp.int32)
        gin_bonus = jnp.where(melds.deadwood(eleven) == 0, rules.big_gin_bonus, gin_bonus)
    points = jnp.where(is_gin, deadwood + gin_bonus, after_knock)
    ending = jnp.where(is_gin, GIN, jnp.where(undercut, UNDERCUT, KNOCK))
    return Settlement(points, ending)


def result(knocker: Array, ending: Array, deadwood: Array, player: Array) -> dict[str, Array]:
    """Returns whether a player knocked (gin included), went gin, undercut, and the deadwood kept: float32 each."""
    mine = knocker == player
    knocked = (ending == KNOCK) | (ending == GIN) | (ending == UNDERCUT)
    by_name = {
        "knock_rate": mine & knocked,
        "gin_rate": mine & (ending == GIN),
        "undercut_rate": ~mine & (ending == UNDERCUT),
        "deadwood": deadwood,
    }
    return {name: value.astype(jnp.float32) for name, value in by_name.items()}


def categorical_reward(points: Array, ending: Array) -> tuple[Array, Array]:
    """Returns what knocker and defender are paid for how a round ended: float32 each, not zero-sum.

    With q = min(p, 50) / 50, p the points won or lost, bonus included:

    | ending | knocker | defender |
    |---|---|---|
    | gin | 1 | -0.85 |
    | knock | 0.25 + 0.45 q | -0.15 - 0.45 q |
    | undercut | -0.70 | 0.25 + 0.45 q |
    | tie, or a knock or an undercut worth nothing | 0 | 0 |

    Args:
      points: int32, what the knocker wins; negative when undercut.
      ending: int32, KNOCK, GIN, UNDERCUT or TIE.
    Source: the 16-action document, section 13, which gives the ranges' ends; the interpolation is this project's.
    """
    share = jnp.minimum(jnp.abs(points), 50) / 50.0
    won, lost = 0.25 + 0.45 * share, -0.15 - 0.45 * share
    nothing = (ending == TIE) | ((ending != GIN) & (points == 0))
    knocker = jnp.where(ending == GIN, 1.0, jnp.where(ending == UNDERCUT, -0.70, won))
    defender = jnp.where(ending == GIN, GIN_SUFFERED, jnp.where(ending == UNDERCUT, won, lost))
    return jnp.where(nothing, 0.0, knocker), jnp.where(nothing, 0.0, defender)
