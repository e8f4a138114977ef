"""Rules, state and view of `gin_rummy_openspiel`; the game itself is openspiel.py."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import cards
from envs.cards import NUM_CARDS, NUM_RANKS, NUM_SUITS
from envs.errors import InputError
from envs.gin_rummy.openspiel.meld_ids import MELD_MASKS, NUM_MELDS

PHASES = ("first_upcard", "draw", "discard", "knock", "layoff", "melds", "wall", "over")
FIRST_UPCARD, DRAW, DISCARD, KNOCK, LAYOFF, MELDS, WALL, OVER = range(8)
TAKE, STOCK, PASS, KNOCKS, LAYS = 52, 53, 54, 55, 56
NUM_ACTIONS = LAYS + NUM_MELDS
NUM_WORDS = -(-NUM_ACTIONS // 32)
OBSERVATION_SIZE = 2 + 2 * NUM_CARDS + 2 + 10 + 3 * NUM_CARDS + 2 * NUM_MELDS
WALL_STOCK = 2
MOST_TAKES = 50
NO_CARD = 255
MOST_MELDS = 3
SUITS = "scdh"


@dataclasses.dataclass(frozen=True)
class OpenSpielRules:
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

    @property
    def num_cards(self) -> int:
        """Cards in the deck."""
        return self.num_ranks * self.num_suits

    @property
    def dealt(self) -> int:
        """Cards that have left the stock when play begins: two hands and the upcard."""
        return 2 * self.hand_size + 1

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
            "hand_size": (1, 10),
        }
        for name, (low, high) in bounds.items():
            if not low <= getattr(self, name) <= high:
                raise InputError(f"rule {name}={getattr(self, name)} is out of range; it must be in [{low}, {high}]")
        if self.num_cards < self.dealt + WALL_STOCK:
            raise InputError(
                f"rules num_ranks={self.num_ranks}, num_suits={self.num_suits}, hand_size={self.hand_size} do not fit: "
                f"{self.num_cards} cards, of which a deal and the wall take {self.dealt + WALL_STOCK}"
            )


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class OpenSpielState:
    """A hand in play.

    Attributes:
      deck: uint8[cards], the shuffled deck; the stock is what lies beyond the cards dealt and drawn. Hidden.
      hands: uint16[2, 4] suit masks. Private.
      known: uint16[2, 4] cards of each hand that were seen taken from the pile. Public.
      shed: uint16[2, 4] cards each player has discarded so far, wherever they are now; () in a game whose observation
        does not tell. Public.
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
    shed: Any
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
      shed: uint16[2, 4] cards either player has discarded so far, wherever they are now, or ().
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
    shed: Any
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


def of(pair: Array, player: Array) -> Array:
    """Returns the entry of a player in an array [2, ...]."""
    return jnp.where(player == 1, pair[1], pair[0])


def in_words(rules: OpenSpielRules, state: OpenSpielState) -> dict[str, Any]:
    """Tells a state, of NumPy arrays, in words."""
    ranks = rules.num_ranks

    def named(ids: Iterable[int]) -> list[str]:
        return [cards.RANKS[int(card) % ranks] + SUITS[int(card) // ranks] for card in ids]

    def listed(masks: np.ndarray) -> list[str]:
        return named(cards.cards_in(masks, ranks))

    laid = [[listed(MELD_MASKS[meld]) for meld in row if meld != NO_CARD] for row in state.laid]
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
