"""What an action of `gin_rummy_openspiel` does: which cards it moves, which phase and whose turn follow."""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import cards
from envs.gin_rummy.openspiel import ids
from envs.gin_rummy.openspiel.meld_ids import MELD_MASKS, NUM_MELDS
from envs.gin_rummy.openspiel.state import OpenSpielRules, OpenSpielState, select_player


class Move(NamedTuple):
    """What kind of action is taken: bool scalars, all False once the round is over.

    Attributes:
      offered: the first upcard is on offer.
      takes: the upcard is drawn.
      capped: it is the last upcard that may be drawn, and the round ends.
      stock: a card is drawn from the stock.
      passes: a pass, in whatever phase.
      knocks: a knock; the discard that belongs to it is an action of its own.
      lays: a meld is laid.
      discards: a card is discarded without a knock.
      knock_discards: the knocker's discard.
      lays_off: a card is laid off.
    """

    offered: Array
    takes: Array
    capped: Array
    stock: Array
    passes: Array
    knocks: Array
    lays: Array
    discards: Array
    knock_discards: Array
    lays_off: Array


def stock(rules: OpenSpielRules, state: OpenSpielState) -> Array:
    """Returns the number of cards in the stock: int32."""
    return rules.num_cards - rules.dealt - state.drawn


def read(state: OpenSpielState, action: Array) -> Move:
    """Returns what kind of action an action is in a state."""
    phase, card = state.phase, action < ids.TAKE
    offered = phase == ids.FIRST_UPCARD
    takes = (action == ids.TAKE) & (offered | (phase == ids.DRAW))
    counted = takes & ~offered
    return Move(
        offered=offered,
        takes=takes,
        capped=counted & (state.takes + 1 == ids.MOST_TAKES),
        stock=(action == ids.STOCK) & (offered | (phase == ids.DRAW)),
        passes=(action == ids.PASS) & (phase != ids.OVER),
        knocks=(action == ids.KNOCKS) & ((phase == ids.DISCARD) | (phase == ids.WALL)),
        lays=(action >= ids.LAYS) & ((phase == ids.KNOCK) | (phase == ids.MELDS)),
        discards=card & (phase == ids.DISCARD),
        knock_discards=card & (phase == ids.KNOCK),
        lays_off=card & (phase == ids.LAYOFF),
    )


def move_cards(rules: OpenSpielRules, state: OpenSpielState, action: Array, move: Move) -> OpenSpielState:
    """Returns the state with the cards where the action puts them; whose turn it is is left as it was."""
    bit = functools.partial(cards.card_mask, num_ranks=rules.num_ranks)
    nothing = np.uint16(0)
    draws = move.stock & (state.drawn < rules.num_cards - rules.dealt)
    picks = (move.takes & ~move.capped) | (move.knocks & (state.phase == ids.WALL))
    top = state.deck[jnp.minimum(rules.dealt + state.drawn, rules.num_cards - 1)].astype(jnp.int32)
    gone = move.discards | move.knock_discards | move.lays_off
    upcard, card = bit(state.upcard), bit(jnp.where(gone, action, -1))
    meld = jnp.asarray(MELD_MASKS)[jnp.clip(action - ids.LAYS, 0, NUM_MELDS - 1)]
    lost = card | jnp.where(move.lays, meld, nothing)
    picked = jnp.where(picks, upcard, nothing)
    own = (np.arange(2) == state.turn)[:, None]
    filled = jnp.sum(state.laid != ids.NO_MELD, axis=1, keepdims=True)
    lays = own & move.lays & (np.arange(ids.MOST_MELDS) == filled)
    piled = jnp.where(move.stock, upcard, nothing) | jnp.where(move.knock_discards, card, nothing)
    gained = picked | jnp.where(draws, bit(top), nothing)
    return dataclasses.replace(
        state,
        hands=jnp.where(own, (state.hands | gained) & ~lost, state.hands),
        known=jnp.where(own, (state.known | picked) & ~lost, state.known),
        discarded=jax.tree.map(lambda masks: masks | jnp.where(own & move.discards, card, nothing), state.discarded),
        pile=state.pile | piled,
        laid_off=state.laid_off | jnp.where(move.lays_off, card, nothing),
        laid=jnp.where(lays, (action - ids.LAYS).astype(jnp.uint8), state.laid),
        upcard=jnp.where(move.discards, action, jnp.where(picks | move.stock, -1, state.upcard)),
        previous=jnp.where(move.takes | move.stock, state.upcard, state.previous),
        drawn=state.drawn + draws,
        takes=state.takes + (move.takes & ~move.offered),
        passes=state.passes + (move.passes & move.offered),
        repeated=jnp.where(move.discards, action == state.previous, state.repeated),
    )


def next_phase(rules: OpenSpielRules, state: OpenSpielState, moved: OpenSpielState, move: Move) -> tuple[Array, Array]:
    """Returns phase and turn after an action, from the states before it and after its cards were moved."""
    stuck = move.discards & moved.repeated & state.repeated
    empty = move.stock & (moved.drawn == state.drawn)
    at_wall = stock(rules, moved) == ids.WALL_STOCK
    gin = jnp.all(select_player(moved.hands, state.turn) == 0)
    after_defender = jnp.where(state.phase == ids.LAYOFF, ids.MELDS, ids.OVER)
    after_pass = jnp.where(state.phase == ids.KNOCK, jnp.where(gin, ids.MELDS, ids.LAYOFF), after_defender)
    phase = jnp.where(move.takes | move.stock, ids.DISCARD, state.phase)
    phase = jnp.where(move.discards, jnp.where(at_wall, ids.WALL, ids.DRAW), phase)
    phase = jnp.where(move.knocks, ids.KNOCK, phase)
    phase = jnp.where(move.passes & ~move.offered, after_pass, phase)
    phase = jnp.where(stuck | empty | move.capped, ids.OVER, phase)
    swaps = move.discards | (move.passes & (move.offered | (state.phase == ids.KNOCK)))
    return phase, jnp.where(swaps, 1 - state.turn, state.turn)
