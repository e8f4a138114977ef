"""What there is to see of a round of gin rummy (host side)."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import cards, drawing
from envs.batching import QUICK
from envs.gin_rummy.core.rules import GinRules
from envs.gin_rummy.core.scoring import ENDINGS
from envs.gin_rummy.melding import arrangement, melds


@functools.cache
def _analyse() -> Any:
    def of_hand(masks: Array) -> tuple[Array, Array, Array]:
        laid = arrangement.arrange(masks)
        return arrangement.meld_rows(laid), laid.deadwood, jnp.min(melds.deadwood_after_discard(masks))

    return jax.jit(of_hand, compiler_options=QUICK)


def hand_row(
    title: str,
    mask: np.ndarray,
    num_ranks: int,
    *,
    size: int,
    suits: str = cards.SUITS,
    active: bool = False,
    taken: int = -1,
) -> drawing.Row:
    """Returns an open hand: its best melds, the other cards, and its deadwood.

    Args:
      title: whose hand it is.
      mask: unsigned[4] suit masks.
      num_ranks: ranks of the deck.
      size: cards of a hand; one more, and the deadwood is what the best discard leaves.
      suits: letters of the suits in their order.
      active: whether it is that player's turn.
      taken: the card just taken from the pile, -1 for none.
    """
    mask = np.asarray(mask).astype(np.int32)
    rows, whole, after = jax.device_get(_analyse()(mask))
    melded = [row for row in rows if row.any()]
    left = mask & ~np.bitwise_or.reduce(rows, axis=0)
    marked = [cards.card_name(taken, num_ranks, suits)] if taken >= 0 else []
    groups = [
        drawing.spread(cards.card_names(cards.cards_in(group, num_ranks), num_ranks, suits), marked=marked)
        for group in [*melded, left]
    ]
    drawn = sum(int(suit).bit_count() for suit in mask) > size
    note = f"deadwood {int(after)} after the best discard" if drawn else f"deadwood {int(whole)}"
    return drawing.Row(title, tuple(group for group in groups if group.pieces), note, active)


def hidden_row(
    title: str,
    mask: np.ndarray,
    known: np.ndarray,
    num_ranks: int,
    *,
    suits: str = cards.SUITS,
    active: bool = False,
) -> drawing.Row:
    """Returns another player's hand: the cards that were seen taken, the others face down."""
    open_cards = cards.card_names(cards.cards_in(known, num_ranks), num_ranks, suits)
    hidden = sum(int(suit).bit_count() for suit in mask) - len(open_cards)
    groups = (drawing.spread(open_cards), drawing.face_down(hidden))
    count = f"{hidden + len(open_cards)} cards"
    return drawing.Row(title, tuple(group for group in groups if group.pieces), count, active)


def of_round(
    rules: GinRules,
    state: Any,
    phases: tuple[str, ...],
    viewer: int | None,
    *,
    title: str,
    suits: str = cards.SUITS,
) -> drawing.Scene:
    """Returns both hands, the stock and the pile of a round, all cards open or as one player knows them.

    Args:
      rules: of the game.
      state: with a `table`, and phase, current_player, knocker and ending.
      phases: names of the phases.
      viewer: a seat, None for all cards open.
      title: name of the game.
      suits: letters of the suits in their order.
    """
    state = jax.device_get(state)
    board, ranks, current = state.table, rules.num_ranks, int(state.current_player)

    def hand(player: int) -> drawing.Row:
        active, who = current == player, f"player {player}"
        if viewer not in (None, player):
            return hidden_row(who, board.hands[player], board.known[player], ranks, suits=suits, active=active)
        taken = int(board.taken) if active else -1
        size = rules.hand_size
        return hand_row(who, board.hands[player], ranks, size=size, suits=suits, active=active, taken=taken)

    pile = cards.card_names(board.pile[: int(board.pile_size)], ranks, suits)
    first, second = seats(viewer)
    rows = (hand(first), *middle(rules.num_cards - rules.dealt - int(board.drawn), pile), hand(second))
    return drawing.Scene(f"{title}: {_standing(state, phases)}", rows)


def seats(viewer: int | None) -> tuple[int, int]:
    """Returns who is drawn above and below: the viewer, or player 0, below."""
    return (0, 1) if viewer == 1 else (1, 0)


def middle(stock: int, pile: Sequence[str]) -> tuple[drawing.Row, drawing.Row]:
    """Returns the stock and the discard pile, oldest card first."""
    count = f"{stock} card{'' if stock == 1 else 's'}"
    return (
        drawing.Row("stock", (drawing.face_down(min(stock, 1)),) if stock else (), count),
        drawing.Row("pile", (drawing.spread(pile),) if pile else (), "newest on the right" if pile else "empty"),
    )


def _standing(state: Any, phases: tuple[str, ...]) -> str:
    """Returns how a round stands, or how it ended, in words."""
    if state.current_player >= 0:
        return f"{phases[int(state.phase)].replace('_', ' ')}, player {int(state.current_player)} to act"
    ending = ENDINGS[int(state.ending)]
    return f"over, {ending}" + (f", player {int(state.knocker)} knocked" if state.knocker >= 0 else "")
