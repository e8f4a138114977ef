"""What the boards of the poker games share."""

from __future__ import annotations

from typing import Any


def table(
    seat: int | None, card: str | None, public: str | None, bets: list[list[str]], chips: list[int], to_act: int
) -> dict[str, Any]:
    """Returns a poker table.

    Args:
      seat: who sees it, None where all cards are open.
      card: the own card.
      public: the card on the table, None until it is turned.
      bets: actions by round of betting.
      chips: put in by each seat.
      to_act: seat, -1 once the round is over.
    """
    hand = {} if card is None else {"hand": [card]}
    return {
        "kind": "poker",
        "seat": seat,
        "to_act": to_act,
        "public": public,
        "bets": bets,
        "chips": chips,
        **hand,
        **({} if seat is None else {"others": [{"seat": 1 - seat, "count": 1, "known": []}]}),
    }
