"""What a player of gin rummy wants to know of a hand: outs, the danger of discards, the chance to knock.

All from the own view and a sample of worlds, which says where the hidden cards may be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from envs import cards
from envs.boards import settlement
from envs.boards.settlement import named

_OUTS = 12


def of_hand(
    hand: Sequence[int],
    size: int,
    ranks: int,
    knock_limit: int,
    held: np.ndarray,
    weights: np.ndarray,
    seen: Sequence[int],
    choices: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """Returns what can be said of a hand.

    Args:
      hand: the own cards' ids, one more than were dealt once a card is drawn.
      size: cards in a hand before a draw.
      ranks: of the deck.
      knock_limit: the most deadwood a knocker may keep.
      held: bool[N, cards], the opponent's hand in each world.
      weights: float[N], of the worlds.
      seen: cards that can neither be drawn nor be held by the opponent.
      choices: what the player may do now, as the board shows it; none where it is not its turn.
    Returns:
      `danger`: of each own card the probability that it would meld with the opponent's hand; `deadwood` after the best
      discard; `outs`: cards of the stock that would lower it, each with what it leaves and its chance to be the next;
      `knock`, when the player can knock: "now", "discard" (after this one), "draw" (after the next one), "no";
      `knock_next` and `gin_next`, the chances that the next card of the stock allows them.
    """
    kept, left = _best_discard(hand, size, ranks)
    danger = {cards.card_name(c, ranks): round(float(weights @ _melds_with(held, c, ranks)), 3) for c in hand}
    unseen = [card for card in range(held.shape[1]) if card not in set(seen) and card not in set(hand)]
    in_stock = weights @ (~held).astype(float)
    total = sum(in_stock[card] for card in unseen) or 1.0
    outs, knock_next, gin_next = [], 0.0, 0.0
    for card in unseen:
        chance = float(in_stock[card] / total)
        if chance == 0:
            continue
        after = _best_discard([*kept, card], size, ranks)[1]
        knock_next += chance * (after <= knock_limit)
        gin_next += chance * (after == 0)
        if after < left:
            outs.append({"card": named([card], ranks)[0], "left": after, "chance": round(chance, 3)})
    outs.sort(key=lambda out: (out["left"], -out["chance"]))
    return {
        "danger": danger,
        "deadwood": left,
        "outs": outs[:_OUTS],
        "outs_chance": round(sum(out["chance"] for out in outs), 3),
        "knock": _when(choices, len(hand) > size, left, knock_limit),
        "knock_next": round(knock_next, 3),
        "gin_next": round(gin_next, 3),
    }


def _when(choices: Sequence[dict[str, Any]], has_drawn: bool, left: int, knock_limit: int) -> str:
    """Returns when a knock is legal: by what may be done now, else by the least deadwood that the hand can keep."""
    if any(choice["kind"] in ("knock", "gin") for choice in choices):
        return "now"
    if has_drawn:  # where a knock is decided after the discard
        leaves = [choice["left"] for choice in choices if choice["kind"] == "discard"]
        return "discard" if min(leaves, default=knock_limit + 1) <= knock_limit else "no"
    return "draw" if left <= knock_limit else "no"


def _best_discard(hand: Sequence[int], size: int, ranks: int) -> tuple[list[int], int]:
    """Returns a hand without a drawn card and its deadwood: as it is, or the best that a discard leaves."""
    if len(hand) <= size:
        return list(hand), settlement.deadwood(hand, ranks)
    options = [[card for card in hand if card != out] for out in hand]
    best = min(options, key=lambda rest: settlement.deadwood(rest, ranks))
    return best, settlement.deadwood(best, ranks)


def _melds_with(held: np.ndarray, card: int, ranks: int) -> np.ndarray:
    """Returns whether a card makes a set or a run of three with each hand: float[N], from bool[N, cards]."""
    suit, rank = divmod(card, ranks)
    by_suit = held.reshape(len(held), -1, ranks)
    same = by_suit[:, :, rank].sum(axis=1) - by_suit[:, suit, rank]
    row = np.pad(by_suit[:, suit], ((0, 0), (2, 2)))
    low2, low1, high1, high2 = (row[:, rank + 2 + step] for step in (-2, -1, 1, 2))
    return ((same >= 2) | (low2 & low1) | (low1 & high1) | (high1 & high2)).astype(float)
