"""The board of `mini_gin_rummy`: that of `gin_rummy`, where a knock may choose its own discard."""

from __future__ import annotations

from typing import Any

from envs.boards import Variant, gin
from envs.boards.gin import deck, hands, insight, opened, seen
from envs.game import Game, View

__all__ = ["VARIANTS", "choice", "deck", "hands", "insight", "opened", "said", "seen"]

VARIANTS = tuple(Variant(preset, {"preset": preset}) for preset in ("4x2", "3x3", "5x2"))


def choice(game: Game, view: View, action: int) -> dict[str, Any]:
    """Shows an action as in `gin_rummy`; a knock with the best discard names no card."""
    return {"kind": "knock", "cards": []} if _is_knock(game, action) else gin.choice(game, view, action)


def said(game: Game, before: View, action: int, after: View) -> dict[str, Any]:
    """Returns an action as a player hears of it; a discard by the pile's top, as players may name the suits apart."""
    if action < gin.DISCARDS:
        return gin.said(game, before, action, after)
    kind = "knock" if action >= gin.DISCARDS + game.rules.num_cards else "discard"
    return {"kind": kind, "cards": gin.named([int(after.top)], game.rules.num_ranks)}


def _is_knock(game: Game, action: int) -> bool:
    return game.rules.knock_form == "best_discard" and action == gin.DISCARDS + game.rules.num_cards
