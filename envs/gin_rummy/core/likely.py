"""Hands that an opponent is likely to hold by now: a Markov chain that leads a uniform hand towards less deadwood.

Uniform deals hold no trace of what the opponent kept and let go: after seven turns its hand has some 50 points of
deadwood in them, and 15 to 24 at the table (experiments/gin_beliefs.py). The chain's hands h have density exp(-b d(h))
with d the deadwood, and b grows with the turns.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs import cards
from envs.gin_rummy.core import table
from envs.gin_rummy.core.rules import DeckRules
from envs.gin_rummy.melding import melds

SWAPS = 64
"""Steps of the chain."""
_SHARPNESS_PER_TURN, _MOST_SHARPNESS = 0.025, 0.15
"""Per point of deadwood: with these the mean deadwood is about that of `gin_rummy/points` and `lookahead` in play."""


class Hidden(NamedTuple):
    """Cards whose place is not known.

    Attributes:
      held: int32[n], the opponent's; the first `held_count` count.
      stock: int32[m], of the stock; the first `stock_count` count.
    """

    held: Array
    held_count: Array
    stock: Array
    stock_count: Array


def turns_in(log: Array, player: Array) -> Array:
    """Returns how often a player has drawn, from either place, by a table's log: int32."""
    actor, kind, _ = table.read(log)
    draws = (kind == table.DRAW_STOCK) | (kind == table.DRAW_DISCARD)
    return jnp.sum(draws & (actor == player), dtype=jnp.int32)


def sharpness(turns: Array) -> Array:
    """Returns b after so many turns of the opponent, per point of deadwood: float32."""
    return jnp.minimum(_SHARPNESS_PER_TURN * turns, _MOST_SHARPNESS)


def led(rules: DeckRules, hidden: Hidden, known: Array, b: Array, key: Array) -> tuple[Hidden, Array]:
    """Runs the chain: a Metropolis step swaps a card of the opponent's with one of the stock.

    Args:
      rules: sizes of the deck.
      hidden: a uniform deal.
      known: uint16[4], suit masks of what the opponent holds besides.
      b: float32, per point of deadwood.
      key: consumed.
    Returns:
      A deal, and the opponent's deadwood, int32.
    """

    def bits(card: Array) -> Array:
        return cards.card_mask(card, rules.num_ranks).astype(jnp.int32)

    draw_key, luck_key = jax.random.split(key)
    draws, luck = jax.random.bits(draw_key, (SWAPS, 2)), jax.random.exponential(luck_key, (SWAPS,))
    counts = jnp.maximum(jnp.stack([hidden.held_count, hidden.stock_count]), 1).astype(jnp.uint32)
    possible = (hidden.held_count > 0) & (hidden.stock_count > 0)
    is_held = np.arange(hidden.held.shape[0]) < hidden.held_count
    hand = known.astype(jnp.int32) + jnp.sum(jnp.where(is_held[:, None], jax.vmap(bits)(hidden.held), 0), axis=0)

    def swap(n: Array, at: tuple[Array, ...]) -> tuple[Array, ...]:
        """Makes swap n - 1. With n = 0 it counts the first hand only, here because the count takes long to compile."""
        held, stock, hand, deadwood = at
        i, j = draws[n - 1, 0] % counts[0], draws[n - 1, 1] % counts[1]
        swapped = jnp.where(n == 0, hand, hand ^ bits(held[i]) ^ bits(stock[j]))
        after = melds.deadwood(swapped)
        fine = possible & (n > 0) & (b * (after - deadwood) < luck[n - 1])
        new = held.at[i].set(stock[j]), stock.at[j].set(held[i]), swapped
        chosen = jax.tree.map(lambda one, other: jnp.where(fine, one, other), new, at[:3])
        return *chosen, jnp.where(fine | (n == 0), after, deadwood)

    start = hidden.held, hidden.stock, hand, jnp.int32(0)
    held, stock, _, deadwood = lax.fori_loop(0, SWAPS + 1, swap, start)
    return hidden._replace(held=held, stock=stock), deadwood
