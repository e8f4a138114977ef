"""The dueling network with slots: actions that mean the same of different cards are rated by one rule.

game.slot_inputs tells of the position as a whole and of each slot; action game.slot_actions + k is about slot k.
All layers but the last of each head have ReLU:

    e_k = slot(slots_k),    c = trunk(whole, mean over k of e_k),
    rating_k = linear(joint(e_k, c)),
    advantages = linear(c) + rating_k at the action of slot k,    value = linear(c).

The last layers of the advantages start near 0, so that play starts near uniform.
Source: Zaheer et al. 2017, "Deep sets", for the mean over slots; the rest is this project's.
"""

from __future__ import annotations

from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp
from jax import Array

from dream.networks.inputs import Inputs
from dream.networks.network import Network
from envs import Game, InputError

_SMALL = 0.01
"""Of the advantages' first weights, against what a layer's inputs would have it be."""


def make(game: Game, *, width: int, hidden: tuple[int, ...], dtype: str, window: int | None) -> Network:
    """Builds the network for a game's slots and actions.

    Args:
      game: what it plays.
      width: of the layers that see one slot.
      hidden: widths of the trunk's layers, at least one.
      dtype: what matrix products are computed in; parameters and results stay float32.
      window: None; slots and a window of a log do not go together.
    Raises:
      InputError: a game without slots, or a window.
    """
    if game.slot_actions is None:
        raise InputError(f"network.slots={width} rates actions on slots, and {game.name} has none; it must be null")
    if window is not None:
        raise InputError(f"network.log_window={window} does not go with network.slots={width}; one must be null")
    whole_size, (count, slot_size) = (x.shape for x in _sizes(game))
    split, first = whole_size[0], game.slot_actions
    compute = jnp.dtype(dtype)

    def of_observation(observation: Array) -> Array:
        whole, slots = game.slot_inputs(observation)
        return jnp.concatenate([whole, slots.reshape(-1)])

    def forward(x: Array) -> tuple[Array, Array]:
        slots = x[..., split:].reshape(*x.shape[:-1], count, slot_size)
        each = jax.nn.relu(hk.Linear(width, name="slot")(slots))
        features = jnp.concatenate([x[..., :split], jnp.mean(each, axis=-2)], axis=-1)
        for n, size in enumerate(hidden):
            features = jax.nn.relu(hk.Linear(size, name=f"trunk_{n}")(features))
        # Linear in both, so that the trunk's share is computed once and not for every slot.
        context = hk.Linear(width, with_bias=False, name="joint_trunk")(features)
        joint = jax.nn.relu(hk.Linear(width, name="joint_slot")(each) + context[..., None, :])
        small = hk.initializers.VarianceScaling(_SMALL**2)
        rating = hk.Linear(1, w_init=small, name="rating")(joint)[..., 0]
        room = [(0, 0)] * (rating.ndim - 1) + [(first, game.num_actions - first - count)]
        advantages = hk.Linear(game.num_actions, w_init=small, name="advantages")(features) + jnp.pad(rating, room)
        return advantages, hk.Linear(1, name="value")(features)[..., 0]

    net = hk.without_apply_rng(hk.transform(forward))
    total = split + count * slot_size

    def apply_inputs(params: Any, x: Array) -> tuple[Array, Array]:
        cast = jax.tree.map(lambda leaf: leaf.astype(compute), params)
        return jax.tree.map(lambda leaf: leaf.astype(jnp.float32), net.apply(cast, x.astype(compute)))

    return Network(
        init=lambda key: net.init(key, jnp.zeros(total)),
        apply=lambda params, observation: apply_inputs(params, of_observation(observation)),
        inputs=Inputs(total, of_observation, lambda view: of_observation(game.encode(view)), carries_log=False),
        apply_inputs=apply_inputs,
        first_layer=None,
        rest=None,
        width=hidden[0],
    )


def _sizes(game: Game) -> tuple[Any, Any]:
    return jax.eval_shape(game.slot_inputs, jax.ShapeDtypeStruct((game.observation_size,), jnp.float32))
