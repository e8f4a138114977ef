"""The view of a player of `gin_rummy_mdp`, and its observation of 342 numbers.

The eleven slots are the cards of the player's hand in ascending order of id; D is the player's deadwood, with eleven
cards the minimum over the discards; t is the number of the player's turn, from 1.

| index | name | content |
|---|---|---|
| 0:52 | hand | own hand |
| 52:104 | pile | cards in the discard pile |
| 104:156 | top | the pile's top, one-hot; zeros where the pile is empty |
| 156:157 | deadwood | D / 100 |
| 157:161 | phase | draw, discard, knock decision, over: one-hot |
| 161:162 | hand_size | cards in the own hand / 11 |
| 162:163 | pile_size | cards in the pile / 52 |
| 163:164 | stock | cards in the stock / 31 |
| 164:165 | turns | discards so far, both players' / 35, at most 1 |
| 165:166 | can_knock | 1 if D is at most the knock limit |
| 166:177 | left | deadwood of the other cards held if the slot's card is discarded / 100; 1 in empty slots |
| 177:178 | with_top | the least deadwood after taking the top and discarding another card / 100; 1 with eleven cards or no pile |
| 178:230 | picked | cards the opponent has ever taken from the pile |
| 230:282 | declined | cards that were the top when the opponent drew from the stock |
| 282:283 | estimate | E / 100, E = T(t) / 65.4 * n * v: T(t) the typical deadwood at turn t (outs.py), 65.4 that of ten random cards unmelded, n the opponent's cards not known, v the mean value of the unseen cards; cards seen taken count as melded |
| 283:294 | safety | 1 - min(P, 6) / 6, P the pairs the opponent may hold that meld with the slot's card, where an unseen card has weight 1 and a card known to be held weight 2 (outs.discard_risk); 0 in empty slots |
| 294:295 | undercut_risk | 1 / (1 + exp((E - D) / 6)) where 0 < D <= knock limit, else 0 |
| 295:306 | melded | 1 if discarding the slot's card leaves more deadwood than the cards held have before the discard |
| 306:317 | connectors | unseen cards that would meld with the slot's card and another own card / 6; 0 in empty slots |
| 317:318 | melded_share | sum of `melded` / 10, at most 1 |
| 318:319 | from_gin | (cards in hand - sum of `melded`) / 10, at most 1 |
| 319:320 | urgency | 1 - stock / 31 |
| 320:321 | margin | (E - D) / 50, in [-1, 1] |
| 321:322 | activity | the opponent's draws from the pile / 5, at most 1 |
| 322:342 | opponent | one-hot of the kind of opponent; zeros where the view states none |

Source: the 16-action document, section 5; it gives no formula for estimate, safety, undercut_risk, connectors and
margin. `melded` follows its wording: a set of four and the ends of a run of four have 0.
"""  # noqa: E501

from __future__ import annotations

import functools
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import cards
from envs.cards import NUM_CARDS, NUM_SUITS, VALUES
from envs.gin_rummy.core import table
from envs.gin_rummy.core.rules import GinRules
from envs.gin_rummy.melding import outs

PHASES = ("draw", "discard", "knock", "over")
DRAW, DISCARD, KNOCK, OVER = range(4)
SLOTS = 11
KINDS = 20
"""Kinds of opponent an observation can name."""
_FULL_HAND = 10
_SIZES = {
    "hand": NUM_CARDS, "pile": NUM_CARDS, "top": NUM_CARDS, "deadwood": 1, "phase": len(PHASES), "hand_size": 1,
    "pile_size": 1, "stock": 1, "turns": 1, "can_knock": 1, "left": SLOTS, "with_top": 1, "picked": NUM_CARDS,
    "declined": NUM_CARDS, "estimate": 1, "safety": SLOTS, "undercut_risk": 1, "melded": SLOTS, "connectors": SLOTS,
    "melded_share": 1, "from_gin": 1, "urgency": 1, "margin": 1, "activity": 1, "opponent": KINDS,
}  # fmt: skip
_ENDS = tuple(itertools.accumulate(_SIZES.values()))
LAYOUT = {name: (end - size, end) for (name, size), end in zip(_SIZES.items(), _ENDS, strict=True)}
"""Name -> first index and the one after the last."""
SIZE = _ENDS[-1]
_VALUES = np.tile(VALUES, NUM_SUITS)
_UNMELDED = _FULL_HAND * float(_VALUES.mean())
_MOST_PAIRS = 6.0
_MOST_CONNECTORS = 6.0


