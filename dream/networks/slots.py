"""The dueling network with slots: actions that mean the same of different cards are rated by one rule.

game.slot_inputs tells of the position as a whole, of each slot, and which actions are about each slot. All layers but
the last of each head have ReLU:

    e_k = slot(slots_k),    c = trunk(whole, mean over k of e_k),
    rating_k = linear(joint(e_k, c)), one number for each action about slot k,
    advantages = linear(c) + the ratings at their actions,    value = linear(c).

Of a history c is trunk(whole_p, mean over k of e_pk for all players p), every player's slots are rated by the same
`joint` and by a linear layer of the player's own, as what is good for one is bad for the other. The last layers of the
advantages start near 0, so that play starts near uniform.
Source: Zaheer et al. 2017, "Deep sets", for the mean over slots; the rest is this project's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dream.networks.inputs import Inputs, of_all_players
from dream.networks.network import Network
from envs import Game, InputError

_SMALL = 0.01
"""Of the advantages' first weights, against what a layer's inputs would have it be."""


def make(
    game: Game, *, width: int, hidden: tuple[int, ...], dtype: str, window: int | None, of_history: bool = False
) -> Network:
    """Builds the network for a game's slots and actions.

    Args:
      game: what it plays.
      width: of the layers that see one slot.
      hidden: widths of the trunk's layers, at least one.
      dtype: what matrix products are computed in; parameters and results stay float32.
      window: None; slots and a window of a log do not go together.
      of_history: whether it reads the observations of all players.
    Raises:
      InputError: a game without slots, or a window.
    """
    if not game.slot_choices:
        raise InputError(f"network.slots={width} rates actions on slots, and {game.name} has none; it must be null")
    if window is not None:
        raise InputError(f"network.log_window={window} does not go with network.slots={width}; one must be null")
    seen = _inputs(game)
    players = game.num_players if of_history else 1
    compute = jnp.dtype(dtype)
    parts = _split(game)

    def forward(x: Array) -> tuple[Array, Array]:
        whole, slots, actions = parts(x.reshape(*x.shape[:-1], players, seen.size))
        each = jax.nn.relu(hk.Linear(width, name="slot")(slots.astype(compute)))
        features = jnp.concatenate([whole.astype(compute), jnp.mean(each, axis=-2)], axis=-1)
        features = features.reshape(*x.shape[:-1], -1)
        for n, size in enumerate(hidden):
            features = jax.nn.relu(hk.Linear(size, name=f"trunk_{n}")(features))
        # Linear in both, so that the trunk's share is computed once and not for every slot.
        context = hk.Linear(width, with_bias=False, name="joint_trunk")(features)
        joint = jax.nn.relu(hk.Linear(width, name="joint_slot")(each) + context[..., None, None, :])
        small = hk.initializers.VarianceScaling(_SMALL**2)
        advantages = hk.Linear(game.num_actions, w_init=small, name="advantages")(features)
        for p in range(players):
            name = f"rating_{p}" if of_history else "rating"
            rating = hk.Linear(game.slot_choices, w_init=small, name=name)(joint[..., p, :, :])
            places = actions[..., p, :, :, None] == np.arange(game.num_actions)
            advantages += jnp.sum(jnp.where(places, rating[..., None], 0), axis=(-3, -2))
        return advantages, hk.Linear(1, name="value")(features)[..., 0]

    net = hk.without_apply_rng(hk.transform(forward))
    selected = of_all_players(game, seen) if of_history else seen

    def apply_inputs(params: Any, x: Array) -> tuple[Array, Array]:
        cast = jax.tree.map(lambda leaf: leaf.astype(compute), params)
        return jax.tree.map(lambda leaf: leaf.astype(jnp.float32), net.apply(cast, x))

    return Network(
        init=lambda key: net.init(key, jnp.zeros(selected.size)),
        apply=lambda params, observation: apply_inputs(params, selected.of_observation(observation)),
        inputs=selected,
        apply_inputs=apply_inputs,
        first_layer=None,
        rest=None,
        width=hidden[0],
    )


def _inputs(game: Game) -> Inputs:
    """Returns what the game tells, in one vector: float32, actions too."""

    def of_observation(observation: Array) -> Array:
        return jnp.concatenate([part.reshape(-1).astype(jnp.float32) for part in game.slot_inputs(observation)])

    size = sum(math.prod(part.shape) for part in _shapes(game))
    return Inputs(size, of_observation, lambda view: of_observation(game.encode(view)), carries_log=False)


def _split(game: Game) -> Callable[[Array], list[Array]]:
    """Returns the inverse: float32[..., size] -> what game.slot_inputs returns, with leading axes."""
    shapes = [part.shape for part in _shapes(game)]
    ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]

    def parts(x: Array) -> list[Array]:
        return [
            part.reshape(*x.shape[:-1], *shape) for part, shape in zip(jnp.split(x, ends, axis=-1), shapes, strict=True)
        ]

    return parts


def _shapes(game: Game) -> tuple[Any, ...]:
    return jax.eval_shape(game.slot_inputs, jax.ShapeDtypeStruct((game.observation_size,), jnp.float32))
