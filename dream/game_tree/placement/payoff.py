"""The payoffs of a phantom game as a linear map between the players' sequences.

A game is won with some player's last try. So for every number of turns there are two families, the winner's won lists
and the other's waiting ones, coupled by which lists fit; a sequence's value is what its won lists gain less what its
waiting lists lose. Draws pay nothing.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from dream.game_tree.placement.coupling import Coupling, couple
from dream.game_tree.placement.families import Family, family
from dream.game_tree.placement.lists import Outcome
from dream.game_tree.placement.reach import Reach
from envs.game import HiddenPlacement


@dataclasses.dataclass(frozen=True, eq=False)
class Places:
    """Where sequences have lists of one family: sequence `first + entry[n]` has one at place[n]."""

    family: Family
    first: int
    entry: np.ndarray
    place: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Meeting:
    """The lists of one family that one player wins with, and those that wait for the other.

    Attributes:
      winner: the player.
      won, waiting: the families.
      couplings: (index of the won group, index of the waiting group, their map).
    """

    winner: int
    won: Family
    waiting: Family
    couplings: tuple[tuple[int, int, Coupling], ...]


def families_of(game: HiddenPlacement, reach: Reach, player: int) -> dict[tuple[int, bool], Family]:
    """Lays out a player's lists by (number of turns, whether won); player 1 also waits before it has tried anything."""
    kinds = [(turns, won) for turns in range(1 - player, game.cells + 1) for won in (False, True)]
    laid = {(turns, won): family(game, reach, player, turns, won=won) for turns, won in kinds}
    return {kind: found for kind, found in laid.items() if found.size}


def meetings_of(
    families: tuple[dict[tuple[int, bool], Family], dict[tuple[int, bool], Family]],
    progress: Callable[[int, int], None] = lambda done, all_of_them: None,
) -> list[Meeting]:
    """Couples every family of won lists with that of the lists that wait for it."""
    found = []
    for winner in range(2):
        for (turns, won), mine in sorted(families[winner].items()):
            other = families[1 - winner].get((turns if winner else turns - 1, False))
            if won and other is not None:
                found.append((winner, mine, other))
    jobs = [
        (m, a, b)
        for m, (_, mine, other) in enumerate(found)
        for a in range(len(mine.groups))
        for b in range(len(other.groups))
    ]
    with ThreadPoolExecutor(workers()) as pool:
        maps = []
        for done, coupled in enumerate(
            pool.map(
                lambda job: couple(found[job[0]][0], found[job[0]][1].groups[job[1]], found[job[0]][2].groups[job[2]]),
                jobs,
            )
        ):
            maps.append(coupled)
            progress(done + 1, len(jobs))
    return [
        Meeting(
            *meeting,
            tuple((a, b, maps[n]) for n, (which, a, b) in enumerate(jobs) if which == m and maps[n] is not None),
        )
        for m, meeting in enumerate(found)
    ]


def workers() -> int:
    """Returns how many threads share the work."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def places(found: Outcome, laid: Family, first: int) -> Places:
    """Returns where lists that actions lead to are in their family."""
    return Places(laid, first, found.entry, laid.place(found.lists))


@dataclasses.dataclass(frozen=True, eq=False)
class Payoff:
    """The map from one player's realisation plan to the values of the other's sequences.

    Attributes:
      meetings: all.
      places: of each player, won and waiting lists.
      sizes: how many sequences each player has, the empty one included.
    """

    meetings: list[Meeting]
    places: tuple[list[Places], list[Places]]
    sizes: tuple[int, int]

    def values(self, player: int, plan: np.ndarray) -> np.ndarray:
        """Returns the payoff to a player of each of its sequences against an opponent's plan.

        Args:
          player: whose sequences are valued.
          plan: float64[sequences of the opponent], its realisation plan.
        """
        with ThreadPoolExecutor(workers()) as pool:
            weights = self._scattered(1 - player, plan, pool)
            sums = self._coupled(player, weights, pool)
        out = np.zeros(self.sizes[player])
        for place in self.places[player]:
            if place.family in sums:
                gained = np.take(sums[place.family], place.place)
                here = slice(place.first, place.first + int(place.entry[-1]) + 1)
                sign = 1.0 if place.family.won else -1.0
                out[here][place.entry] += sign * gained
        return out

    def _scattered(self, player: int, plan: np.ndarray, pool: ThreadPoolExecutor) -> dict[Family, np.ndarray]:
        """Returns a player's plan by family: float64[size] each."""
        needed = {meeting.won if meeting.winner == player else meeting.waiting for meeting in self.meetings}
        by_family: dict[Family, list[Places]] = {laid: [] for laid in needed}
        for place in self.places[player]:
            if place.family in needed:
                by_family[place.family].append(place)

        def one(laid: Family) -> np.ndarray:
            dense = np.zeros(laid.size)
            for place in by_family[laid]:
                weights = np.take(plan[place.first :], place.entry)
                if laid.shared:
                    dense += np.bincount(place.place, weights, minlength=laid.size)
                else:
                    dense[place.place] = weights
            return dense

        return dict(zip(by_family, pool.map(one, by_family), strict=True))

    def _coupled(
        self, player: int, weights: dict[Family, np.ndarray], pool: ThreadPoolExecutor
    ) -> dict[Family, np.ndarray]:
        """Returns the sums over the opponent's lists that fit, by family of the player's own lists."""
        sums, jobs = {}, []
        for meeting in self.meetings:
            wins = meeting.winner == player
            mine, other = (meeting.won, meeting.waiting) if wins else (meeting.waiting, meeting.won)
            sums[mine] = np.zeros(mine.size)
            for target, group in enumerate(mine.groups):
                pairs = [
                    (coupling, other.groups[b if wins else a])
                    for a, b, coupling in meeting.couplings
                    if (a if wins else b) == target
                ]
                work = sum(coupling.work for coupling, _ in pairs)
                jobs.append((work, mine, group, other, pairs, wins))

        def one(job: tuple) -> None:
            _, mine, group, other, pairs, wins = job
            out = _dense(sums[mine], group)
            for coupling, partner in pairs:
                (coupling.to_won if wins else coupling.to_waiting)(_dense(weights[other], partner), out)

        list(pool.map(one, sorted(jobs, key=lambda job: -job[0])))
        return sums

    @property
    def work(self) -> int:
        """Multiplications and additions of one pass over all couplings."""
        return sum(coupling.work for meeting in self.meetings for _, _, coupling in meeting.couplings)

    @property
    def nbytes(self) -> int:
        """Memory of the matrices and places."""
        matrices = sum(coupling.nbytes for meeting in self.meetings for _, _, coupling in meeting.couplings)
        return matrices + sum(x.entry.nbytes + x.place.nbytes for own in self.places for x in own)


def _dense(flat: np.ndarray, group: object) -> np.ndarray:
    return flat[group.offset : group.offset + group.size].reshape(group.shape)
