"""A round of gin rummy in words (host side)."""

from __future__ import annotations

from typing import Any

import jax

from envs import cards
from envs.gin_rummy.core.rules import GinRules
from envs.gin_rummy.core.scoring import ENDINGS


def of_round(rules: GinRules, state: Any, phases: tuple[str, ...]) -> dict[str, Any]:
    """Describes a round: hands, pile oldest first, stock next card first, phase, who acts, how it ended.

    Args:
      rules: of the game.
      state: with a `table`, and phase, current_player, knocker and ending.
      phases: names of the phases.
    """
    ranks, board = rules.num_ranks, jax.device_get(state.table)

    def named(ids: Any) -> list[str]:
        return [cards.card_name(card, ranks) for card in ids]

    return {
        "hands": [named(cards.cards_in(hand, ranks)) for hand in board.hands],
        "pile": named(board.pile[: int(board.pile_size)]),
        "stock": named(board.deck[rules.dealt + int(board.drawn) :]),
        "phase": phases[int(state.phase)],
        "current_player": int(state.current_player),
        "actions": int(board.actions),
        "deadwood": [int(points) for points in board.deadwood],
        "knocker": int(state.knocker),
        "ending": ENDINGS[int(state.ending)],
    }
