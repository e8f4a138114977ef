"""The observations of `gin_rummy_openspiel`: OpenSpiel's tensor, or card planes with different contents.

Tensor, float32, 644 for any deck:

| index | content |
|---|---|
| 0:2 | observing player, one-hot |
| 2:106 | hands of player 0 and 1; only the observer's own is shown |
| 106:108 | player to act, one-hot (after the end, the player who would have acted) |
| 108:118 | knock card: as many ones as points |
| 118:170 | upcard |
| 170:222 | discard pile, the upcard not included |
| 222:274 | stock: as many ones as cards |
| 274:459, 459:644 | melds laid by player 0 and 1 |

Planes, float32, 167, each plane 4 suits of 13 ranks:

| index | content |
|---|---|
| 0:52 | own hand |
| 52:104 | discard pile, the upcard not included |
| 104:156 | known: 1 for a card the opponent was seen taking and still holds, -1 for the upcard |
| 156:159 | phase: first upcard, draw, discard |
| 159 | own deadwood / 100; with a card drawn, the minimum over the discards |
| 160 | the same with the upcard in hand |
| 161 | whether that is less than the player's deadwood |
| 162 | whether the player's deadwood is at most the knock card |
| 163 | knock card / 10 |
| 164 | stock / 31 |
| 165 | passes on the first upcard / 2 |
| 166 | whether the last turn discarded the card that was the upcard before it |

With neither an upcard nor a card drawn, as after the opponent took the upcard, index 160 is still the minimum of the
deadwood over the discards, of nine cards where ten are held, and 161 is 1 unless the player's deadwood is 0.

Recall, float32, 271: planes, then

| index | content |
|---|---|
| 167:219 | discarded by the opponent so far, wherever the cards are now |
| 219:271 | the opponent's last discard; zeros without one, or where it is the opponent's turn |

Open hands, float32, 167: planes with the opponent's whole hand as known cards. This is a different, easier game, used
to measure what knowledge of the hidden cards is worth; no other observation shows what a player may not know.

Source of the planes: the OpenSpiel document's PPO, "52 hand + 52 discard pile + 52 known cards + 11 other features"; it
does not say what the eleven are, so these are this project's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs import cards
from envs.cards import NUM_CARDS, NUM_RANKS, NUM_SUITS
from envs.game import CardFeatures
from envs.gin_rummy.core import card_features
from envs.gin_rummy.melding import melds
from envs.gin_rummy.openspiel.ids import DISCARD
from envs.gin_rummy.openspiel.meld_ids import NUM_MELDS
from envs.gin_rummy.openspiel.state import OpenSpielRules, OpenSpielView, select_player

NUM_PLANES = 3
_TENSOR_SIZE = 2 + 2 * NUM_CARDS + 2 + 10 + 3 * NUM_CARDS + 2 * NUM_MELDS
_PLANES_SIZE = NUM_PLANES * NUM_CARDS + 11
_RECALL_SIZE = _PLANES_SIZE + 2 * NUM_CARDS
_FULL_STOCK = 31
_NUMBERS = NUM_PLANES * NUM_CARDS
_OWN = _NUMBERS + 3


def tensor(rules: OpenSpielRules, view: OpenSpielView) -> Array:
    """Returns OpenSpiel's observation tensor: float32[644], as in the module's first table."""
    ids, seats = np.arange(NUM_CARDS), np.arange(2)
    own, pile = _by_id(rules, view.hand), _by_id(rules, view.pile)
    hands = own[None] & (seats == view.seat)[:, None]
    laid = jnp.any(view.laid[:, :, None] == np.arange(NUM_MELDS), axis=1)
    parts = [
        seats == view.seat,
        hands,
        seats == view.turn,
        np.arange(10) < view.knock_card,
        ids == view.upcard,
        pile,
        ids < view.stock,
        laid,
    ]
    return jnp.concatenate([part.reshape(-1) for part in parts]).astype(jnp.float32)


def planes(rules: OpenSpielRules, view: OpenSpielView) -> Array:
    """Returns planes of cards and eleven numbers: float32[167], as in the module's second table."""
    hand = view.hand.astype(jnp.int32)
    upcard = cards.card_mask(cards.signed_id(view.upcard), rules.num_ranks)
    shown = jnp.concatenate(
        [_grid(view.hand), _grid(view.pile), _grid(select_player(view.known, 1 - view.seat)) - _grid(upcard)]
    )
    drawn = jnp.sum(lax.population_count(hand)) > rules.hand_size
    bigger = hand | jnp.where(drawn, 0, upcard.astype(jnp.int32))
    best = jnp.min(melds.deadwood_after_discard(bigger))
    own = jnp.where(drawn, best, melds.deadwood(hand))
    with_upcard = jnp.minimum(best, own)
    numbers = [
        *(view.phase == phase for phase in range(DISCARD + 1)),
        own / 100,
        with_upcard / 100,
        with_upcard < own,
        own <= view.knock_card,
        view.knock_card / 10,
        view.stock / _FULL_STOCK,
        view.passes / 2,
        view.repeated,
    ]
    return jnp.concatenate([shown, jnp.stack([jnp.asarray(x, jnp.float32) for x in numbers])])


