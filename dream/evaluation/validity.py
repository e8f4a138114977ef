"""Whether policies give probabilities and games pay numbers: looked at in every match, so that no result is of less."""

from __future__ import annotations

import numpy as np

from dream.equations.distributions import TOLERANCE
from envs import Game
from envs.errors import InputError

_FAULTS = (
    "probabilities that are not finite",
    "negative probabilities",
    f"probabilities that do not sum to 1 within {TOLERANCE:g}",
    "a probability to actions that are not legal",
)


def refuse_faults(
    found: np.ndarray, names: tuple[str, ...] = ("the first player's policy", "the opponent's policy")
) -> None:
    """Raises InputError where a policy gave no probabilities.

    Args:
      found: bool[players, 4], as `distributions.faults` returns it.
      names: of the players.
    """
    lines = [
        f"{name} gives {' and '.join(text for text, wrong in zip(_FAULTS, row, strict=True) if wrong)}"
        for name, row in zip(names, np.asarray(found), strict=True)
        if row.any()
    ]
    if lines:
        raise InputError("; ".join(lines) + ": it must give a distribution over the legal actions")


def refuse_rewards(game: Game, earned: np.ndarray) -> None:
    """Raises InputError where what rounds earned is not finite."""
    wrong = ~np.isfinite(earned)
    if wrong.any():
        raise InputError(
            f"game {game.name!r}: step: a reward is not finite; "
            f"{int(wrong.sum())} of {wrong.size} results of rounds are not numbers"
        )
