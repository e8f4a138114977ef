"""The board of `gin_rummy_mdp`: that of `gin_rummy`; discards are slots of the hand, and a knock is decided after one.

An opponent's discard is named by its card: the slot's number would show how many lower cards the opponent holds.
"""

from __future__ import annotations

from typing import Any

from envs import cards
from envs.boards import Variant, gin
from envs.boards.gin import deck, hands, insight, opened, seen
from envs.boards.settlement import named
from envs.game import Game, View

__all__ = ["VARIANTS", "choice", "deck", "hands", "insight", "opened", "said", "seen"]

VARIANTS = (Variant("standard"), Variant("exact_layoff", {"layoff": "exact"}))
_DISCARDS, _GO_ON = 2, 13
_ENDS = ("end", "knock", "gin")


def choice(game: Game, view: View, action: int) -> dict[str, Any]:
    """Shows an action: stock, take, a discard by its card, play on, knock or gin."""
    if action >= _GO_ON:
        return {"kind": _ENDS[action - _GO_ON]}
    if action >= _DISCARDS:
        card = cards.cards_in(view.hand)[action - _DISCARDS]
        return {"kind": "discard", "cards": named([card], 13), "left": int(view.left[action - _DISCARDS])}
    return gin.choice(game, view, action)


def said(game: Game, before: View, action: int, after: View) -> dict[str, Any]:
    """Returns an action as a player hears of it."""
    if action >= _GO_ON:
        return {"kind": _ENDS[action - _GO_ON]}
    if action >= _DISCARDS:
        return {"kind": "discard", "cards": named([int(after.top)], 13)}
    return gin.drawn(action, before, after, 13)
