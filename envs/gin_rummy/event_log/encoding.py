"""What a player of `gin_rummy` sees, as 4,887 numbers: cards, every event so far, and eleven scalars.

Observation, float32, for 52 cards and 80 actions:

| index | content |
|---|---|
| 0:52 | own hand |
| 52:104 | known unplayable: in the discard pile, but not its present top |
| 104:156 | belief that the opponent holds the card (`belief`) |
| 156 + 59 i | event i, oldest first: actor (1 = the player), type one-hot 5, card one-hot 52, turn fraction i / 80 |
| 4876 | stock left / 31 |
| 4877:4883 | phase one-hot |
| 4883 | 1 if the player is to act |
| 4884 | own deadwood / 100; with eleven cards the least over discarding any one of them |
| 4885, 4886 | can knock, can gin: the player is to act and a legal knock (one leaving deadwood 0) exists |

Event 0 is the deal's upcard, shown as a discard of actor 0. The k-th action is event k; the 80th is never stored. The card
of a stock draw is shown to the drawer only; a pass carries the declined card.
"""  # noqa: E501

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import cards
from envs.game import CardFeatures, EventLog, LogSlot
from envs.gin_rummy.core import card_features, table
from envs.gin_rummy.core.rules import GinRules
from envs.gin_rummy.event_log.state import PHASES, GinView

_TYPES = 5
_SCALARS = 5 + len(PHASES)
_DEADWOOD = 2 + len(PHASES)
"""Of the scalars, the own deadwood."""


def log_offset(rules: GinRules) -> int:
    """Returns where the events start: after three facts about each card."""
    return 3 * rules.num_cards


def log_width(rules: GinRules) -> int:
    """Returns the numbers of one event: actor, type, card, turn fraction."""
    return 1 + _TYPES + rules.num_cards + 1


def scalar_offset(rules: GinRules) -> int:
    """Returns where the scalars start: after room for `max_actions` events."""
    return log_offset(rules) + rules.max_actions * log_width(rules)


def size(rules: GinRules) -> int:
    """Returns the numbers in the observation: cards, events and scalars."""
    return scalar_offset(rules) + _SCALARS


def encode(rules: GinRules, view: GinView) -> Array:
    """Returns the observation vector: float32[4887], indices as in the module's table."""
    without_events, first = dense(rules, view), log_offset(rules)
    events = _events(rules, view).reshape(-1)
    return jnp.concatenate([without_events[:first], events, without_events[first:]])


def dense(rules: GinRules, view: GinView) -> Array:
    """Returns the observation without its events: float32[167]."""
    hand, pile, known = (
        cards.to_cards(mask, rules.num_ranks, rules.num_suits) for mask in (view.hand, view.pile, view.known)
    )
    unknown = ~(hand | pile | known)
    held = belief(known, unknown, view.opponent_cards - table.count(view.known))
    scalars = [
        view.stock / np.float32(rules.num_cards - rules.dealt),
        *(view.phase == p for p in range(len(PHASES))),
        view.to_act,
        view.deadwood / np.float32(100),
        view.can_knock,
        view.can_gin,
    ]
    unplayable = pile & (np.arange(rules.num_cards) != view.top)
    parts = [hand, unplayable, held, jnp.stack([jnp.float32(x) for x in scalars])]
    return jnp.concatenate([part.astype(jnp.float32) for part in parts])


def belief(known: Array, unknown: Array, hidden: Array) -> Array:
    """Returns the probability that the opponent holds each card, the opponent's choices left aside: float32[52].

    With K the cards the opponent is known to hold, U those whose place the player does not know, and n = the opponent's
    cards without K, which are equally likely to be any n of U:

        belief(c) = 1 for c in K;    n / |U| for c in U;    0 for all others, the own hand and the pile.

    Args:
      known: bool[52], K: seen taken from the pile by the opponent and not discarded since.
      unknown: bool[52], U: in none of the own hand, the pile and K.
      hidden: int32, n.
    """
    probability = hidden / jnp.maximum(jnp.sum(unknown), 1)
    return jnp.where(known, 1.0, jnp.where(unknown, probability, 0.0))


def _events(rules: GinRules, view: GinView) -> Array:
    """Returns the event block: float32[80, 59], zero beyond the log's length."""
    actor, kind, card = (x[:, None] for x in table.read(view.log))
    present = kind > 0
    slots = np.arange(rules.max_actions, dtype=np.float32)[:, None]
    width = log_width(rules)
    column = np.arange(width)
    is_one = (
        ((column == 0) & present & (actor == view.seat))
        | ((column == kind) & present)
        | ((column == card + 1 + _TYPES) & (card >= 0))
    )
    turn = jnp.where(present, slots / np.float32(rules.max_actions), 0)
    return jnp.where(column == width - 1, turn, is_one.astype(jnp.float32))


