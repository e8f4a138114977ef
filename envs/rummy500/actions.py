"""The 374 actions: the cards that each lays, its points, and its name.

| action | play |
|---|---|
| 0 | draw the top of the stock; if it is empty, end the round |
| 1 + c | take card c and every card discarded after it from the pile |
| 53 + 5 r + v | lay the set of rank r: without suit v, or for v = 4 all four |
| 118 + 12 s + i | lay the run of three in suit s that starts at position i: 0 is A-2-3, 11 is Q-K-A |
| 166 + c | lay card c on the set of its rank |
| 218 + c | lay card c at the low end of a run |
| 270 + c | lay card c at the high end of a run |
| 322 + c | discard card c |

A longer run is laid as three cards and then layoffs, in the same turn and for the same points.
"""

from __future__ import annotations

import numpy as np

from envs import cards
from envs.rummy500.rules import HAND_VALUES, HIGH_ACE, LOW_ACE

STOCK, TAKE, SET, RUN, ON_SET, LOW_END, HIGH_END, DISCARD, NUM_ACTIONS = 0, 1, 53, 118, 166, 218, 270, 322, 374
NUM_STARTS = 12
_ACES = np.arange(cards.NUM_CARDS) % cards.NUM_RANKS == 0


def _tables() -> tuple[np.ndarray, np.ndarray]:
    laid = np.zeros((NUM_ACTIONS, cards.NUM_CARDS), bool)
    points = np.zeros(NUM_ACTIONS, np.int16)
    grid = laid.reshape(NUM_ACTIONS, cards.NUM_SUITS, cards.NUM_RANKS)
    for rank in range(cards.NUM_RANKS):
        for variant in range(5):
            grid[SET + 5 * rank + variant, np.arange(4) != variant, rank] = True
    for suit in range(cards.NUM_SUITS):
        for start in range(NUM_STARTS):
            grid[RUN + NUM_STARTS * suit + start, suit, np.arange(start, start + 3) % cards.NUM_RANKS] = True
    for first in (ON_SET, LOW_END, HIGH_END):
        laid[first + np.arange(52), np.arange(52)] = True
    points[:] = laid @ HAND_VALUES
    low = [RUN + NUM_STARTS * np.arange(4), LOW_END + np.flatnonzero(_ACES)]
    points[np.concatenate(low)] -= HIGH_ACE - LOW_ACE
    return laid, points


LAID, POINTS = _tables()
"""bool[374, 52] the cards an action lays, int16[374] what they score."""
ACE_HIGH_SUIT = np.full(NUM_ACTIONS, -1, np.int8)
"""int8[374]: the suit whose ace an action lays above the king, else -1."""
ACE_HIGH_SUIT[RUN + NUM_STARTS * np.arange(4) + 11] = np.arange(4)
ACE_HIGH_SUIT[HIGH_END + np.flatnonzero(_ACES)] = np.arange(4)


def action_name(action: int) -> str:
    """Returns what an action does, e.g. "lay 4C at the high end"."""
    named = cards.card_names(np.flatnonzero(LAID[action]))
    if action == STOCK:
        return "draw from the stock"
    if action < SET:
        return f"take from {cards.card_name(action - TAKE)}"
    if action < RUN:
        return f"lay the set {' '.join(named)}"
    if action < ON_SET:
        start = (action - RUN) % NUM_STARTS
        return f"lay the run {' '.join([*named[1:], named[0]] if start == 11 else named)}"
    if action >= DISCARD:
        return f"discard {cards.card_name(action - DISCARD)}"
    where = "on its set" if action < LOW_END else "at the low end" if action < HIGH_END else "at the high end"
    return f"lay {named[0]} {where}"
