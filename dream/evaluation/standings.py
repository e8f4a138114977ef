"""The result of one pairing of a cross-play, from its mirrored rounds."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from dream.evaluation.game_chances import GameChance, game_chance
from dream.evaluation.games import whole_points
from dream.evaluation.statistics import (
    Z95,
    Interval,
    mean_interval,
    rate_interval,
    share_interval,
    share_trials,
    t95,
    wilson,
)
from envs import MatchRules


@dataclasses.dataclass(frozen=True)
class Score:
    """Wins against one opponent, as a rating counts them.

    Attributes:
      share: of them that were won, 0 to 1.
      games: how many there were.
      trials: independent ones that would give the share the same precision.
    """

    share: float
    games: float
    trials: float

    def other_side(self) -> Score:
        """Returns the same from the opponent's side."""
        return dataclasses.replace(self, share=1 - self.share)


NOTHING_DECIDED = Score(0.5, 1.0, 1.0)
"""Of players whose rounds were all tied: as good as one tied round."""


@dataclasses.dataclass(frozen=True)
class Result:
    """What two players' mirrored rounds came to, seen from the first one's side.

    Attributes:
      points: float64[pairs, 2], the points of the first player in seat 0 and in seat 1 of each deal.
      match_rules: how rounds make a game; None where games are not asked for.
    """

    points: np.ndarray
    match_rules: MatchRules | None = None

    @property
    def rounds(self) -> int:
        """Rounds played."""
        return self.points.size

    @functools.cached_property
    def by_rounds(self) -> Score:
        """Rounds won among those not tied."""
        won, lost = np.sum(self.points > 0, axis=1), np.sum(self.points < 0, axis=1)
        total = float(won.sum() + lost.sum())
        if not total:
            return NOTHING_DECIDED
        return Score(float(won.sum()) / total, total, share_trials(won, lost))

    @functools.cached_property
    def games(self) -> GameChance | None:
        """What games to the target come to; None where they are not asked for, or would not end."""
        return None if self.match_rules is None else game_chance(whole_points(self.points), self.match_rules)

    @property
    def by_games(self) -> Score:
        """Games won; a deal whose rounds are all tied carries no information about them."""
        found, scored = self.games, self.points != 0
        if found is None:
            return NOTHING_DECIDED
        deals = int(np.sum(np.any(scored, axis=1)))
        most, spread = 2.0 * float(np.sum(scored)), found.win * (1 - found.win)
        if spread * most < 1 or found.variance <= 0:
            trials = float(deals)  # nearly all games are won, or lost: the rounds of a deal may be fully dependent
        else:
            trials = min(max(spread / found.variance, 1.0), most)
        # The variance is an estimate from the deals: Student's t in place of the normal distribution's point.
        return Score(found.win, trials, trials * float(Z95 / t95(max(deals - 1, 1))) ** 2)

    def other_side(self) -> Result:
        """Returns the same from the second player's side."""
        # In the rounds that the first player acted first in, the second acted second.
        return Result(-self.points[:, ::-1], self.match_rules)

    def report(self) -> dict[str, Any]:
        """Returns rounds, deals, rates of rounds won, lost and tied, of won ones, ties left out, points, and games."""
        won, lost, tied = self.points > 0, self.points < 0, self.points == 0
        rates = {"win_rate": won, "loss_rate": lost, "tie_rate": tied}
        report = {
            "n": self.rounds,
            "n_pairs": len(self.points),
            **{name: rate_interval(self._each(flags), 2) for name, flags in rates.items()},
            "win_rate_excluding_ties": share_interval(won.sum(axis=1), lost.sum(axis=1)),
            "points_per_hand": mean_interval(self._each(self.points)),
        }
        if self.match_rules is not None:
            report["game_win_rate"] = self._game_interval()
            report["rounds_per_game"] = None if self.games is None else self.games.rounds
        return report

    def _game_interval(self) -> Interval | None:
        return None if self.games is None else wilson(self.by_games.share, self.by_games.trials)

    @staticmethod
    def _each(values: np.ndarray) -> np.ndarray:
        return np.asarray(values, np.float64).mean(axis=1)
