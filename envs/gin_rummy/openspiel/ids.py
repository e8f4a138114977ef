"""Phases, actions and sizes of `gin_rummy_openspiel` by number, as OpenSpiel has them."""

from __future__ import annotations

from envs.gin_rummy.openspiel.meld_ids import NUM_MELDS

PHASES = ("first_upcard", "draw", "discard", "knock", "layoff", "melds", "wall", "over")
FIRST_UPCARD, DRAW, DISCARD, KNOCK, LAYOFF, MELDS, WALL, OVER = range(8)
TAKE, STOCK, PASS, KNOCKS, LAYS = 52, 53, 54, 55, 56
"""Actions: draw the upcard, draw from the stock, pass, knock, lay meld 0; those below 52 are cards."""
NUM_ACTIONS = LAYS + NUM_MELDS
NUM_WORDS = -(-NUM_ACTIONS // 32)
"""Words of 32 bits that hold a mask of actions."""
WALL_STOCK = 2
"""Stock cards at which a round has come to the wall."""
MOST_TAKES = 50
"""The round ends at this many upcards taken, the first offer apart."""
MOST_MELDS = 3
"""Melds a hand can lay."""
NO_MELD = 255
SUITS = "scdh"
