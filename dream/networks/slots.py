"""A network that rates actions which mean the same of different cards by one rule.

game.slot_inputs tells of the position as a whole and of each slot; action game.slot_actions + k is about slot k.
All layers but the last of each head have ReLU:

    e_k = slot(slots_k),    c = trunk(whole, mean over k of e_k),
    rating_k = linear(joint(e_k, c)),
    logits = linear(c) + rating_k at the action of slot k,    value = linear(c).

The linear layers of the logits start near 0, so that play starts near uniform.
Source: Zaheer et al. 2017, "Deep sets", for the mean over slots; the rest is this project's.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp
from jax import Array

from dream.networks.inputs import Inputs
from dream.networks.network import Network
from dream.settings import choice, number
from envs import Game, InputError

_SMALL = 0.01
"""Of the logits' first weights, against what a layer's inputs would have it be."""


@dataclasses.dataclass(frozen=True)
class SlotsConfig:
    """Settings of the network.

    Attributes:
      name: "slots".
      slot: width of the layers that see one slot.
      hidden: widths of the trunk's layers.
      dtype: what matrix products are computed in; parameters and results stay float32.
    """

    name: str = "slots"
    slot: int = number(64, 1)
    hidden: tuple[int, ...] = number((128, 128), 1)
    dtype: str = choice("float32", "float32", "bfloat16")


def make(config: SlotsConfig, game: Game) -> Network:
    """Builds the network for a game's slots and actions.

    Raises:
      InputError: no trunk layer, or a game without slots.
    """
    if not config.hidden:
        raise InputError("network.hidden=[] is empty; it must hold the width of at least one layer")
    if game.slot_actions is None:
        raise InputError(f"network=slots rates actions on slots, and {game.name} has none; use network=dueling")
    whole_size, (count, slot_size) = (x.shape for x in _sizes(game))
    split, first = whole_size[0], game.slot_actions
    compute = jnp.dtype(config.dtype)

    def of_observation(observation: Array) -> Array:
        whole, slots = game.slot_inputs(observation)
        return jnp.concatenate([whole, slots.reshape(-1)])

    def forward(x: Array) -> tuple[Array, Array]:
        slots = x[..., split:].reshape(*x.shape[:-1], count, slot_size)
        each = jax.nn.relu(hk.Linear(config.slot, name="slot")(slots))
        features = jnp.concatenate([x[..., :split], jnp.mean(each, axis=-2)], axis=-1)
        for n, width in enumerate(config.hidden):
            features = jax.nn.relu(hk.Linear(width, name=f"trunk_{n}")(features))
        # Linear in both, so that the trunk's share is computed once and not for every slot.
        context = hk.Linear(config.slot, with_bias=False, name="joint_trunk")(features)
        joint = jax.nn.relu(hk.Linear(config.slot, name="joint_slot")(each) + context[..., None, :])
        small = hk.initializers.VarianceScaling(_SMALL**2)
        rating = hk.Linear(1, w_init=small, name="rating")(joint)[..., 0]
        room = [(0, 0)] * (rating.ndim - 1) + [(first, game.num_actions - first - count)]
        logits = hk.Linear(game.num_actions, w_init=small, name="logits")(features) + jnp.pad(rating, room)
        return logits, hk.Linear(1, name="value")(features)[..., 0]

    net = hk.without_apply_rng(hk.transform(forward))
    size = split + count * slot_size

    def apply_inputs(params: Any, x: Array) -> tuple[Array, Array]:
        cast = jax.tree.map(lambda leaf: leaf.astype(compute), params)
        return jax.tree.map(lambda leaf: leaf.astype(jnp.float32), net.apply(cast, x.astype(compute)))

    return Network(
        init=lambda key: net.init(key, jnp.zeros(size)),
        apply=lambda params, observation: apply_inputs(params, of_observation(observation)),
        inputs=Inputs(size, of_observation, lambda view: of_observation(game.encode(view)), carries_log=False),
        apply_inputs=apply_inputs,
        first_layer=None,
        rest=None,
        width=config.hidden[0],
    )


def _sizes(game: Game) -> tuple[Any, Any]:
    return jax.eval_shape(game.slot_inputs, jax.ShapeDtypeStruct((game.observation_size,), jnp.float32))
