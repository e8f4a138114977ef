"""Whether what a policy gives are probabilities: looked at wherever it acts, so that no result comes from less."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from envs.errors import InputError

TOLERANCE = 1e-3
"""How far from 1 probabilities may sum."""
_FAULTS = (
    "probabilities that are not finite",
    "negative probabilities",
    f"probabilities that do not sum to 1 within {TOLERANCE:g}",
    "a probability to actions that are not legal",
)


def faults(probabilities: Array, legal: Array) -> Array:
    """Returns what is wrong with a policy's answer.

    Args:
      probabilities: float32[A].
      legal: bool[A]; where nothing is legal, nothing is wrong with the policy.
    Returns:
      bool[4]: not finite, negative, not summing to 1, not zero where illegal.
    """
    finite = jnp.isfinite(probabilities)
    known = jnp.where(finite, probabilities, 0)
    found = [
        ~jnp.all(finite),
        jnp.any(known < 0),
        jnp.all(finite) & (jnp.abs(jnp.sum(known) - 1) > TOLERANCE),
        jnp.any(~legal & (known != 0)),
    ]
    return jnp.stack(found) & jnp.any(legal)


def refuse_faults(
    found: np.ndarray, names: tuple[str, ...] = ("the first player's policy", "the opponent's policy")
) -> None:
    """Raises InputError where a policy gave no probabilities.

    Args:
      found: bool[players, 4], as `faults` returns it.
      names: of the players.
    """
    lines = [
        f"{name} gives {' and '.join(text for text, wrong in zip(_FAULTS, row, strict=True) if wrong)}"
        for name, row in zip(names, np.asarray(found), strict=True)
        if row.any()
    ]
    if lines:
        raise InputError("; ".join(lines) + ": it must give a distribution over the legal actions")