class MdpView(NamedTuple):
    """What a player may know.

    Attributes:
      hand, pile, known: uint16[4] suit masks of the own hand, the discard pile, and the cards the opponent took from
        the pile and still holds.
      picked, declined: uint16[4] cards the opponent ever took from the pile, and those it left there for the stock.
      log: uint16[max_actions] entries as table.entry packs them, the opponent's stock draws without their card; a knock
        decision is an entry of type PASS.
      length: uint8, log entries.
      seat: uint8, the player.
      top, below: uint8, the pile's top card and the one under it, 255 for none.
      taken: uint8, the card the player to act took from the pile in this turn, 255 for none.
      stock, opponent_cards, turns, takes: uint8, cards in the stock and in the opponent's hand, discards so far, the
        opponent's draws from the pile.
      phase: uint8, index into PHASES.
      to_act: bool, whether the player is to act.
      deadwood: uint8, points; with eleven cards the least over discarding any one card.
      unmelded: uint8, points of all cards held outside the best melds.
      left: uint8[11], the deadwood left by discarding each slot's card, 255 in empty slots.
      with_top: uint8, the least deadwood after taking the top and discarding another card, 255 where that cannot be.
      opponent: uint8, kind of opponent plus 1, 0 where it is not named.
    """

    hand: Array
    pile: Array
    known: Array
    picked: Array
    declined: Array
    log: Array
    length: Array
    seat: Array
    top: Array
    below: Array
    taken: Array
    stock: Array
    opponent_cards: Array
    turns: Array
    takes: Array
    phase: Array
    to_act: Array
    deadwood: Array
    unmelded: Array
    left: Array
    with_top: Array
    opponent: Array


def slots_of(hand: Array) -> Array:
    """Returns which card each slot holds: bool[11, 52], empty slots all False, from uint16[4] or int32[4]."""
    held = cards.to_cards(hand)
    return held & (_ranks(hand) == np.arange(SLOTS)[:, None])


def slot_card(hand: Array, slot: Array) -> Array:
    """Returns the card in a slot: int32; 0 for an empty one."""
    return jnp.sum(jnp.where(cards.to_cards(hand) & (_ranks(hand) == slot), np.arange(NUM_CARDS), 0), dtype=jnp.int32)


def slot_of(hand: Array, card: Array) -> Array:
    """Returns the slot a card has, or had before it left the hand: int32, the number of lower ids held."""
    return _ranks(hand)[card]


def _ranks(hand: Array) -> Array:
    """Returns how many cards of the hand have a lower id than each card: int32[52]."""
    masks = hand.astype(jnp.int32)
    below = jax.lax.population_count(masks[:, None] & ((1 << np.arange(cards.NUM_RANKS)) - 1))
    sizes = jax.lax.population_count(masks)
    starts = jnp.stack([jnp.int32(0), sizes[0], sizes[0] + sizes[1], sizes[0] + sizes[1] + sizes[2]])
    return (below + starts[:, None]).reshape(-1)


def name_opponent(view: MdpView, kind: Array) -> MdpView:
    """Returns the view that names the opponent's kind: 1 to 20, 0 for unknown."""
    return view._replace(opponent=jnp.asarray(kind).astype(jnp.uint8))


def encode(rules: GinRules, view: MdpView) -> Array:
    """Returns the observation vector: float32[342], as in the module's table."""
    parts = {**_cards_seen(view), **_counts(rules, view), **_of_slots(view), **_judged(rules, view)}
    return jnp.concatenate([jnp.atleast_1d(parts[name]).astype(jnp.float32) for name in LAYOUT])


