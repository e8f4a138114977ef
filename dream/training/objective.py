"""The one number that a run is judged by, for sweeps and their sweepers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dream.storage.policies import chosen_name


def objective(exact: Mapping[str, Mapping[str, float]], reports: Mapping[str, Any]) -> float | None:
    """Returns what a sweep minimises.

    Args:
      exact: exact values by policy; {} where the game is too large for them.
      reports: matches by opponent, in the order of eval.opponents.
    Returns:
      The exploitability of the policy that is reported (the average where there is one), in the game's unit; without
      exact values minus the points per hand against the first opponent; None where there is neither.
    """
    if exact:
        return exact[chosen_name(exact)]["exploitability"]
    for report in reports.values():
        return -report["points_per_hand"].mean
    return None
