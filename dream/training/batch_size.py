"""How many iterations are done in one go: so many that the run loop costs little, so few that it looks up often."""

from __future__ import annotations

_SECONDS = 0.25
"""What a batch of iterations aims at."""
_LARGEST_FACTOR = 4
"""By which batches grow from one to the next."""


class BatchSize:
    """The size of the next batch; it starts at one and follows the time that batches take. It changes no result."""

    def __init__(self, most: int) -> None:
        """Starts at one.

        Args:
          most: iterations that the learner does in one go.
        """
        self._most, self._size, self._each = most, 1, 0.0

    def next(self, due: int, seconds_left: float) -> int:
        """Returns how many iterations are next.

        Args:
          due: iterations up to the next that is evaluated, saved or the last.
          seconds_left: of the run's budget.
        """
        size = min(self._size, due, self._most)
        if self._each > 0 and seconds_left < size * self._each:
            size = int(seconds_left / self._each)
        return max(size, 1)

    def took(self, iterations: int, seconds: float) -> None:
        """Takes in how long a batch took."""
        self._each = seconds / iterations
        longest = _LARGEST_FACTOR * max(iterations, self._size)
        self._size = int(min(max(_SECONDS / max(self._each, 1e-9), 1), longest))

    def limit(self, iterations: int) -> None:
        """Lets no later batch be larger."""
        self._most = max(iterations, 1)
