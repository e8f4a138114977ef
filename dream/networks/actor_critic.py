"""Two networks that share nothing: one has the policy's logits, the other the value.

    logits = actor(observation),  value = critic(observation),  both of tanh layers.

Weights start orthogonal, with a gain of sqrt(2), 0.01 for the logits and 1 for the value, biases at 0.
Source: Huang et al. 2022, "The 37 implementation details of proximal policy optimization", 2, 13; Rudolph et al. 2026,
"Reevaluating policy gradient methods for imperfect-information games", whose networks have three layers of 512 units.
"""

from __future__ import annotations

import dataclasses

import haiku as hk
import jax.numpy as jnp
import numpy as np
from jax import Array

from dream.config.settings import choice, number
from dream.networks import inputs
from dream.networks.layers import SMALL, check_widths, linear
from dream.networks.network import Network
from envs import Game


@dataclasses.dataclass(frozen=True)
class ActorCriticConfig:
    """Settings of the network.

    Attributes:
      name: "actor_critic".
      hidden: widths of the layers of each of the two.
      dtype: what matrix products are computed in; parameters, biases, the last layers and results stay float32.
    """

    name: str = "actor_critic"
    hidden: tuple[int, ...] = number((512, 512, 512), 1)
    dtype: str = choice("float32", "float32", "bfloat16")


def make(config: ActorCriticConfig, game: Game) -> Network:
    """Builds the network for a game's observation and actions.

    Raises:
      InputError: no hidden layer.
    """
    check_widths(config.hidden)
    seen, compute = inputs.whole(game), jnp.dtype(config.dtype)

    def tower(x: Array, name: str) -> Array:
        for n, width in enumerate(config.hidden):
            x = jnp.tanh(linear(width, f"{name}_{n}", compute, w_init=hk.initializers.Orthogonal(np.sqrt(2.0)))(x))
        return x

    def forward(x: Array) -> tuple[Array, Array]:
        small, one = hk.initializers.Orthogonal(SMALL), hk.initializers.Orthogonal(1.0)
        logits = linear(game.num_actions, "logits", w_init=small)(tower(x, "actor"))
        return logits, linear(1, "value", w_init=one)(tower(x, "critic"))[..., 0]

    whole = hk.without_apply_rng(hk.transform(forward))
    return Network(
        init=lambda key: whole.init(key, jnp.zeros(seen.size)),
        apply=whole.apply,
        inputs=seen._replace(carries_log=False),
        apply_inputs=whole.apply,
        first_layer=None,
        rest=None,
        width=config.hidden[0],
    )
