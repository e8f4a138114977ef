"""The board of `kuhn_poker`: own card, chips and the betting so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.betting import CODE_BITS
from envs.boards import Variant, betting
from envs.game import Game, State, View

VARIANTS = (Variant("standard"),)
DECK = ("J", "Q", "K")
_NAMES = ("pass", "bet")


def seen(game: Game, view: View) -> dict[str, Any]:
    """Shows a round in play: `card`, `chips`, `bets` by round, `to_act`."""
    bets = _bets(int(view.bets))
    return betting.table(int(view.seat), DECK[int(view.card)], None, [bets], _chips(bets), len(bets) % 2)


def opened(game: Game, state: State, actions: Sequence[int]) -> dict[str, Any]:
    """Shows both cards."""
    bets, player = _bets(int(state.bets)), int(state.current_player)
    hands = [DECK[int(card)] for card in state.hands]
    shown = betting.table(None, None, None, [bets], _chips(bets), player)
    return {**shown, "hands": hands, **({"settlement": _settled(hands, bets)} if player < 0 else {})}


def _bets(codes: int) -> list[str]:
    found = [codes >> CODE_BITS * n & 3 for n in range(3)]
    return [_named(n, found) for n, code in enumerate(found) if code]


def _named(n: int, codes: list[int]) -> str:
    """Returns what the n-th action is called: a pass after a bet folds, a bet after a bet calls."""
    after_bet = n > 0 and codes[n - 1] == 2
    return ("fold" if after_bet else "check") if codes[n] == 1 else ("call" if after_bet else "bet")


def _chips(bets: list[str]) -> list[int]:
    return [1 + sum(bet in ("bet", "call") for bet in bets[seat::2]) for seat in range(2)]


def _settled(hands: list[str], bets: list[str]) -> dict[str, Any]:
    chips = _chips(bets)
    if bets[-1] == "fold":
        winner = len(bets) % 2
        return {"ending": "fold", "winner": winner, "total": min(chips)}
    winner = int(DECK.index(hands[1]) > DECK.index(hands[0]))
    return {"ending": "showdown", "winner": winner, "total": min(chips)}


def choice(game: Game, view: View, action: int) -> dict[str, Any]:
    """Shows check or fold, bet or call."""
    bets = _bets(int(view.bets))
    facing = bool(bets) and bets[-1] == "bet"
    return {"kind": ("fold" if facing else "check") if action == 0 else ("call" if facing else "bet")}


def said(game: Game, before: View, action: int, after: View) -> dict[str, Any]:
    """Returns an action as all hear of it."""
    return {"kind": _bets(int(after.bets))[-1]}


def hands(game: Game, state: State) -> jax.Array:
    """Returns who holds which card: bool[2, 3]."""
    return jnp.asarray(state.hands)[:, None] == np.arange(3)


def deck(game: Game) -> tuple[str, ...]:
    """Returns the cards by name, in the order of `hands`."""
    return DECK
