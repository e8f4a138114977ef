"""Rules, state and view of `gin_rummy_openspiel`; the game itself is game.py."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import cards
from envs.cards import NUM_RANKS, NUM_SUITS
from envs.gin_rummy.melding import melds
from envs.gin_rummy.openspiel.ids import NO_MELD, PHASES, SUITS, WALL_STOCK
from envs.gin_rummy.openspiel.meld_ids import MELD_MASKS, NUM_MELDS
from envs.rules import DeckRules, check_bounds


@dataclasses.dataclass(frozen=True)
class OpenSpielRules(DeckRules):
    """The parameters of OpenSpiel's gin_rummy, by its names.

    Attributes:
      oklahoma: whether the upcard's value is the knock card, an ace meaning gin only.
      knock_card: the most deadwood a knocker may keep.
      gin_bonus, undercut_bonus: points.
      num_ranks, num_suits: the deck, ranks from the ace up.
      hand_size: cards dealt to each player.
    """

    oklahoma: bool = False
    knock_card: int = 10
    gin_bonus: int = 25
    undercut_bonus: int = 25
    num_ranks: int = NUM_RANKS
    num_suits: int = NUM_SUITS
    hand_size: int = 10

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
          InputError: a rule out of range.
        """
        bounds = {
            "knock_card": (0, 10),
            "gin_bonus": (0, 1000),
            "undercut_bonus": (0, 1000),
            "num_ranks": (1, NUM_RANKS),
            "num_suits": (1, NUM_SUITS),
            "hand_size": (1, melds.MOST_CARDS - 1),
        }
        check_bounds(self, bounds)
        self.check_deck(WALL_STOCK, "the wall")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class OpenSpielState:
    """A round in play.

    Attributes:
      deck: uint8[cards], the shuffled deck; the stock is what follows the cards dealt and drawn. Hidden.
      hands: uint16[2, 4] suit masks. Private.
      known: uint16[2, 4] cards of each hand that were seen taken from the pile. Public.
      discarded: uint16[2, 4] cards each player has discarded so far, wherever they are now; () in a game whose
        observation does not show it. Public.
      pile: uint16[4] suit masks of the discard pile, the upcard not included.
      laid_off: uint16[4] suit masks of the cards laid off.
      laid: uint8[2, 3] ids of the melds laid by each player, in order; 255 for none.
      upcard, previous: int32 card id, -1 for none; `previous` is the upcard before the last draw.
      drawn: int32, cards drawn from the stock.
      takes: int32, upcards taken, the first offer apart.
      passes: int32, passes on the first upcard.
      knock_card: int32, the most deadwood a knocker may keep.
      phase: int32, index into PHASES.
      turn: int32, whose turn it is, or would be once over.
      current_player: int32, the same, -1 once over.
      knocker: int32, who knocked, -1 for nobody.
      repeated: bool, the last turn ended by discarding the card the upcard was before it.
      can_knock: bool, the player to act may knock. Private.
    """

    deck: Array
    hands: Array
    known: Array
    discarded: Any
    pile: Array
    laid_off: Array
    laid: Array
    upcard: Array
    previous: Array
    drawn: Array
    takes: Array
    passes: Array
    knock_card: Array
    phase: Array
    turn: Array
    current_player: Array
    knocker: Array
    repeated: Array
    can_knock: Array


class OpenSpielView(NamedTuple):
    """What a player may know.

    Attributes:
      hand: uint16[4] suit masks of the own hand.
      known: uint16[2, 4] cards either player took from the pile and still holds; with open hands all it holds.
      discarded: uint16[2, 4] cards either player has discarded so far, wherever they are now, or ().
      pile: uint16[4] suit masks of the discard pile, the upcard not included.
      laid_off: uint16[4] suit masks of the cards laid off.
      laid: uint8[2, 3] ids of the melds laid by each player, 255 for none.
      upcard, previous: uint8 card id, 255 for none.
      stock: uint8, cards in the stock.
      takes, passes: uint8, upcards taken and passes on the first one.
      knock_card: uint8, points.
      phase: uint8, index into PHASES.
      seat: uint8, the player.
      turn: uint8, whose turn it is, or would be once over.
      repeated: bool, the last turn discarded what the upcard was before it.
    """

    hand: Array
    known: Array
    discarded: Any
    pile: Array
    laid_off: Array
    laid: Array
    upcard: Array
    previous: Array
    stock: Array
    takes: Array
    passes: Array
    knock_card: Array
    phase: Array
    seat: Array
    turn: Array
    repeated: Array


def select_player(pair: Array, player: Array) -> Array:
    """Returns the entry of a player in an array [2, ...]."""
    return jnp.where(player == 1, pair[1], pair[0])


def laid_cards(laid: Array) -> Array:
    """Returns the cards of melds by id: uint16[..., 4] suit masks from uint8[...], empty for NO_MELD."""
    masks = jnp.asarray(MELD_MASKS)[jnp.minimum(laid, NUM_MELDS - 1)]
    return jnp.where((laid != NO_MELD)[..., None], masks, np.uint16(0))


def in_words(rules: OpenSpielRules, state: OpenSpielState) -> dict[str, Any]:
    """Describes a state, of NumPy arrays, in words."""
    ranks = rules.num_ranks

    def named(ids: Iterable[int]) -> list[str]:
        return cards.card_names(ids, ranks, SUITS)

    def listed(masks: np.ndarray) -> list[str]:
        return named(cards.cards_in(masks, ranks))

    laid = [[listed(MELD_MASKS[meld]) for meld in row if meld != NO_MELD] for row in state.laid]
    numbers = ("current_player", "drawn", "knock_card", "knocker", "passes", "takes", "turn")
    return {
        "hands": [listed(hand) for hand in state.hands],
        "upcard": named([state.upcard])[0] if state.upcard >= 0 else None,
        "previous_upcard": named([state.previous])[0] if state.previous >= 0 else None,
        "pile": listed(state.pile),
        "stock": named(state.deck[rules.dealt + int(state.drawn) :]),
        "melds": laid,
        "laid_off": listed(state.laid_off),
        "phase": PHASES[int(state.phase)],
        "repeated": bool(state.repeated),
        **{name: int(getattr(state, name)) for name in numbers},
    }
