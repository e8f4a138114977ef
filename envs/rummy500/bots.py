"""Players of rummy 500 that need no training."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from envs import cards
from envs.game import Policy
from envs.rummy500 import actions
from envs.rummy500.rules import HAND_VALUES
from envs.rummy500.state import RummyView


def greedy_policy() -> Policy:
    """Returns a player that lays whatever scores most, takes what it can play, and discards what fits least.

    It takes the newest pile card that it can play; it discards the card with the fewest neighbours in its hand (its
    rank, and two ranks up and down in its suit), the dearest of these. Equals share the probability.
    """
    return Policy(_greedy)


def _greedy(params: tuple[()], view: RummyView, legal: Array) -> Array:
    hand = cards.to_cards(view.hand).reshape(4, 13)
    held = hand.astype(jnp.float32)
    near = sum(jnp.roll(jnp.pad(held, ((0, 0), (0, 2))), step, axis=1)[:, :13] for step in (-2, -1, 1, 2))
    neighbours = (near + jnp.sum(held, axis=0) - held).reshape(-1)
    newest = jnp.where(view.position == 255, -1, view.position.astype(jnp.int32))
    worth = jnp.concatenate(
        [
            jnp.zeros(1),
            100.0 + newest,
            1000.0 + actions.POINTS[actions.SET : actions.DISCARD],
            100.0 - 20.0 * neighbours + HAND_VALUES,
        ]
    )
    worth = jnp.where(legal, worth, -jnp.inf)
    best = legal & (worth == jnp.max(worth))
    return best / jnp.maximum(jnp.sum(best), 1).astype(jnp.float32)
