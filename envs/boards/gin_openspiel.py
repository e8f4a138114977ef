"""The board of `gin_rummy_openspiel`: melds and layoffs are actions of their own, and lie on the table as `table`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs import cards
from envs.boards import Variant, gin_insight, settlement
from envs.game import Game, State, View
from envs.gin_rummy.openspiel import ids
from envs.gin_rummy.openspiel.meld_ids import MELD_MASKS

__all__ = ["VARIANTS", "choice", "deck", "hands", "insight", "opened", "said", "seen"]

VARIANTS = (Variant("standard"), Variant("oklahoma", {"oklahoma": True}))
_SUITS = (0, 3, 2, 1)
"""OpenSpiel's suits s, c, d, h as S, H, D, C of the other boards; its own inverse."""
_KINDS = {ids.TAKE: "take", ids.STOCK: "stock", ids.KNOCKS: "knock"}


def _ids(masks: Any, ranks: int) -> list[int]:
    """Returns the cards of suit masks by the ids of the other boards."""
    return cards.cards_in([masks[suit] for suit in _SUITS], ranks)


def _named(masks: Any, ranks: int) -> list[str]:
    return settlement.named(_ids(masks, ranks), ranks)


def _card(card: int, ranks: int) -> str:
    return cards.card_name(ranks * _SUITS[card // ranks] + card % ranks, ranks)


def _laid(rows: Iterable[Any], ranks: int) -> list[list[list[str]]]:
    return [[_named(MELD_MASKS[meld], ranks) for meld in row if meld != ids.NO_MELD] for row in rows]


def deck(game: Game) -> list[str]:
    """Names the cards by the ids of the other boards, those of suits that the game lacks among them."""
    ranks = game.rules.num_ranks
    return settlement.named(range(len(_SUITS) * ranks), ranks)


def seen(game: Game, view: View) -> dict[str, Any]:
    """Shows a round in play to the player whose view it is; the order of the pile below its top is not known."""
    rules, ranks, own = game.rules, game.rules.num_ranks, int(view.seat)
    held = _ids(view.hand, ranks)
    laid = _laid(view.laid, ranks)
    top = [] if view.upcard == cards.NO_CARD else [_card(int(view.upcard), ranks)]
    turn, phase = int(view.turn), int(view.phase)
    off, pile = _named(view.laid_off, ranks), _named(view.pile, ranks)
    table = [*laid[own], *laid[1 - own], *([off] if off else [])]
    # All that is not anywhere else is in the other's hand.
    elsewhere = len(held) + len(pile) + len(top) + int(view.stock) + sum(len(meld) for meld in table)
    return {
        "kind": "gin",
        "seat": own,
        "to_act": -1 if phase == ids.OVER else turn,
        "phase": ids.PHASES[phase],
        "ranks": ranks,
        "hand": settlement.named(held, ranks),
        **settlement.grouped(held, ranks),
        "drawn": None,
        "pile": [*pile, *top],
        "stock": int(view.stock),
        "knock_limit": int(view.knock_card),
        "table": table,
        "others": [
            {"seat": 1 - own, "count": rules.num_cards - elsewhere, "known": _named(view.known[1 - own], ranks)}
        ],
    }


def opened(game: Game, state: State, actions: Sequence[int]) -> dict[str, Any]:
    """Shows a round with all cards open, and how it was settled once it is over."""
    rules, ranks = game.rules, game.rules.num_ranks
    laid, off = _laid(state.laid, ranks), _named(state.laid_off, ranks)
    held = [_ids(hand, ranks) for hand in state.hands]
    top = [_card(int(state.upcard), ranks)] if int(state.upcard) >= 0 else []
    over = int(state.current_player) < 0
    shown = {
        "kind": "gin",
        "seat": None,
        "to_act": int(state.current_player),
        "phase": ids.PHASES[int(state.phase)],
        "ranks": ranks,
        "pile": [*_named(state.pile, ranks), *top],
        "stock": rules.num_cards - rules.dealt - int(state.drawn),
        "knock_limit": int(state.knock_card),
        "table": [] if over else [*laid[0], *laid[1], *([off] if off else [])],
    }
    knocker = int(state.knocker)
    if not over or knocker < 0:
        end = {"settlement": {"ending": "tie"}} if over else {}
        each = [{"hand": settlement.named(hand, ranks), **settlement.grouped(hand, ranks)} for hand in held]
        return {**shown, "hands": each, **end}
    left = [settlement.named(hand, ranks) for hand in held]
    points = [settlement.points(hand, ranks) for hand in held]
    hands = [[*itertools.chain(*laid[seat]), *left[seat], *(off if seat != knocker else [])] for seat in range(2)]
    return {
        **shown,
        "hands": [{"hand": hand, "melds": laid[seat]} for seat, hand in enumerate(hands)],
        "settlement": {
            "knocker": knocker,
            "laid": [{"melds": laid[seat], "left": left[seat], "points": points[seat]} for seat in range(2)],
            "layoffs": _layoffs(laid[knocker], off, ranks),
            **_sum(rules, points[knocker], points[1 - knocker], knocker),
        },
    }


def _layoffs(melds: list[list[str]], off: list[str], ranks: int) -> list[dict[str, Any]]:
    numbers = [tuple(sorted(cards.card_id(card, ranks) for card in meld)) for meld in melds]
    placed = settlement.laid_off([cards.card_id(card, ranks) for card in off], numbers, ranks)
    return [{"card": cards.card_name(card, ranks), "meld": n} for card, n in placed]


def _sum(rules: Any, own: int, against: int, knocker: int) -> dict[str, Any]:
    """Returns the sum as OpenSpiel scores it: what is left of both hands, and a bonus; equal points score nothing."""
    terms = [("deadwood", against), ("own_deadwood", -own)]
    if own == 0:
        gin = [("deadwood", against), ("gin_bonus", rules.gin_bonus)]
        return {"ending": "gin", "winner": knocker, **settlement.sum_of(gin)}
    if against >= own:
        return {"ending": "knock", "winner": knocker if against > own else None, **settlement.sum_of(terms)}
    undercut = [("deadwood", own), ("own_deadwood", -against), ("undercut_bonus", rules.undercut_bonus)]
    return {"ending": "undercut", "winner": 1 - knocker, **settlement.sum_of(undercut)}


def choice(game: Game, view: View, action: int) -> dict[str, Any]:
    """Shows an action: as in `gin_rummy`, and to lay a meld, lay off a card, or be done with it."""
    ranks, phase = game.rules.num_ranks, int(view.phase)
    if action < ids.TAKE:
        if phase == ids.LAYOFF:
            return {"kind": "layoff", "cards": [_card(action, ranks)]}
        canonical = cards.card_id(_card(action, ranks), ranks)
        rest = [card for card in _ids(view.hand, ranks) if card != canonical]
        return {"kind": "discard", "cards": [_card(action, ranks)], "left": settlement.deadwood(rest, ranks)}
    if action >= ids.LAYS:
        return {"kind": "lay", "cards": _named(MELD_MASKS[action - ids.LAYS], ranks)}
    if action == ids.PASS:
        return {"kind": "pass" if phase in (ids.FIRST_UPCARD, ids.WALL) else "done"}
    top = action == ids.TAKE and view.upcard != cards.NO_CARD
    return {"kind": _KINDS[action], "cards": [_card(int(view.upcard), ranks)] if top else []}


def said(game: Game, before: View, action: int, after: View) -> dict[str, Any]:
    """Returns an action as a player hears of it: a stock draw shows its card to the one who drew."""
    if action != ids.STOCK:
        found = choice(game, before, action)
        return {"kind": found["kind"], "cards": found.get("cards", [])}
    ranks = game.rules.num_ranks
    gained = set(_ids(after.hand, ranks)) - set(_ids(before.hand, ranks))
    return {"kind": "stock", "cards": settlement.named(sorted(gained), ranks)}


def hands(game: Game, state: State) -> jax.Array:
    """Returns who holds which card, in the ids of the other boards, of all four suits: bool[2, cards]."""
    rules = game.rules
    held = jax.vmap(lambda hand: cards.to_cards(hand, rules.num_ranks, rules.num_suits))(state.hands)
    by_suit = jnp.zeros((2, len(_SUITS), rules.num_ranks), held.dtype)
    by_suit = by_suit.at[:, np.array(_SUITS[: rules.num_suits])].set(held.reshape(2, rules.num_suits, -1))
    return by_suit.reshape(2, -1)


def insight(
    game: Game, view: View, held: np.ndarray, weights: np.ndarray, choices: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Returns outs, dangers and when to knock, from worlds bool[N, 2, cards], their weights and what may be done."""
    rules, own = game.rules, int(view.seat)
    laid = [MELD_MASKS[meld] for row in view.laid for meld in row if meld != ids.NO_MELD]
    masks = [view.pile, view.known[1 - own], view.laid_off, *laid]
    seen = [card for mask in masks for card in _ids(mask, rules.num_ranks)]
    absent = _SUITS[rules.num_suits :]
    seen += [rules.num_ranks * suit + rank for suit in absent for rank in range(rules.num_ranks)]
    if view.upcard != cards.NO_CARD:
        seen.append(cards.card_id(_card(int(view.upcard), rules.num_ranks), rules.num_ranks))
    hand = _ids(view.hand, rules.num_ranks)
    return gin_insight.of_hand(
        hand, rules.hand_size, rules.num_ranks, int(view.knock_card), held[:, 1 - own], weights, seen, choices
    )
