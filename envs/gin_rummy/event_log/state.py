"""State and view of `gin_rummy`: what the dealer knows, and what one player may know."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
from jax import Array

from envs.gin_rummy.core.table import Table

PHASES = ("first_offer", "second_offer", "forced_stock", "draw", "discard", "over")
FIRST_OFFER, SECOND_OFFER, FORCED_STOCK, DRAW, DISCARD, OVER = range(6)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class GinState:
    """A round in play.

    Attributes:
      table: cards and log.
      phase: int32, index into PHASES.
      current_player: int32, -1 once the round is over.
      knocker: int32, who knocked, -1 for nobody.
      ending: int32, 0 in play, else scoring.TIE, KNOCK, GIN or UNDERCUT.
    """

    table: Table
    phase: Array
    current_player: Array
    knocker: Array
    ending: Array


class GinView(NamedTuple):
    """What a player may know; 194 bytes for the full deck, against 19,548 of the observation.

    Attributes:
      hand: uint16[4] suit masks of the own hand.
      pile: uint16[4] suit masks of the discard pile.
      known: uint16[4] suit masks of cards the opponent took from the pile and still holds.
      log: uint16[max_actions] entries as table.entry packs them, the opponent's stock draws without their card.
      length: uint8, log entries.
      seat: uint8, the player.
      top: uint8, the pile's top card, 255 for none.
      stock: uint8, cards in the stock.
      opponent_cards: uint8, cards in the opponent's hand.
      phase: uint8, index into PHASES.
      to_act: bool, whether the player is to act.
      deadwood: uint8, points; with a card drawn the least over discarding any one card.
      can_knock, can_gin: bool, whether a legal knock (one leaving deadwood 0) exists now.
    """

    hand: Array
    pile: Array
    known: Array
    log: Array
    length: Array
    seat: Array
    top: Array
    stock: Array
    opponent_cards: Array
    phase: Array
    to_act: Array
    deadwood: Array
    can_knock: Array
    can_gin: Array
