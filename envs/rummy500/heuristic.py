"""A player of rummy 500 that values melds it may still complete: which cards to keep, discard and take.

A triple is any set or run of three cards. Its probability is the product, over the cards missing from the hand, of the
probability of getting each; the value of a card is the sum, over the triples that contain it, of probability times
points, with 15 for an ace. Plays on the table are those of the greedy player: the one that scores most.

- Discard: the card of the least value minus `risk` times its points, which weigh more as the stock runs out.
- Draw: the stock or the pile card that leads to the hand with the most points in complete triples, plus `keep` times
  the value of the other cards, minus `burden` times their points.
"""

from __future__ import annotations

import functools
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import cards
from envs.errors import finite_number, unknown
from envs.game import Policy
from envs.rummy500 import actions
from envs.rummy500.rules import HAND_VALUES
from envs.rummy500.state import NONE, RummyView


class Weights(NamedTuple):
    """What the player weighs, floats.

    Attributes:
      unseen, piled: how likely a card that was not seen, or that is on the pile, is to come; 0 to 1.
      keep: of the worth of cards that are in no complete triple, when it draws.
      risk: of the points of a card discarded, once the stock is empty.
      burden: of the points of cards in no complete triple, when it draws.
    """

    unseen: float = 0.4
    piled: float = 0.6
    keep: float = 1.0
    risk: float = 1.0
    burden: float = 0.5


def _triples() -> np.ndarray:
    found = []
    for rank in range(cards.NUM_RANKS):
        found += [[13 * suit + rank for suit in suits] for suits in itertools.combinations(range(4), 3)]
    for suit in range(cards.NUM_SUITS):
        found += [[13 * suit + (low + step) % 13 for step in range(3)] for low in range(actions.NUM_STARTS)]
    held = np.zeros((len(found), cards.NUM_CARDS), np.float32)
    held[np.arange(len(found))[:, None], np.array(found)] = 1.0
    return held


_TRIPLES = _triples()
_POINTS = (_TRIPLES @ HAND_VALUES).astype(np.float32)
_product = functools.partial(jnp.matmul, precision="highest")  # accelerators round operands by default
_NEVER = 1e-6
_LEAST_PLAY = 1000.0
"""More than any discard scores."""


def heuristic_policy(**weights: float) -> Policy:
    """Returns the player; its parameters are its weights, fields of `Weights`.

    Raises:
      InputError: an unknown weight, one that is no finite number, or a chance that is not from 0 to 1.
    """
    for name, value in weights.items():
        if name not in Weights._fields:
            raise unknown("option of heuristic", name, Weights._fields)
        finite_number(name, value, *((0, 1) if name in ("unseen", "piled") else ()))
    return Policy(_play, jax.tree.map(np.float32, Weights(**weights)))


def _play(weights: Weights, view: RummyView, legal: Array) -> Array:
    """Returns the action probabilities: float32[374]."""
    held = cards.to_cards(view.hand)
    coming = _coming(weights, view, held)
    worth = _keeping(held[None], coming)[0]
    ends = 1.0 - view.stock / np.float32(cards.NUM_CARDS)
    discard = jnp.clip(weights.risk * ends * HAND_VALUES - worth, -_LEAST_PLAY, _LEAST_PLAY)
    plays = 2 * _LEAST_PLAY + actions.POINTS[actions.SET : actions.DISCARD]
    score = jnp.concatenate([_draws(weights, view, held, coming), plays, discard])
    score = jnp.where(legal, score, -jnp.inf)
    best = legal & (score == jnp.max(score))
    return best / jnp.maximum(jnp.sum(best), 1).astype(jnp.float32)


def _coming(weights: Weights, view: RummyView, held: Array) -> Array:
    """Returns how likely each card is to be held later: float32[52], 1 for the own cards."""
    on_table = cards.to_cards(view.sets) | cards.to_cards(view.runs)
    piled = view.position != NONE
    elsewhere = on_table | (view.holder != NONE)
    chance = jnp.where(elsewhere, 0.0, jnp.where(piled, weights.piled, weights.unseen))
    return jnp.where(held, 1.0, jnp.maximum(chance, _NEVER))


def _keeping(held: Array, coming: Array) -> Array:
    """Returns what each card of each hand is worth keeping, in points: float32[N, 52] from bool[N, 52]."""
    missing = (~held).astype(jnp.float32) * jnp.log(coming)
    chance = jnp.exp(_product(missing, _TRIPLES.T))
    return jnp.where(held, _product(chance * _POINTS, _TRIPLES), 0.0)


def _draws(weights: Weights, view: RummyView, held: Array, coming: Array) -> Array:
    """Returns the scores of the stock and of taking each card with all after it: float32[53]."""
    place = jnp.where(view.position == NONE, -1, view.position.astype(jnp.int32))
    taken = (place[None] >= place[:, None]) & (place[:, None] >= 0) & (place[None] >= 0)
    hands = jnp.concatenate([held[None], held[None] | taken])
    complete = _product(hands.astype(jnp.float32), _TRIPLES.T) > 2.5
    melded = hands & (_product(complete.astype(jnp.float32), _TRIPLES) > 0)
    worth = _keeping(hands, coming)
    values = jnp.where(
        melded, HAND_VALUES, weights.keep * jnp.minimum(worth, HAND_VALUES) - weights.burden * HAND_VALUES
    )
    return jnp.sum(jnp.where(hands, values, 0.0), axis=1)
