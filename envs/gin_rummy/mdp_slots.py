"""What the observation of `gin_rummy_mdp` says of each card held and of the hand as a whole, in numbers of order 1.

The eleven discards mean the same thing of eleven cards, so that a network may rate them by one rule
(`dream/networks/slots.py`). Everything here follows from the observation alone; L is the deadwood a discard leaves, D the
own deadwood, W that with the pile's top taken, E the opponent's estimated, all in points. Around a card, for each of the
planes hand, pile, picked and declined: the four cards of its suit at ranks -2, -1, +1, +2, and the number of cards of
its rank in other suits / 3 (20 numbers).

| of a slot, in this order; zeros in an empty one | numbers |
|---|---|
| (L - least L) / 10, at most 3; 1 where L is the least | 2 |
| min(L, 50) / 25; min(L, 10) / 10; 1 where L is 0 | 3 |
| safety, melded, 2 * connectors | 3 |
| 1: a card is held; value / 10; rank, one-hot | 15 |
| around it | 20 |

| of the hand, in this order | numbers |
|---|---|
| phase, hand_size, pile_size, stock, turns, can_knock, undercut_risk, melded_share, from_gin, margin, activity | 14 |
| min(x, 50) / 25 and min(x, 10) / 10 of D, W, E and the least L | 8 |
| (D - W) / 10 in [-2, 2]; 1 where W < D | 2 |
| the pile's top, zeros without one: 1 where it melds with cards held; 1; value / 10; rank, one-hot; around it | 36 |
| the opponent's kind | 20 |
"""  # noqa: E501

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from envs.cards import NUM_CARDS, NUM_RANKS, NUM_SUITS, VALUES
from envs.gin_rummy.mdp_observation import LAYOUT, SLOTS

_PLANES = ("hand", "pile", "picked", "declined")
_PLAIN = (
    "phase", "hand_size", "pile_size", "stock", "turns", "can_knock", "undercut_risk", "melded_share", "from_gin",
    "margin", "activity",
)  # fmt: skip
_CARD = np.concatenate([np.tile(VALUES, NUM_SUITS)[:, None] / 10.0, np.tile(np.eye(NUM_RANKS), (NUM_SUITS, 1))], axis=1)
"""float[52, 14]: value / 10 and rank of each card."""


def slot_inputs(observation: Array) -> tuple[Array, Array]:
    """Returns (of the hand float32[80], of each slot float32[11, 43]), as the module's tables tell.

    Args:
      observation: float32[342].
    """
    part = {name: observation[first:end] for name, (first, end) in LAYOUT.items()}
    around = jnp.concatenate([_around(part[name]) for name in _PLANES], axis=-1)
    cards = jnp.concatenate([jnp.ones((NUM_CARDS, 1)), jnp.asarray(_CARD, jnp.float32), around], axis=-1)
    order = jnp.cumsum(part["hand"]) - 1.0
    held = (part["hand"] > 0) & (order == np.arange(SLOTS, dtype=np.float32)[:, None])
    left = 100.0 * part["left"]
    filled = jnp.any(held, axis=1)
    least = jnp.min(left)
    own = [
        jnp.minimum((left - least) / 10.0, 3.0),
        left == least,
        *_points(left),
        left < 0.5,
        part["safety"],
        part["melded"],
        2.0 * part["connectors"],
    ]
    slots = jnp.concatenate([jnp.stack(own, axis=-1) * filled[:, None], held.astype(jnp.float32) @ cards], axis=-1)
    top = jnp.concatenate([_melds(part["hand"])[:, None], cards], axis=-1)
    own_points, with_top, estimate = (100.0 * part[name][0] for name in ("deadwood", "with_top", "estimate"))
    whole = [
        *(part[name] for name in _PLAIN),
        *(jnp.stack(_points(x)) for x in (own_points, with_top, estimate, least)),
        jnp.stack([jnp.clip((own_points - with_top) / 10.0, -2.0, 2.0), with_top < own_points - 0.5]),
        part["top"] @ top,
        part["opponent"],
    ]
    return jnp.concatenate(whole), slots


def _points(x: Array) -> list[Array]:
    """Returns points on two scales, a wide and a fine one."""
    return [jnp.minimum(x, 50.0) / 25.0, jnp.minimum(x, 10.0) / 10.0]


def _neighbours(plane: Array) -> tuple[list[Array], Array]:
    """Returns a plane at ranks -2, -1, +1, +2 of each card's suit, and the sum over its rank's other suits."""
    grid = plane.reshape(NUM_SUITS, NUM_RANKS)
    padded = jnp.pad(grid, ((0, 0), (2, 2)))
    shifted = [padded[:, 2 + step : 2 + step + NUM_RANKS].reshape(-1) for step in (-2, -1, 1, 2)]
    return shifted, (jnp.sum(grid, axis=0) - grid).reshape(-1)


def _around(plane: Array) -> Array:
    """Returns what a plane holds around each card: float32[52, 5]."""
    shifted, others = _neighbours(plane)
    return jnp.stack([*shifted, others / 3.0], axis=-1)


def _melds(hand: Array) -> Array:
    """Returns 1 for each card that melds with two cards of the hand: float32[52]."""
    (low2, low1, high1, high2), others = _neighbours(hand)
    runs = low2 * low1 + low1 * high1 + high1 * high2
    return ((runs > 0) | (others >= 2)).astype(jnp.float32)
