"""The board of `leduc_poker`: own card, the public card once it is turned, chips and the betting so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.betting import CODE_BITS
from envs.boards import Variant, betting
from envs.cards import NO_CARD
from envs.game import Game, State, View

VARIANTS = (Variant("standard"),)
DECK = ("JS", "JH", "QS", "QH", "KS", "KH")
_RAISES = (2, 4)
_FOLD, _CALL, _RAISE = 1, 2, 3


def seen(game: Game, view: View) -> dict[str, Any]:
    """Shows a round in play: `card`, `public`, `chips`, `bets` by round, `to_act`."""
    public = None if view.public == NO_CARD else DECK[int(view.public)]
    codes = _codes(view.bets)
    bets, chips = _played(codes)
    current = codes[0 if public is None else 1]
    return betting.table(int(view.seat), DECK[int(view.card)], public, bets, chips, len(current) % 2)


def opened(game: Game, state: State, actions: Sequence[int]) -> dict[str, Any]:
    """Shows both cards, and the public card where it was turned."""
    bets, chips = _played(_codes(state.bets))
    player = int(state.current_player)
    public = DECK[int(state.public)] if int(state.round) > 0 else None
    shown = betting.table(None, None, public, bets, chips, player)
    hands = [DECK[int(card)] for card in state.hands]
    settled = {"settlement": _settled(hands, public, bets, chips)} if player < 0 else {}
    return {**shown, "hands": hands, **settled}


def _codes(bets: Any) -> list[list[int]]:
    found = [[int(of_round) >> CODE_BITS * n & 3 for n in range(4)] for of_round in bets]
    return [[code for code in row if code] for row in found]


def _played(codes: list[list[int]]) -> tuple[list[list[str]], list[int]]:
    """Returns the names of the actions by round, and what each seat has put in."""
    chips, named = [1, 1], []
    for size, row in zip(_RAISES, codes, strict=True):
        names = []
        for n, code in enumerate(row):
            seat, level = n % 2, max(chips)
            names.append(_name(code, chips[0] != chips[1], any(x == _RAISE for x in row[:n])))
            if code != _FOLD:
                chips[seat] = level + (size if code == _RAISE else 0)
        named.append(names)
    return named, chips


def _name(code: int, facing: bool, raised: bool) -> str:
    if code == _FOLD:
        return "fold"
    if code == _CALL:
        return "call" if facing else "check"
    return "raise" if raised else "bet"


def _settled(hands: list[str], public: str | None, bets: list[list[str]], chips: list[int]) -> dict[str, Any]:
    last = bets[1] or bets[0]
    if last[-1] == "fold":
        return {"ending": "fold", "winner": len(last) % 2, "total": min(chips)}
    strength = [DECK.index(card) // 2 + 3 * (card[0] == public[0]) for card in hands]
    if strength[0] == strength[1]:
        return {"ending": "tie", "winner": None, "total": 0}
    return {"ending": "showdown", "winner": int(strength[1] > strength[0]), "total": min(chips)}


def choice(game: Game, view: View, action: int) -> dict[str, Any]:
    """Shows fold, check or call, bet or raise."""
    codes = _codes(view.bets)
    current = codes[0 if view.public == NO_CARD else 1]
    _, chips = _played(codes)
    return {"kind": _name(action + 1, chips[0] != chips[1], _RAISE in current)}


def said(game: Game, before: View, action: int, after: View) -> dict[str, Any]:
    """Returns an action as all hear of it."""
    return choice(game, before, action)


def hands(game: Game, state: State) -> jax.Array:
    """Returns who holds which card: bool[2, 6]."""
    return jnp.asarray(state.hands)[:, None] == np.arange(6)


def deck(game: Game) -> tuple[str, ...]:
    """Returns the cards by name, in the order of `hands`."""
    return DECK
