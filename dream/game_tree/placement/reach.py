"""Which lists of own tries can occur, from masks and the order of successes alone.

A list is its cells in order and the success of each. An opponent's play that fits it exists exactly if

- some set T of opponent's stones holds the cells of the failures, none of the own stones, and no winning set, and
- |T| successes can be put in time: by the k-th failure of either player, the other has had k successes or more.

Which cells the successes are on does not matter to the second condition, so both are looked up: the first by the masks
of own stones and failures, the second by the bits that say which tries succeeded; each is a set of numbers |T|, as
bits.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from envs.game import HiddenPlacement


@dataclasses.dataclass(frozen=True)
class Reach:
    """What can occur, of one player. The masks have C cells; sets of numbers of opponent's stones are int16 bits.

    Attributes:
      wins: bool[2^C], whether own stones hold a winning set.
      going_on: int16[2^C, 2^C], by own stones and failures: opponent's stones without a win, the board not full.
      won: int16[2^C, 2^C], the same where the board may be full, of own stones that win.
      to_act: int16[C + 1, 2^C], by number of tries and bits of success: opponent's stones when the player is to act.
      waiting: int16[C + 1, 2^C], the same just after the player's last try, where that ended its turn, else 0.
    """

    wins: np.ndarray
    going_on: np.ndarray
    won: np.ndarray
    to_act: np.ndarray
    waiting: np.ndarray


def reach_of(game: HiddenPlacement, player: int) -> Reach:
    """Tabulates what can occur."""
    masks = np.arange(1 << game.cells)
    stones = np.bitwise_count(masks).astype(int)
    wins, theirs = (_holding(game.winning[p], masks) for p in (player, 1 - player))
    between = _stones_between(np.where(theirs, 0, 1 << stones).astype(np.int16), game.cells)
    full = (1 << (game.cells - stones)).astype(np.int16)
    going_on = np.where(wins[:, None], 0, between & ~full[:, None])
    to_act, waiting = _in_time(game, player)
    return Reach(wins, going_on, np.where(wins[:, None], between, 0), to_act, waiting)


def _holding(winning: tuple[int, ...], masks: np.ndarray) -> np.ndarray:
    return functools.reduce(np.logical_or, [(masks & one) == one for one in winning])


def _stones_between(sizes: np.ndarray, cells: int) -> np.ndarray:
    """Returns for own stones S and failures F the union of sizes[T] over F <= T <= all cells but S: int16[S, F]."""
    count, everything = 1 << cells, (1 << cells) - 1
    found = np.zeros((count, count), np.int16)
    for upper in range(count):
        inside = [mask for mask in range(upper, -1, -1) if mask & upper == mask]
        union = {}
        for lower in inside:
            rest = upper & ~lower
            union[lower] = int(sizes[upper])
            if rest:
                bit = rest & -rest
                union[lower] = union[lower | bit] | int(found[everything & ~(upper ^ bit), lower])
            found[everything & ~upper, lower] = union[lower]
    return found


def _in_time(game: HiddenPlacement, player: int) -> tuple[np.ndarray, np.ndarray]:
    """Walks over all orders of own successes, with the set of opponent's successes so far."""
    to_act, waiting = np.zeros((2, game.cells + 1, 1 << game.cells), np.int16)
    keeps = game.failure_keeps_turn

    def answers(sets: int, tries: int, successes: int) -> int:
        """The opponent's turn: a success, or a failure on a stone not yet found (which changes nothing if it keeps)."""
        after = sets << 1
        if not keeps:
            for own in range(tries + 1):
                if sets >> own & 1 and successes > tries - own:
                    after |= 1 << own
        return after

    def walk(length: int, bits: int, sets: int, successes: int, turns: int) -> None:
        to_act[length, bits] = sets
        if length == game.cells or not sets:
            return
        for success in (0, 1):
            failures = length - successes
            left = sets if success else sets >> (failures + 1) << (failures + 1)
            ends = bool(success) or not keeps
            order = bits | success << length
            if ends:
                waiting[length + 1, order] = left
                after = answers(left, turns, successes + success)
            walk(length + 1, order, after if ends else left, successes + success, turns + ends)

    start = answers(1, 0, 0) if player == 1 else 1
    walk(0, 0, start, 0, int(player == 1))
    return to_act, waiting
