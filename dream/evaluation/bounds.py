"""Lower bounds of exploitability from what an answer earned."""

from __future__ import annotations

from dream.evaluation.statistics import Interval


def lower_bound(points: Interval) -> Interval:
    """Returns what an answer to a policy earns, and at least 0: the lower end is a bound with 97.5 % confidence.

    In a two-player zero-sum game whose seats are played equally often, the policy itself is an answer to the policy,
    and earns 0: exploitability is never less, however weak the answer that was found.

    Args:
      points: per hand, of the answer against the policy.
    """
    return Interval(*(max(0.0, x) for x in points))


def method_in_words(name: str, points: Interval, looked: str) -> str:
    """Returns how a bound was found, and where nothing was found, how hard it was looked for.

    Args:
      name: of the method.
      points: per hand, of the answer that was measured.
      looked: what was done, in words.
    """
    if points.low > 0:
        return f"{name}, a lower bound"
    return (
        f"{name}: nothing surely above 0 was found by {looked}; the bound of 0 is what the policy earns against itself"
    )
