"""The state of a round, what a player may know of it, and how the table's cards are read from it."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import cards
from envs.rummy500.plays import Cards

STOCK, PILE, IN_SET, IN_RUN, HAND = range(5)
"""Zones of a card; HAND + p is the hand of player p."""
NONE = 255
_WEIGHTS = np.random.default_rng(500).integers(0, 1 << 32, cards.NUM_CARDS, np.uint32) | np.uint32(1)
"""uint32[52], odd: what a deck's order is mixed with."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class RummyState:
    """A round in play.

    Attributes:
      zone: int8[52], where each card is.
      owner: int8[52], who laid it, -1 for nobody.
      position: int8[52], its index in the pile, oldest 0, -1 elsewhere.
      seen: bool[52], taken from the pile and held since: all know who holds it.
      fresh: bool[52], taken from the pile in the turn under way.
      deck: uint8[52], the deal; drawn: int32, how many of it have left the stock.
      ace_high: bool[4], whether a suit's ace is above the king.
      points: int16[P], of the cards laid.
      duty: int32, the card that must be played before the turn may end, -1 for none.
      duty_direction: int32, 0, or where that card's chain must go on (`plays.Duty`).
      duty_backed: bool[2], whether its chain from below, and that from above, holds a card that was in hand before.
      drew: bool, whether the player to act has drawn.
      turns: int32, discards so far.
      current_player: int32, -1 once the round is over.
      went_out: int32, whose hand ran empty, -1 for nobody's.
    """

    zone: Array
    owner: Array
    position: Array
    seen: Array
    fresh: Array
    deck: Array
    drawn: Array
    ace_high: Array
    points: Array
    duty: Array
    duty_direction: Array
    duty_backed: Array
    drew: Array
    turns: Array
    current_player: Array
    went_out: Array


class RummyView(NamedTuple):
    """What a player may know; other players are counted from the own seat, 1 for the next.

    Attributes:
      hand, fresh: uint16[4] suit masks of the own hand, and of all cards taken from the pile in the turn under way.
      position: uint8[52], index in the pile, oldest 0; 255 elsewhere.
      sets, runs: uint16[4] suit masks of the cards on the table.
      ace_high: bool[4], whether a suit's ace is above the king.
      owner: uint8[52], who laid a card, 255 for nobody.
      holder: uint8[52], which other player holds a card that all saw taken, 255 elsewhere.
      duty: uint8, the card to be played before the turn may end, 255 for none; it is public.
      duty_direction: uint8, 0, 1 up or 2 down; duty_backed: bool[2], from below and from above.
      sizes: uint8[P], cards in hand; points: uint16[P], of cards laid; both relative, own first.
      stock: uint8, cards in the stock.
      to_act: uint8, the relative seat of the player to act, 255 once the round is over.
      drew: bool, whether that player has drawn.
      seat: uint8, the own seat.
      turns: uint8, discards so far.
    """

    hand: Array
    fresh: Array
    position: Array
    sets: Array
    runs: Array
    ace_high: Array
    owner: Array
    holder: Array
    duty: Array
    duty_direction: Array
    duty_backed: Array
    sizes: Array
    points: Array
    stock: Array
    to_act: Array
    drew: Array
    seat: Array
    turns: Array


def table_of(state: RummyState) -> Cards:
    """Returns the cards that the plays of the player to act depend on."""
    grid = (cards.NUM_SUITS, cards.NUM_RANKS)
    held = state.zone == HAND + jnp.maximum(state.current_player, 0)
    in_set = (state.zone == IN_SET).reshape(grid)
    return Cards(
        hand=(held & ~state.fresh).reshape(grid),
        fresh=(held & state.fresh).reshape(grid),
        runs=run_places((state.zone == IN_RUN).reshape(grid), state.ace_high),
        sets=jnp.sum(in_set, axis=0) >= 3,
    )


