"""The board of `rummy500`: own hand, the pile in its order, the melds on the table, what others are known to hold.

`seen` gives besides what `gin` gives `table` (the melds), `points` laid by seat, `duty` (the card that must be played
before the turn ends) and for each other player `count`, `known` and `points`. Of a match to a target both have
`carried`: `totals` by seat of the rounds that are over, how many `rounds` these are, and the `target`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs import cards
from envs.boards import Variant, settlement
from envs.game import Game, State, View
from envs.rummy500 import actions as ids
from envs.rummy500.match import MatchRummy500, totals_by_seat
from envs.rummy500.rules import HAND_VALUES, HIGH_ACE, LOW_ACE, RummyRules
from envs.rummy500.state import HAND, IN_RUN, IN_SET, NONE

VARIANTS = tuple(Variant(f"players_{count}", {"num_players": count}) for count in (2, 3, 4))
_RANKS = cards.NUM_RANKS
_MOST_GROUPED = 13
"""Cards in a hand whose melds are still looked for."""


def seen(game: Game, view: View) -> dict[str, Any]:
    """Shows a round in play to the player whose view it is."""
    players, own = game.num_players, int(view.seat)
    hand = cards.cards_in(view.hand)
    to_act = -1 if view.to_act == NONE else (own + int(view.to_act)) % players
    return {
        "kind": "rummy",
        "seat": own,
        "to_act": to_act,
        "phase": game.phases[int(view.drew)],
        "ranks": _RANKS,
        "hand": _named(hand),
        "melds": melds(game.rules, hand),
        "drawn": None,
        "pile": _named(_pile(view.position)),
        "stock": int(view.stock),
        "table": _table(_flags(view.sets), _flags(view.runs), view.ace_high),
        "points": int(view.points[0]),
        "duty": None if view.duty == NONE else cards.card_name(int(view.duty)),
        "others": [
            {
                "seat": (own + step) % players,
                "count": int(view.sizes[step]),
                "points": int(view.points[step]),
                "known": _named(np.flatnonzero(view.holder == step)),
            }
            for step in range(1, players)
        ],
        **(_carried(game, totals_by_seat(view), view.rounds) if isinstance(game, MatchRummy500) else {}),
    }


def _carried(game: MatchRummy500, totals: Sequence[int], rounds: int) -> dict[str, Any]:
    return {"carried": {"totals": [int(total) for total in totals], "rounds": int(rounds), "target": game.target}}


def _named(ids_: Any) -> list[str]:
    return settlement.named(ids_, _RANKS)


def melds(rules: RummyRules, hand: Sequence[int]) -> list[list[str]]:
    """Returns the disjoint melds of a hand that score most, aces where the rules allow them; [] of a large hand."""
    if len(hand) > _MOST_GROUPED:
        return []
    return [_named(meld) for meld in _grouped(tuple(sorted(hand)), rules.ace_slots)[1]]


@functools.lru_cache(maxsize=1 << 14)
def _grouped(hand: tuple[int, ...], ace_slots: tuple[bool, bool]) -> tuple[int, tuple[settlement.Meld, ...]]:
    """Returns the most points that disjoint melds of a sorted hand score, and these melds."""
    if not hand:
        return 0, ()
    best = _grouped(hand[1:], ace_slots)
    for meld, worth in _with_first(hand, ace_slots):
        others = _grouped(tuple(card for card in hand if card not in meld), ace_slots)
        best = max(best, (worth + others[0], (meld, *others[1])), key=lambda found: found[0])
    return best


def _with_first(hand: tuple[int, ...], ace_slots: tuple[bool, bool]) -> Iterator[tuple[settlement.Meld, int]]:
    """Yields each meld that holds the first card of a sorted hand, and what it scores."""
    first, held = hand[0], set(hand)
    same = [card for card in hand[1:] if card % _RANKS == first % _RANKS]
    for others in itertools.chain(itertools.combinations(same, 2), itertools.combinations(same, 3)):
        yield (first, *others), int(HAND_VALUES[[first, *others]].sum())
    low, high = (first % _RANKS != 0 or ace_slots[0]), (first % _RANKS == 0 and ace_slots[1])
    up = list(itertools.takewhile(held.__contains__, range(first, first - first % _RANKS + _RANKS)))
    for end in range(3, len(up) + 1) if low else ():
        yield tuple(up[:end]), int(HAND_VALUES[up[:end]].sum()) - (HIGH_ACE - LOW_ACE) * (first % _RANKS == 0)
    down = list(itertools.takewhile(held.__contains__, range(first + _RANKS - 1, first, -1)))
    for start in range(2, len(down) + 1) if high else ():
        yield (*reversed(down[:start]), first), int(HAND_VALUES[[*down[:start], first]].sum())


def _pile(position: np.ndarray) -> list[int]:
    """Returns the pile's cards, oldest first, from each card's index in it."""
    there = [int(card) for card in np.flatnonzero((position >= 0) & (position != NONE))]
    return sorted(there, key=lambda card: int(position[card]))


def _table(in_set: np.ndarray, in_run: np.ndarray, ace_high: np.ndarray) -> list[list[str]]:
    """Lists the melds on the table: sets by rank, then runs by suit, an ace above the king where it was laid there."""
    in_set, in_run = in_set.reshape(4, _RANKS), in_run.reshape(4, _RANKS)
    found = [[_RANKS * suit + rank for suit in range(4) if in_set[suit, rank]] for rank in range(_RANKS)]
    for suit in range(4):
        places = [bool(x) for x in in_run[suit]] + [bool(in_run[suit, 0] and ace_high[suit]), False]
        places[0] = places[0] and not ace_high[suit]
        run: list[int] = []
        for place, laid in enumerate(places):
            if laid:
                run.append(_RANKS * suit + place % _RANKS)
            elif run:
                found.append(run)
                run = []
    return [_named(meld) for meld in found if meld]


def _flags(masks: np.ndarray) -> np.ndarray:
    """Returns suit masks as bool[52]."""
    flags = np.zeros(cards.NUM_CARDS, bool)
    flags[cards.cards_in(masks)] = True
    return flags


def opened(game: Game, state: State, actions: Sequence[int]) -> dict[str, Any]:
    """Shows a round with all cards open, and the scores once it is over."""
    zone = np.asarray(state.zone)
    hands = [[int(c) for c in np.flatnonzero(zone == HAND + seat)] for seat in range(game.num_players)]
    over = int(state.current_player) < 0
    shown = {
        "kind": "rummy",
        "seat": None,
        "to_act": int(state.current_player),
        "phase": "over" if over else game.phases[int(state.drew)],
        "ranks": _RANKS,
        "pile": _named(_pile(np.asarray(state.position))),
        "stock": cards.NUM_CARDS - int(state.drawn),
        "table": _table(zone == IN_SET, zone == IN_RUN, np.asarray(state.ace_high)),
        "hands": [{"hand": _named(hand), "melds": []} for hand in hands],
        **(_carried(game, state.totals, state.rounds) if isinstance(game, MatchRummy500) else {}),
    }
    if over:
        out = int(state.went_out)
        ending = {"ending": "out", "winner": out} if out >= 0 else {"ending": "end"}
        laid = [int(x) for x in state.points]
        held = [int(HAND_VALUES[hand].sum()) for hand in hands]
        scores = [{"laid": one, "held": other, "score": one - other} for one, other in zip(laid, held, strict=True)]
        shown["settlement"] = {**ending, "scores": scores}
    return shown


def choice(game: Game, view: View, action: int) -> dict[str, Any]:
    """Shows an action: stock (`ends` the round), take (the card and all above it), lay, layoff (and where), discard."""
    if action == ids.STOCK:
        ends = game.rules.draw_ends(int(view.stock), len(_pile(view.position)))
        return {"kind": "stock", "ends": True} if ends else {"kind": "stock"}
    if action < ids.SET:
        card = action - ids.TAKE
        pile = _pile(view.position)
        return {"kind": "take", "cards": _named(pile[pile.index(card) :] if card in pile else [card])}
    if action >= ids.DISCARD:
        return {"kind": "discard", "cards": _named([action - ids.DISCARD])}
    laid = [int(card) for card in np.flatnonzero(ids.LAID[action])]
    if action < ids.ON_SET:
        if action >= ids.RUN and (action - ids.RUN) % ids.NUM_STARTS == ids.NUM_STARTS - 1:
            laid = [*laid[1:], laid[0]]
        return {"kind": "lay", "cards": _named(laid)}
    where = "set" if action < ids.LOW_END else "low" if action < ids.HIGH_END else "high"
    return {"kind": "layoff", "cards": _named(laid), "where": where}


def said(game: Game, before: View, action: int, after: View) -> dict[str, Any]:
    """Returns an action as a player hears of it: a stock draw shows its card to the one who drew."""
    shown = choice(game, before, action)
    if action == ids.STOCK and "ends" not in shown:
        gained = set(cards.cards_in(after.hand)) - set(cards.cards_in(before.hand))
        return {**shown, "cards": _named(sorted(gained))}
    return shown


def hands(game: Game, state: State) -> jax.Array:
    """Returns who holds which card: bool[P, 52]."""
    return jnp.asarray(state.zone) == HAND + np.arange(game.num_players)[:, None]


def deck(game: Game) -> tuple[str, ...]:
    """Returns the cards by name, in the order of `hands`."""
    return tuple(cards.card_names(range(cards.NUM_CARDS)))
