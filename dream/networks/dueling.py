"""The dueling network: one trunk, an advantage head and a value head.

observation -> trunk of ReLU layers -> (advantages[A], value); no hidden layer in the heads, no normalisation.
Source: the DREAM document, "Architecture"; Wang et al. 2016, "Dueling network architectures", without their mean
subtraction: the advantage target is centred by the policy instead (see dream/targets.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp
from jax import Array

from dream.networks.network import Network

_FIRST = "first"


def make_dueling(hidden: Sequence[int], observation_size: int, num_actions: int, dtype: str) -> Network:
    """Builds the dueling network.

    Args:
      hidden: widths of the trunk's layers, at least one.
      observation_size, num_actions: of the game.
      dtype: what matrix products are computed in, "float32" or "bfloat16"; parameters and results stay float32.
    """

    def first(observation: Array) -> Array:
        return hk.Linear(hidden[0], name=_FIRST)(observation)

    def rest(activation: Array) -> tuple[Array, Array]:
        features = jax.nn.relu(activation)
        for n, width in enumerate(hidden[1:], start=1):
            features = jax.nn.relu(hk.Linear(width, name=f"trunk_{n}")(features))
        return hk.Linear(num_actions, name="advantages")(features), hk.Linear(1, name="value")(features)[..., 0]

    whole = hk.without_apply_rng(hk.transform(lambda observation: rest(first(observation))))
    upper = hk.without_apply_rng(hk.transform(rest))
    compute = jnp.dtype(dtype)

    def cast(tree: Any, to: Any) -> Any:
        return jax.tree.map(lambda x: x.astype(to), tree)

    def apply(params: Any, observation: Array) -> tuple[Array, Array]:
        return cast(whole.apply(cast(params, compute), observation.astype(compute)), jnp.float32)

    def apply_rest(params: Any, activation: Array) -> tuple[Array, Array]:
        return cast(upper.apply(cast(params, compute), activation.astype(compute)), jnp.float32)

    return Network(
        init=lambda key: whole.init(key, jnp.zeros(observation_size)),
        apply=apply,
        first_layer=lambda params: (params[_FIRST]["w"].astype(compute), params[_FIRST]["b"].astype(compute)),
        rest=apply_rest,
        width=hidden[0],
    )
