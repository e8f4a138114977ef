"""The one number that a run is judged by, for sweeps and their sweepers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dream.storage.policies import chosen_name


def objective(exact: Mapping[str, Mapping[str, float]], points: Sequence[float]) -> float | None:
    """Returns what a sweep minimises.

    Args:
      exact: exact values by policy; {} where the game is too large for them or not zero-sum.
      points: per hand, of the matches in the order of eval.opponents.
    Returns:
      The exploitability of the policy that is reported (the average where there is one), in the game's unit; without
      exact values minus the points per hand against the first opponent; None where there is neither.
    """
    if exact:
        return exact[chosen_name(exact)]["exploitability"]
    return -points[0] if points else None
