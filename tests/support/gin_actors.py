"""Players of `gin_rummy` as JAX functions, to drive thousands of hands to every kind of ending."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import cards, gin_rummy
from envs.batching import where_needed
from envs.game import Game
from envs.random_play import uniform_action

Actor = Callable[[Game, Any, Array, Array], Array]
"""(game, state, uint32 random bits, int32 style of the whole hand) -> action int32; anything once it is over."""
STOCK, TOP, PASS, FIRST_CARD = 0, 1, 2, 3
_ACTIONS = np.arange(FIRST_CARD + 2 * cards.NUM_CARDS)


def at_random(game: Game, state: Any, bits: Array, style: Array) -> Array:
    """Chooses uniformly; of odd style never the pile's top, so that the stock runs out."""
    legal = game.legal_actions(state)
    legal = legal & ~((_ACTIONS == TOP) & (style % 2 == 1))
    return jnp.where(jnp.any(legal), uniform_action(bits, legal), (bits % len(_ACTIONS)).astype(jnp.int32))


def greedy(game: Game, state: Any, bits: Array, style: Array) -> Array:
    """Takes the pile's top when that lowers deadwood, discards for least deadwood, knocks as soon as it may."""
    view, legal = game.view(state, state.current_player), game.legal_actions(state)
    discards, knocks = jnp.split(legal[FIRST_CARD:], 2)
    hand = cards.to_cards(view.hand) | ((np.arange(cards.NUM_CARDS) == view.top) & legal[TOP])
    unneeded = jnp.full(cards.NUM_CARDS, gin_rummy.NOT_HELD, jnp.int32)
    thinks = legal[TOP] | jnp.any(discards)
    after = where_needed(thinks, gin_rummy.deadwood_after_discard, unneeded, hand)
    takes = legal[TOP] & (jnp.min(after) < view.deadwood)
    draw = jnp.where(takes, TOP, jnp.where(legal[STOCK], STOCK, PASS))
    card = jnp.argmin(jnp.where(discards, after, gin_rummy.NOT_HELD + 1)).astype(jnp.int32)
    discard = FIRST_CARD + card + jnp.where(knocks[card], cards.NUM_CARDS, 0)
    return jnp.where(jnp.any(discards), discard, draw).astype(jnp.int32)


def mixed(game: Game, state: Any, bits: Array, style: Array) -> Array:
    """Plays `greedy` half the time and `at_random` else."""
    return jnp.where(bits & 1, greedy(game, state, bits, style), at_random(game, state, bits, style))