def _cards_seen(view: MdpView) -> dict[str, Array]:
    """Returns the entries of cards."""
    masks = {"hand": view.hand, "pile": view.pile, "picked": view.picked, "declined": view.declined}
    planes = {name: cards.to_cards(mask) for name, mask in masks.items()}
    kinds = view.opponent.astype(jnp.int32) - 1 == np.arange(KINDS)
    return {**planes, "top": np.arange(NUM_CARDS) == view.top, "opponent": kinds}


def _counts(rules: GinRules, view: MdpView) -> dict[str, Array]:
    """Returns the entries of the course of the round."""
    stock = view.stock / np.float32(rules.num_cards - rules.dealt)
    return {
        "phase": view.phase == np.arange(len(PHASES)),
        "hand_size": table.count(view.hand) / np.float32(SLOTS),
        "pile_size": table.count(view.pile) / np.float32(NUM_CARDS),
        "stock": stock,
        "urgency": 1.0 - stock,
        "turns": jnp.minimum(view.turns / np.float32(35), 1.0),
        "activity": jnp.minimum(view.takes / np.float32(5), 1.0),
        "can_knock": view.deadwood <= rules.knock_limit,
    }


def _of_slots(view: MdpView) -> dict[str, Array]:
    """Returns the entries of the slots and those that follow from them."""
    slots = slots_of(view.hand).astype(jnp.float32)
    filled = jnp.any(slots > 0, axis=1)
    unseen = ~(view.hand | view.pile | view.known)
    of_slot = functools.partial(jnp.matmul, slots, precision="highest")  # accelerators round operands by default
    pairs = of_slot(outs.discard_risk(_of_deck(unseen), view.known.astype(jnp.int32)))
    connectors = of_slot(outs.completions(view.hand.astype(jnp.int32), _of_deck(unseen)))
    melded = filled & (view.left > view.unmelded)
    total = jnp.sum(melded)
    size = table.count(view.hand)
    return {
        "left": jnp.where(filled, jnp.minimum(view.left / np.float32(100), 1.0), 1.0),
        "safety": jnp.where(filled, 1.0 - jnp.minimum(pairs, _MOST_PAIRS) / _MOST_PAIRS, 0.0),
        "connectors": connectors / _MOST_CONNECTORS,
        "melded": melded,
        "melded_share": jnp.minimum(total / np.float32(10), 1.0),
        "from_gin": jnp.minimum((size - total) / np.float32(10), 1.0),
    }


def _judged(rules: GinRules, view: MdpView) -> dict[str, Array]:
    """Returns the entries that weigh the own hand against the opponent's."""
    own = view.deadwood.astype(jnp.float32)
    estimate = estimated_deadwood(view)
    risk = jax.nn.sigmoid((own - estimate) / 6.0)
    return {
        "deadwood": own / 100.0,
        "with_top": jnp.where(view.with_top == cards.NO_CARD, 1.0, jnp.minimum(view.with_top / np.float32(100), 1.0)),
        "estimate": jnp.minimum(estimate / 100.0, 1.0),
        "undercut_risk": jnp.where((own > 0) & (own <= rules.knock_limit), risk, 0.0),
        "margin": jnp.clip((estimate - own) / 50.0, -1.0, 1.0),
    }


def estimated_deadwood(view: MdpView) -> Array:
    """Returns E of the module's table: float32 points."""
    unseen = cards.to_cards(~(view.hand | view.pile | view.known)).astype(jnp.float32)
    value = jnp.sum(unseen * _VALUES) / jnp.maximum(jnp.sum(unseen), 1.0)
    hidden = view.opponent_cards - table.count(view.known)
    # Player 0 plays turns 1, 3, 5, ... of both players' count; a knock decision belongs to the turn of its discard.
    turns = view.turns.astype(jnp.int32) - ((view.phase == KNOCK) & view.to_act)
    turn = 1 + (turns + 1 - view.seat.astype(jnp.int32)) // 2
    typical = jnp.asarray(outs.TYPICAL_DEADWOOD)[jnp.minimum(turn, len(outs.TYPICAL_DEADWOOD) - 1)]
    return typical / _UNMELDED * hidden * value


def _of_deck(masks: Array) -> Array:
    """Returns suit masks without the bits beyond the king: int32[4]."""
    return masks.astype(jnp.int32) & ((1 << cards.NUM_RANKS) - 1)
