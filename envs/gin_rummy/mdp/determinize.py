"""What a player of `gin_rummy_mdp` cannot see, dealt anew.

A view of this game also shows when the opponent had to decide about a knock, so after each of its discards it is known
whether its deadwood was within the knock limit. Deals of which that is not true are drawn again.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import cards
from envs.gin_rummy.core import determinize, table
from envs.gin_rummy.core.rules import MdpRules
from envs.gin_rummy.core.table import Table
from envs.gin_rummy.mdp.encoding import DISCARD, KNOCK, OVER, MdpView
from envs.gin_rummy.melding import melds


class Dealt(NamedTuple):
    """A table and what follows from its log; fields of the state, which documents them."""

    table: Table
    picked: Array
    declined: Array
    takes: Array


def sample(rules: MdpRules, view: MdpView, key: Array) -> Dealt:
    """Draws a table uniformly among those consistent with a view.

    Args:
      rules: of the game.
      view: of either player, in play.
      key: consumed.
    Returns:
      Dealt; seen by view.seat it is bit for bit what was seen.
    """
    accepts = functools.partial(_decides_where_shown, rules, view)
    board = determinize.sample(rules, view, view.phase == DISCARD, key, accepts)
    actor, kind, card = table.read(board.log)
    own = actor == np.arange(2)[:, None]
    takes = own & (kind == table.DRAW_DISCARD)
    leaves = own & (kind == table.DRAW_STOCK)
    return Dealt(
        table=board,
        picked=_union(card, takes),
        declined=_union(_tops_before(board.log), leaves),
        takes=jnp.sum(takes, axis=1, dtype=jnp.int32),
    )


def _union(card: Array, chosen: Array) -> Array:
    """Returns the cards of the chosen log entries of both players: uint16[2, 4] from int32[T] and bool[2, T]."""
    held = jnp.any(chosen[:, :, None] & (card[:, None] == np.arange(cards.NUM_CARDS)), axis=1)
    return jax.vmap(cards.to_mask)(held)


def _tops_before(log: Array) -> Array:
    """Returns the pile's top before each log entry: int32[T], -1 where the pile was empty."""
    _, kind, card = table.read(log)
    put_down = kind == table.DISCARD
    size = jnp.cumsum(put_down.astype(jnp.int32) - (kind == table.DRAW_DISCARD))
    times = np.arange(len(log))
    same_place = put_down & (size == size[:, None]) & (times <= times[:, None])
    latest = jnp.max(jnp.where(same_place, times, -1), axis=1)
    tops = jnp.where((latest >= 0) & (size > 0), card[latest], -1)
    return jnp.roll(tops, 1).at[0].set(-1)


def _decides_where_shown(rules: MdpRules, view: MdpView, hands: Array) -> Array:
    """Returns whether the opponent's deadwood allowed a knock after the discards that a decision followed: bool.

    Args:
      rules: of the game.
      view: of the player who does not see the hands.
      hands: int32[max_actions, 4], the opponent's after each log entry.
    """
    actor, kind, _ = table.read(view.log)
    discards = (kind == table.DISCARD) & (actor == 1 - view.seat.astype(jnp.int32))
    decides_now = (view.phase == KNOCK) & ~view.to_act
    at = jnp.nonzero(discards, size=_most_discards(rules), fill_value=rules.max_actions - 1)[0]
    follows = jnp.roll(kind == table.PASS, -1)[at] | (decides_now & (at == view.length.astype(jnp.int32) - 1))
    could = jax.vmap(melds.deadwood)(hands[at]) <= rules.knock_limit
    return jnp.all((could == follows) | ~discards[at]) | (view.phase == OVER)


def _most_discards(rules: MdpRules) -> int:
    """Returns how many discards one player can make: every second turn, each of two actions at least."""
    return rules.max_actions // 4 + 1