def recall(rules: OpenSpielRules, view: OpenSpielView) -> Array:
    """Returns planes, and what the opponent has discarded: float32[271], as in the module's third table."""
    discarded = select_player(view.discarded, 1 - view.seat)
    last = jnp.where(view.phase == DISCARD, view.previous, view.upcard)
    asked = (view.turn == view.seat) & (last != cards.NO_CARD)
    last = cards.card_mask(jnp.where(asked, last.astype(jnp.int32), -1), rules.num_ranks)
    return jnp.concatenate([planes(rules, view), _grid(discarded), _grid(last & discarded)])


def _card_features(observation: Array) -> tuple[Array, Array, Array]:
    """Returns any observation but the tensor, of the full deck, in numbers of order 1.

    Args:
      observation: float32[167], or [271] with what the opponent discarded.
    Returns:
      (of the hand float32[56], or [88]: the numbers but the own deadwood, then those of core/card_features.py; of each
      card float32[11, 45], or [11, 54]; the actions that discard them int32[11, 1]).
    """
    hand, pile, others = (observation[n * NUM_CARDS : (n + 1) * NUM_CARDS] for n in range(NUM_PLANES))
    known, upcard = (others > 0).astype(jnp.float32), (others < 0).astype(jnp.float32)
    seen = card_features.Seen(hand, pile, upcard, known, 100.0 * observation[_OWN])
    if observation.shape[0] == _RECALL_SIZE:
        discarded, last = jnp.split(observation[_PLANES_SIZE:], 2)
        seen = seen._replace(discarded=discarded, last=jnp.where(jnp.any(last > 0), jnp.argmax(last), -1))
    features = card_features.of_position(seen)
    numbers = jnp.delete(observation[_NUMBERS:_PLANES_SIZE], _OWN - _NUMBERS)
    return jnp.concatenate([numbers, features.whole]), features.each, features.cards[:, None]


def _grid(masks: Array) -> Array:
    """Returns a plane of the cards in suit masks, 13 ranks a suit whatever the deck: float32[52]."""
    bits = (masks.astype(jnp.int32)[:, None] >> np.arange(NUM_RANKS)) & 1
    return bits.reshape(NUM_SUITS * NUM_RANKS).astype(jnp.float32)


def _by_id(rules: OpenSpielRules, masks: Array) -> Array:
    """Returns which card ids suit masks hold: bool[52]."""
    held = cards.to_cards(masks, rules.num_ranks, rules.num_suits)
    return jnp.pad(held, (0, NUM_CARDS - rules.num_cards))


class Observation(NamedTuple):
    """A kind of observation: its size, and the function (rules, view) -> float32[size]."""

    size: int
    encode: Callable[[OpenSpielRules, OpenSpielView], Array]


OBSERVATIONS: dict[str, Observation] = {
    "tensor": Observation(_TENSOR_SIZE, tensor),
    "planes": Observation(_PLANES_SIZE, planes),
    "recall": Observation(_RECALL_SIZE, recall),
    "open_hands": Observation(_PLANES_SIZE, planes),
}
"""The kinds of observation by name; with open hands the view's `known` is the hands."""
FEATURES = CardFeatures(1, _card_features)
"""What any of them but the tensor says of each card of the full deck; one action is about a card, its discard."""
