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
    return {
        "hands": [cards.card_names(cards.cards_in(hand, ranks), ranks) for hand in board.hands],
        "pile": cards.card_names(board.pile[: int(board.pile_size)], ranks),
        "stock": cards.card_names(board.deck[rules.dealt + int(board.drawn) :], ranks),
        "phase": phases[int(state.phase)],
        "current_player": int(state.current_player),
        "actions": int(board.actions),
        "deadwood": [int(points) for points in board.deadwood],
        "knocker": int(state.knocker),
        "ending": ENDINGS[int(state.ending)],
    }
