"""A linear layer whose product may be of lower precision, and whose bias and result are float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import haiku as hk
import jax.numpy as jnp
import numpy as np
from jax import Array

from dream.networks.products import product
from envs.errors import InputError

POLICY = "policy"
"""The name of a policy head."""
SMALL = 0.01
"""Of the first weights of a head whose outputs are to start near 0, against what its inputs would have them be."""


def check_widths(hidden: Sequence[int]) -> None:
    """Raises InputError where a network has no hidden layer."""
    if not hidden:
        raise InputError("network.hidden=[] is empty; it must hold the width of at least one layer")


def linear(
    size: int, name: str, dtype: Any = np.float32, *, with_bias: bool = True, w_init: Any = None
) -> Callable[[Array], Array]:
    """Returns x -> product(x, w) + b as a haiku layer; its parameters are float32 arrays of hk.Linear's names.

    Args:
      size: numbers that it returns.
      name: of the layer.
      dtype: of the operands of the product; it is summed in float32.
      with_bias: whether it has a bias, float32.
      w_init: of the weights; by default hk.Linear's.
    """
    return _Linear(size, np.dtype(dtype), with_bias, w_init, name)


class _Linear(hk.Module):
    """The layer; a class because that is what haiku calls a layer."""

    def __init__(self, size: int, dtype: Any, with_bias: bool, w_init: Any, name: str) -> None:
        """Keeps the settings."""
        super().__init__(name=name)
        self.size, self.dtype, self.with_bias, self.w_init = size, dtype, with_bias, w_init

    def __call__(self, x: Array) -> Array:
        """Returns float32[..., size] of float[..., n]."""
        inputs = x.shape[-1]
        w_init = self.w_init or hk.initializers.TruncatedNormal(1.0 / np.sqrt(inputs))
        w = hk.get_parameter("w", [inputs, self.size], jnp.float32, init=w_init)
        out = product(x, w, self.dtype)
        if not self.with_bias:
            return out
        return out + hk.get_parameter("b", [self.size], jnp.float32, init=jnp.zeros)
