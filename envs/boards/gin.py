"""The board of `gin_rummy`: own hand with its melds, the pile, the stock, what the opponent is known to hold.

`seen` gives `hand`, `melds` (the hand's best arrangement), `deadwood`, `taken`, `pile` (oldest first), `stock`,
`phase`, `to_act`, `seat`, `knock_limit`, and of the opponent `count` and `known`. `opened` gives `hands`, each with its
melds and deadwood, and `settlement`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from envs import cards
from envs.boards import Variant, gin_insight, settlement
from envs.boards.settlement import named
from envs.game import Game, State, View
from envs.gin_rummy.core import table

VARIANTS = (
    Variant("standard"),
    Variant("bonus_25", {"gin_bonus": 25, "undercut_bonus": 25}),
    Variant("gin_only", {"knock_limit": 0}),
)
STOCK, TAKE, PASS, DISCARDS = 0, 1, 2, 3


def seen(game: Game, view: View) -> dict[str, Any]:
    """Shows a round in play to the player whose view it is."""
    ranks = game.rules.num_ranks
    hand = cards.cards_in(view.hand, ranks)
    log = [tuple(int(x) for x in table.read(np.int32(code))) for code in view.log[: int(view.length)]]
    own = int(view.seat)
    return {
        "kind": "gin",
        "seat": own,
        "to_act": own if view.to_act else 1 - own,
        "phase": (*game.phases, "over")[int(view.phase)],
        "ranks": ranks,
        "hand": named(hand, ranks),
        **settlement.grouped(hand, ranks),
        "drawn": drawn_card(log, own, ranks),
        "pile": named(pile_of(log), ranks),
        "stock": int(view.stock),
        "knock_limit": game.rules.knock_limit,
        "others": [
            {
                "seat": 1 - own,
                "count": int(view.opponent_cards),
                "known": named(cards.cards_in(view.known, ranks), ranks),
            }
        ],
    }


def pile_of(log: Sequence[tuple[int, int, int]]) -> list[int]:
    """Returns the pile's cards, oldest first, from log entries (actor, type, card)."""
    pile: list[int] = []
    for _, kind, card in log:
        if kind in (table.DISCARD, table.KNOCK):
            pile.append(card)
        elif kind == table.DRAW_DISCARD:
            pile.pop()
    return pile


def drawn_card(log: Sequence[tuple[int, int, int]], own: int, ranks: int) -> str | None:
    """Returns the card a player has drawn and not yet answered by a discard."""
    if not log or log[-1][0] != own or log[-1][1] not in (table.DRAW_STOCK, table.DRAW_DISCARD):
        return None
    return cards.card_name(log[-1][2], ranks)


def opened(game: Game, state: State, actions: Sequence[int]) -> dict[str, Any]:
    """Shows a round with all cards open, and how it was settled once it is over."""
    rules, board = game.rules, state.table
    ranks = rules.num_ranks
    held = [cards.cards_in(hand, ranks) for hand in board.hands]
    phases = (*game.phases, "over")
    shown = {
        "kind": "gin",
        "seat": None,
        "to_act": int(state.current_player),
        "phase": phases[int(state.phase)],
        "ranks": ranks,
        "pile": named(board.pile[: int(board.pile_size)], ranks),
        "stock": int(table.stock_left(rules, board)),
        "knock_limit": rules.knock_limit,
        "hands": [{"hand": named(hand, ranks), **settlement.grouped(hand, ranks)} for hand in held],
    }
    if int(state.current_player) < 0:
        top = int(board.pile[max(int(board.pile_size) - 1, 0)])
        shown["settlement"] = settlement.of_round(rules, held, int(state.knocker), top)
    return shown


def choice(game: Game, view: View, action: int) -> dict[str, Any]:
    """Shows an action: stock, take, pass, discard or knock."""
    size, ranks = game.rules.num_cards, game.rules.num_ranks
    if action >= DISCARDS:
        card = (action - DISCARDS) % size
        left = settlement.deadwood([c for c in cards.cards_in(view.hand, ranks) if c != card], ranks)
        kind = "knock" if action >= DISCARDS + size else "discard"
        return {"kind": "gin" if kind == "knock" and left == 0 else kind, "cards": named([card], ranks), "left": left}
    top = [] if view.top == cards.NO_CARD else named([int(view.top)], ranks)
    return {"kind": ("stock", "take", "pass")[action], "cards": top if action == TAKE else []}


def said(game: Game, before: View, action: int, after: View) -> dict[str, Any]:
    """Returns an action as a player hears of it: a stock draw shows its card to the one who drew."""
    size, ranks = game.rules.num_cards, game.rules.num_ranks
    if action >= DISCARDS:
        kind = "knock" if action >= DISCARDS + size else "discard"
        return {"kind": kind, "cards": named([(action - DISCARDS) % size], ranks)}
    return drawn(action, before, after, ranks)


def drawn(action: int, before: View, after: View, ranks: int) -> dict[str, Any]:
    """Returns a draw or a pass as a player hears of it: the card where it was on the pile or is now in the own hand."""
    if action == STOCK:
        own = set(cards.cards_in(after.hand, ranks)) - set(cards.cards_in(before.hand, ranks))
        return {"kind": "stock", "cards": named(sorted(own), ranks)}
    return {"kind": ("stock", "take", "pass")[action], "cards": named([int(before.top)], ranks)}


def hands(game: Game, state: State) -> jax.Array:
    """Returns who holds which card: bool[2, cards]."""
    rules = game.rules
    return jax.vmap(lambda hand: cards.to_cards(hand, rules.num_ranks, rules.num_suits))(state.table.hands)


def deck(game: Game) -> tuple[str, ...]:
    """Returns the cards by name, in the order of `hands`."""
    return tuple(named(range(game.rules.num_cards), game.rules.num_ranks))


def insight(
    game: Game, view: View, held: np.ndarray, weights: np.ndarray, choices: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Returns outs, dangers and when to knock, from worlds bool[N, 2, cards], their weights and what may be done."""
    rules = game.rules
    ranks, own = rules.num_ranks, int(view.seat)
    seen = [*cards.cards_in(view.pile, ranks), *cards.cards_in(view.known, ranks)]
    hand = cards.cards_in(view.hand, ranks)
    return gin_insight.of_hand(
        hand, rules.hand_size, ranks, rules.knock_limit, held[:, 1 - own], weights, seen, choices
    )
