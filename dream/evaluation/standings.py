"""The result of one pairing of a cross-play, from its mirrored rounds."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from dream.evaluation.statistics import effective_trials, mean_interval, rate_interval, share_interval


@dataclasses.dataclass(frozen=True)
class Result:
    """What two players' mirrored rounds came to, seen from the first one's side.

    Attributes:
      points: float64[pairs, 2], the first player's points in each round of each deal.
    """

    points: np.ndarray

    @property
    def rounds(self) -> int:
        """Rounds played."""
        return self.points.size

    @property
    def score(self) -> float:
        """Rounds won and half of those tied."""
        return float(np.sum(self.points > 0) + np.sum(self.points == 0) / 2)

    @property
    def trials(self) -> float:
        """Independent rounds that would give the score the same precision."""
        samples = self._each(np.sign(self.points)) / 2 + 0.5
        return effective_trials(float(samples.mean()), float(samples.var(ddof=1)) / len(samples), self.rounds)

    def other_side(self) -> Result:
        """Returns the same from the second player's side."""
        return Result(-self.points)

    def report(self) -> dict[str, Any]:
        """Returns rounds, deals, the rates of rounds won, lost and tied, of won ones, ties left out, and points."""
        won, lost, tied = self.points > 0, self.points < 0, self.points == 0
        rates = {"win_rate": won, "loss_rate": lost, "tie_rate": tied}
        return {
            "n": self.rounds,
            "n_pairs": len(self.points),
            **{name: rate_interval(self._each(flags), 2) for name, flags in rates.items()},
            "win_rate_excluding_ties": share_interval(won.sum(axis=1), lost.sum(axis=1)),
            "points_per_hand": mean_interval(self._each(self.points)),
        }

    @staticmethod
    def _each(values: np.ndarray) -> np.ndarray:
        return np.asarray(values, np.float64).mean(axis=1)
