"""A position of rummy 500 for people (host side)."""

from __future__ import annotations

import numpy as np

from envs import cards, drawing
from envs.rummy500.rules import HAND_VALUES
from envs.rummy500.state import HAND, PILE, RummyState, melds_of


def scene_of(num_players: int, state: RummyState, viewer: int | None) -> drawing.Scene:
    """Returns what there is to see of a state of NumPy arrays, all cards open or as one player knows them."""
    current, below = int(state.current_player), viewer or 0
    order = [(below + n) % num_players for n in range(1, num_players)]
    stock = cards.NUM_CARDS - int(state.drawn)
    pile = sorted(np.flatnonzero(state.zone == PILE), key=lambda card: state.position[card])
    down = drawing.Row("stock", (drawing.face_down(1),) if stock else (), f"{stock} cards")
    up = drawing.Row(
        "pile", (drawing.spread(cards.card_names(pile)),) if pile else (), "newest on the right" if pile else "empty"
    )
    others = [_hand(state, player, viewer) for player in order]
    title = "over" if current < 0 else f"{'play' if state.drew else 'draw'}, player {current} to act"
    if state.duty >= 0:
        title += f", who must play {cards.card_name(state.duty)}"
    return drawing.Scene(f"Rummy 500: {title}", (*others, _melds(state), down, up, _hand(state, below, viewer)))


def _hand(state: RummyState, player: int, viewer: int | None) -> drawing.Row:
    """Returns a hand with its points; of another player what all saw it take, the rest face down."""
    held = np.asarray(state.zone) == HAND + player
    fresh = cards.card_names(np.flatnonzero(held & state.fresh))
    is_open = viewer in (None, player)
    shown = np.flatnonzero(held if is_open else held & state.seen)
    laid = f"{int(state.points[player])} points laid"
    note = f"{laid}, {int(HAND_VALUES[held].sum())} in hand" if is_open else f"{laid}, {int(held.sum())} cards"
    groups = (drawing.spread(cards.card_names(shown), marked=fresh), drawing.face_down(int(held.sum()) - len(shown)))
    kept = tuple(group for group in groups if group.pieces)
    return drawing.Row(f"player {player}", kept, note, int(state.current_player) == player)


def _melds(state: RummyState) -> drawing.Row:
    """Returns the melds on the table, each with the players who laid its cards."""
    groups = []
    for meld in melds_of(state):
        owners = sorted({int(state.owner[card]) for card in meld})
        groups.append(drawing.spread(cards.card_names(meld), f"of {', '.join(map(str, owners))}"))
    return drawing.Row("table", tuple(groups), "" if groups else "no melds yet")