def _log_slot(rules: GinRules, view: GinView, slot: Array) -> LogSlot:
    """Returns the up to four non-zero entries of event `slot`: actor, type, card and turn fraction."""
    actor, kind, card = table.read(view.log[slot])
    width = log_width(rules)
    first = log_offset(rules) + width * slot
    present = kind > 0
    values = [
        present & (actor == view.seat),
        present,
        present & (card >= 0),
        jnp.where(present, slot / np.float32(rules.max_actions), 0),
    ]
    rows = [first, first + kind, first + 1 + _TYPES + card, first + width - 1]
    values = jnp.stack([jnp.asarray(value, jnp.float32) for value in values])
    return LogSlot(jnp.where(values != 0, jnp.stack(rows), 0), values)


def _log_length(view: GinView) -> Array:
    """Returns the number of events: int32."""
    return view.length.astype(jnp.int32)


@functools.cache
def event_log(rules: GinRules) -> EventLog:
    """Returns the observation's dense part and log; between two decisions of a player at most three events are new."""
    return EventLog(
        slots=rules.max_actions,
        offset=log_offset(rules),
        width=log_width(rules),
        growth=3,
        observation_size=size(rules),
        dense=functools.partial(dense, rules),
        length=_log_length,
        slot=functools.partial(_log_slot, rules),
    )


@functools.cache
def features(rules: GinRules, first_discard: int) -> CardFeatures | None:
    """Returns what the observation says of each card; of the full deck and hands of ten only.

    Two actions are about a card: it is discarded, or the hand knocked with it.

    Args:
      rules: of the game.
      first_discard: the action that discards card 0; the knocks follow the discards.
    """
    if not card_features.are_of(rules):
        return None
    return CardFeatures(
        2,
        functools.partial(_card_features, rules, first_discard),
        functools.partial(_card_features, rules, first_discard, recall=True),
    )


def _card_features(
    rules: GinRules, first_discard: int, observation: Array, recall: bool = False
) -> tuple[Array, Array, Array]:
    """Returns features of the hand, float32[56] or [88], and of each card (core/card_features.py)."""
    hand, pile, held = (observation[n * cards.NUM_CARDS : (n + 1) * cards.NUM_CARDS] for n in range(3))
    scalars = observation[scalar_offset(rules) :]
    known = (held == 1).astype(jnp.float32)
    top = (held == 0) * (1.0 - hand - pile)
    # Once all of the opponent's cards are known it holds no card unseen either; only the top has been in an event.
    all_known = jnp.sum(known) >= rules.hand_size
    top = jnp.where(all_known, top * _pile_top(rules, observation), top)
    seen = card_features.Seen(hand, pile, top, known, 100.0 * scalars[_DEADWOOD])
    if recall:
        discarded, last = _opponents_discards(rules, observation)
        seen = seen._replace(discarded=discarded, last=last)
    features = card_features.of_position(seen)
    first = np.array([first_discard, first_discard + cards.NUM_CARDS])
    actions = jnp.where(features.cards[:, None] >= 0, features.cards[:, None] + first, -1)
    return jnp.concatenate([jnp.delete(scalars, _DEADWOOD), features.whole]), features.each, actions


def _pile_top(rules: GinRules, observation: Array) -> Array:
    """Returns the pile's top by the events, one-hot: float32[52]; some other card once the pile is empty."""
    events = _event_block(rules, observation)
    laid = events[:, table.DISCARD] + events[:, table.KNOCK]
    height = jnp.cumsum(laid - events[:, table.DRAW_DISCARD])
    # The last card laid at the height that the pile has now lies there still.
    latest = jnp.max(jnp.where((laid > 0) & (height == height[-1]), np.arange(rules.max_actions), 0))
    return _shown(rules, observation)[latest]


def _event_block(rules: GinRules, observation: Array) -> Array:
    """Returns the events of an observation: float32[80, 59]."""
    return observation[log_offset(rules) : scalar_offset(rules)].reshape(rules.max_actions, log_width(rules))


def _shown(rules: GinRules, observation: Array) -> Array:
    """Returns the card that each event shows, one-hot: float32[80, 52]."""
    return _event_block(rules, observation)[:, 1 + _TYPES : 1 + _TYPES + rules.num_cards]


def _opponents_discards(rules: GinRules, observation: Array) -> tuple[Array, Array]:
    """Returns the cards the opponent has discarded, float32[52], and the last of them, int32, -1 for none."""
    events = _event_block(rules, observation)[1:]
    theirs = events[:, table.DISCARD] * (1.0 - events[:, 0])
    shown = _shown(rules, observation)[1:] * theirs[:, None]
    latest = jnp.max(theirs * np.arange(1, rules.max_actions))
    last = jnp.argmax(shown[jnp.maximum(latest.astype(jnp.int32) - 1, 0)])
    return jnp.max(shown, axis=0), jnp.where(latest > 0, last, -1)
