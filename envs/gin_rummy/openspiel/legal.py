"""The legal actions of `gin_rummy_openspiel`, packed; those after a knock are knock_phase.py's."""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np
from jax import Array

from envs.batching import lanes_last, where_needed
from envs.gin_rummy.melding import melds
from envs.gin_rummy.openspiel import ids, knock_phase
from envs.gin_rummy.openspiel.state import OpenSpielRules, OpenSpielState, laid_cards, select_player


def legal_words(rules: OpenSpielRules, state: OpenSpielState) -> Array:
    """Returns the legal actions packed, action a in bit a % 32 of word a // 32: uint32[8]."""
    phase = state.phase
    hand = select_player(state.hands, state.turn)
    lays = (phase == ids.KNOCK) | (phase == ids.LAYOFF) | (phase == ids.MELDS)
    offered, wall = phase == ids.FIRST_UPCARD, phase == ids.WALL
    chooses = offered & (state.passes < 2)
    flags = [
        chooses | (phase == ids.DRAW),
        (offered & ~chooses) | (phase == ids.DRAW),
        chooses | wall,
        state.can_knock & ((phase == ids.DISCARD) | wall),
    ]
    first = knock_phase.pack(rules, jnp.where(phase == ids.DISCARD, hand, np.uint16(0)), flags)
    words = jnp.stack([*first, *[jnp.uint32(0)] * (ids.NUM_WORDS - 2)])
    held, laid = hand.astype(jnp.int32), select_player(state.laid, state.knocker)
    now = held, laid, state.laid_off, phase, state.knock_card
    words = where_needed(lays, functools.partial(_laying_words, rules), words, *now)
    knocks = (phase == ids.KNOCK) & melds.has_conflict(held)
    return where_needed(knocks, functools.partial(_knocker_words, rules), words, *now)


def _laying_words(
    rules: OpenSpielRules, hand: Array, laid: Array, laid_off: Array, phase: Array, knock_card: Array
) -> Array:
    """Returns the legal actions after a knock, but for a knocker whose hand has a conflict, packed: uint32[8]."""
    words = lanes_last(functools.partial(knock_phase.simple_words, rules))
    return words(hand, laid_cards(laid).astype(jnp.int32), laid_off.astype(jnp.int32), phase, knock_card)


def _knocker_words(
    rules: OpenSpielRules, hand: Array, laid: Array, laid_off: Array, phase: Array, knock_card: Array
) -> Array:
    """Returns the legal actions of a knocker, packed: uint32[8]."""
    return lanes_last(functools.partial(knock_phase.knocker_words, rules))(hand, phase, knock_card)
