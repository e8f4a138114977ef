"""The board of `liars_dice`: own die and the bids so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.boards import Variant
from envs.game import Game, State, View

VARIANTS = (Variant("standard"),)
_SIDES, _LIAR = 6, 12


def seen(game: Game, view: View) -> dict[str, Any]:
    """Shows a game in play: `die`, `bids` as (quantity, face), `to_act`."""
    bids, own = _bids(int(view.actions)), int(view.seat)
    table = {"kind": "dice", "seat": own, "to_act": len(bids) % 2, "bids": bids, "hand": [str(int(view.die))]}
    return {**table, "others": [{"seat": 1 - own, "count": 1, "known": []}]}


def opened(game: Game, state: State, actions: Sequence[int]) -> dict[str, Any]:
    """Shows both dice."""
    bids, player = _bids(int(state.actions)), int(state.current_player)
    dice = [int(die) for die in state.dice]
    shown = {"kind": "dice", "seat": None, "to_act": player, "bids": bids, "hands": [str(die) for die in dice]}
    if player < 0:
        quantity, face = bids[-1]
        found = sum(die in (face, _SIDES) for die in dice)
        bidder = (len(bids) - 1) % 2
        winner = bidder if found >= quantity else 1 - bidder
        shown["settlement"] = {"ending": "called", "winner": winner, "total": 1, "found": found}
    return shown


def _bids(actions: int) -> list[tuple[int, int]]:
    return [_bid(action) for action in range(_LIAR) if actions >> action & 1]


def _bid(action: int) -> tuple[int, int]:
    return action // _SIDES + 1, action % _SIDES + 1


def choice(game: Game, view: View, action: int) -> dict[str, Any]:
    """Shows a bid, or the call that the last one was a lie."""
    return {"kind": "liar"} if action == _LIAR else {"kind": "bid", "bid": _bid(action)}


def said(game: Game, before: View, action: int, after: View) -> dict[str, Any]:
    """Returns an action as both hear of it."""
    return choice(game, before, action)


def hands(game: Game, state: State) -> jax.Array:
    """Returns which face each die shows: bool[2, 6]."""
    return jnp.asarray(state.dice)[:, None] == np.arange(1, _SIDES + 1)


def deck(game: Game) -> tuple[str, ...]:
    """Returns the cards by name, in the order of `hands`."""
    return tuple("123456")
