"""What the observation of `gin_rummy_mdp` says of each card held and of the hand as a whole, in numbers of order 1.

The eleven discards mean the same thing of eleven cards, so that a network may score them by one shared function
(`dream/networks/card_scorer.py`). Everything here follows from the observation alone; L is the deadwood a discard leaves, D the
own deadwood, W that with the pile's top taken, E the opponent's estimated, all in points. Around a card, for each of the
planes hand, pile, picked and declined: the four cards of its suit at ranks -2, -1, +1, +2, and the number of cards of
its rank in other suits / 3 (20 numbers).

| of a card, in this order; zeros in an empty slot | numbers |
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

from envs.cards import NUM_CARDS
from envs.gin_rummy.core.card_features import held_cards, melds_with, of_cards, pick, points, top_card
from envs.gin_rummy.mdp.encoding import LAYOUT, SLOTS

_PLANES = ("hand", "pile", "picked", "declined")
_PLAIN = (
    "phase", "hand_size", "pile_size", "stock", "turns", "can_knock", "undercut_risk", "melded_share", "from_gin",
    "margin", "activity",
)  # fmt: skip


def of_observation(observation: Array, *, first_discard: int) -> tuple[Array, Array, Array]:
    """Returns (of the hand float32[80], of each card float32[11, 43], their actions int32[11, 1]).

    Args:
      observation: float32[342].
      first_discard: the action that discards the first card held.
    """
    part = {name: observation[begin:end] for name, (begin, end) in LAYOUT.items()}
    planes = tuple(part[name] for name in _PLANES)
    held, top = held_cards(part["hand"]), top_card(part["top"])
    filled = held < NUM_CARDS
    left = 100.0 * part["left"]
    least = jnp.min(left)
    own = [
        jnp.minimum((left - least) / 10.0, 3.0),
        left == least,
        *points(left),
        left < 0.5,
        part["safety"],
        part["melded"],
        2.0 * part["connectors"],
    ]
    each = jnp.concatenate([jnp.stack(own, axis=-1) * filled[:, None], of_cards(held, planes)], axis=-1)
    own_points, with_top, estimate = (100.0 * part[name][0] for name in ("deadwood", "with_top", "estimate"))
    whole = [
        *(part[name] for name in _PLAIN),
        *(jnp.stack(points(x)) for x in (own_points, with_top, estimate, least)),
        jnp.stack([jnp.clip((own_points - with_top) / 10.0, -2.0, 2.0), with_top < own_points - 0.5]),
        pick(melds_with(part["hand"]), top),
        of_cards(top, planes)[0],
        part["opponent"],
    ]
    actions = jnp.where(filled & filled[-1], first_discard + np.arange(SLOTS), -1)
    return jnp.concatenate(whole), each, actions[:, None]
