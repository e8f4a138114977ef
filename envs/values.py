"""Values as they are given, read as the kind that a rule or setting has."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np

_LARGEST_WHOLE = 2**53
"""Up to which a float is one whole number and no other."""


def read_as(kind: type, value: Any) -> Any:
    """Returns a value as a rule or setting of a kind takes it: 1e3 as a whole number, 2 as a float.

    Args:
      kind: of the rule or setting, such as int.
      value: as it was given; a scalar of NumPy or JAX counts as the Python number that it holds.
    Returns:
      The value, of another type than `kind` where it cannot be read as one, which is for the caller to refuse.
    """
    if isinstance(value, np.generic | np.ndarray | jax.Array) and value.ndim == 0:
        value = value.item()
    if kind is float and type(value) is int:
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if kind is int and type(value) is float and value.is_integer() and abs(value) <= _LARGEST_WHOLE:
        return int(value)
    return value