def reshuffled(state: RummyState) -> RummyState:
    """Returns the state with a stock made of the pile but its newest card.

    All chance is decided at the deal: the new order follows from the whole order of the old deck, which nobody sees.
    """
    newest = jnp.max(state.position)
    moved = (state.zone == PILE) & (state.position < newest)
    seed = jnp.sum(state.deck.astype(jnp.uint32) * _WEIGHTS, dtype=jnp.uint32)
    # Cards that do not move sort before all others; the order among those is random.
    words = jax.random.bits(jax.random.key(seed), (cards.NUM_CARDS,)) | np.uint32(1)
    count = jnp.sum(moved, dtype=jnp.int32)
    return dataclasses.replace(
        state,
        zone=jnp.where(moved, STOCK, state.zone).astype(jnp.int8),
        position=jnp.where(moved, -1, jnp.where(state.position == newest, 0, state.position)).astype(jnp.int8),
        deck=jnp.argsort(jnp.where(moved, words, np.uint32(0))).astype(jnp.uint8),
        drawn=cards.NUM_CARDS - count,
    )


def run_places(in_run: Array, ace_high: Array) -> Array:
    """Returns the places of runs on the table, bool[4, 14], from their cards bool[4, 13]."""
    low = in_run.at[:, 0].set(in_run[:, 0] & ~ace_high)
    return jnp.concatenate([low, (in_run[:, 0] & ace_high)[:, None]], axis=1)


def sizes(state: RummyState, num_players: int) -> Array:
    """Returns the cards in each hand: int32[P]."""
    return jnp.sum(state.zone == HAND + np.arange(num_players)[:, None], axis=1, dtype=jnp.int32)


def view_of(state: RummyState, player: Array, num_players: int) -> RummyView:
    """Returns what `player`, int32, may know."""
    player = jnp.asarray(player, jnp.int32)
    mine = state.zone == HAND + player
    relative = (np.arange(num_players, dtype=np.int32) + player) % num_players
    owner = jnp.where(state.owner < 0, NONE, (state.owner - player) % num_players)
    holder = jnp.where(
        (state.zone >= HAND) & state.seen & ~mine, (state.zone.astype(jnp.int32) - HAND - player) % num_players, NONE
    )
    current = state.current_player
    return RummyView(
        hand=cards.to_mask(mine),
        fresh=cards.to_mask(state.fresh),
        position=jnp.where(state.position < 0, NONE, state.position.astype(jnp.int32)).astype(jnp.uint8),
        sets=cards.to_mask(state.zone == IN_SET),
        runs=cards.to_mask(state.zone == IN_RUN),
        ace_high=state.ace_high,
        owner=owner.astype(jnp.uint8),
        holder=holder.astype(jnp.uint8),
        duty=jnp.where(state.duty < 0, NONE, state.duty).astype(jnp.uint8),
        duty_direction=(state.duty_direction % 3).astype(jnp.uint8),
        duty_backed=state.duty_backed,
        sizes=sizes(state, num_players)[relative].astype(jnp.uint8),
        points=state.points[relative].astype(jnp.uint16),
        stock=(cards.NUM_CARDS - state.drawn).astype(jnp.uint8),
        to_act=jnp.where(current < 0, NONE, (current - player) % num_players).astype(jnp.uint8),
        drew=state.drew,
        seat=player.astype(jnp.uint8),
        turns=state.turns.astype(jnp.uint8),
    )


def melds_of(state: RummyState) -> list[list[int]]:
    """Lists the melds on the table as card ids: sets by rank, then runs by suit and place (host side)."""
    in_set = (np.asarray(state.zone) == IN_SET).reshape(4, 13)
    found = [[13 * suit + rank for suit in range(4) if in_set[suit, rank]] for rank in range(13)]
    in_run, ace_high = (np.asarray(state.zone) == IN_RUN).reshape(4, 13), np.asarray(state.ace_high)[:, None]
    places = np.concatenate([in_run[:, :1] & ~ace_high, in_run[:, 1:], in_run[:, :1] & ace_high], axis=1)
    for suit in range(4):
        run: list[int] = []
        for place in range(15):
            if place < 14 and places[suit, place]:
                run.append(13 * suit + place % 13)
            else:
                found.append(run)
                run = []
    return [meld for meld in found if meld]
