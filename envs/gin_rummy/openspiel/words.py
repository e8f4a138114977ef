"""Actions and positions of `gin_rummy_openspiel` for people (host side)."""

from __future__ import annotations

from envs import cards, drawing
from envs.gin_rummy.core.scene import hand_row, hidden_row, middle, seats
from envs.gin_rummy.openspiel import ids
from envs.gin_rummy.openspiel.meld_ids import MELD_MASKS
from envs.gin_rummy.openspiel.state import OpenSpielRules, OpenSpielState

_LETTERS = ids.SUITS.upper()
_NAMES = {
    ids.TAKE: "take the upcard",
    ids.STOCK: "draw from the stock",
    ids.PASS: "pass",
    ids.KNOCKS: "knock",
}


def action_name(rules: OpenSpielRules, action: int) -> str:
    """Returns what an action does, e.g. "put down 7H" or "lay 7S 7C 7H"."""
    if action in _NAMES:
        return _NAMES[action]
    if action >= ids.LAYS:
        return f"lay {' '.join(_meld(action - ids.LAYS))}"
    return f"put down {cards.card_name(action, rules.num_ranks, _LETTERS)}" if action < rules.num_cards else str(action)


def action_in(rules: OpenSpielRules, state: OpenSpielState, action: int) -> str:
    """Returns what an action does in a state of NumPy arrays, e.g. "discard 7H" or "lay off 7H"."""
    verb = "lay off" if state.phase == ids.LAYOFF else "discard"
    if action < ids.TAKE:
        return action_name(rules, action).replace("put down", verb)
    if action == ids.PASS and state.phase in (ids.KNOCK, ids.LAYOFF, ids.MELDS):
        return "pass, nothing more to lay" + (" off" if state.phase == ids.LAYOFF else "")
    return action_name(rules, action)


def scene_of(rules: OpenSpielRules, state: OpenSpielState, viewer: int | None) -> drawing.Scene:
    """Returns what there is to see of a state of NumPy arrays, all cards open or as one player knows them."""
    ranks, current = rules.num_ranks, int(state.current_player)

    def named(mask: object) -> list[str]:
        return cards.card_names(cards.cards_in(mask, ranks), ranks, _LETTERS)

    def hand(player: int) -> drawing.Row:
        active, who = current == player, f"player {player}"
        if viewer not in (None, player):
            return hidden_row(who, state.hands[player], state.known[player], ranks, suits=_LETTERS, active=active)
        return hand_row(who, state.hands[player], ranks, size=rules.hand_size, suits=_LETTERS, active=active)

    def laid(player: int) -> list[drawing.Row]:
        groups = [drawing.spread(_meld(meld)) for meld in state.laid[player] if meld != ids.NO_MELD]
        return [drawing.Row(f"player {player} laid", tuple(groups))] if groups else []

    first, second = seats(viewer)
    stock, pile = middle(rules.num_cards - rules.dealt - int(state.drawn), named(state.pile))
    pile = drawing.Row("pile", pile.groups, "without the upcard" if pile.groups else "empty")
    upcard = [cards.card_name(state.upcard, ranks, _LETTERS)] if state.upcard >= 0 else []
    up = drawing.Row("upcard", (drawing.spread(upcard),) if upcard else (), "" if upcard else "none")
    off = named(state.laid_off)
    layoffs = [drawing.Row("laid off", (drawing.spread(off),))] if off else []
    rows = (hand(first), *laid(first), stock, up, pile, *laid(second), *layoffs, hand(second))
    phase = ids.PHASES[int(state.phase)].replace("_", " ")
    knocker = f", player {int(state.knocker)} knocked" if state.knocker >= 0 else ""
    turn = f", player {current} to act" if current >= 0 else ""
    title = f"Gin rummy (OpenSpiel): {phase}{knocker}{turn}, knock card {int(state.knock_card)}"
    return drawing.Scene(title, rows)


def _meld(meld: int) -> list[str]:
    return cards.card_names(cards.cards_in(MELD_MASKS[int(meld)]), suits=_LETTERS)
