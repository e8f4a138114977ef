"""The dueling network with a shared per-card scorer: actions that mean the same of different cards are scored alike.

game.card_features gives features of the position as a whole and of each card k, and which actions are about each card.
All layers but the last of each head have ReLU:

    e_k = encode(card_k),    c = trunk(whole, mean over k of e_k),
    score_k = linear(joint(e_k, c)), one number for each action about card k,
    advantages = linear(c) + the scores at their actions,    value = linear(c).

Of a history c is trunk(whole_p, mean over k of e_pk for all players p), every player's cards are scored by the same
`joint` and by a linear layer of the player's own, as what is good for one is bad for the other. The last layers of the
advantages start near 0, so that play starts near uniform.
The parameters keep the names under which policies are stored: `slot` is the layer `encode`, `rating` the scores' last.
Source: Zaheer et al. 2017, "Deep sets", for the mean over cards; the rest is this project's.
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
from envs import CardFeatures, Game, InputError

_SMALL = 0.01
"""Of the advantages' first weights, against what a layer's inputs would have it be."""


def make(
    game: Game, *, width: int, hidden: tuple[int, ...], dtype: str, window: int | None, of_history: bool = False
) -> Network:
    """Builds the network for a game's card features and actions.

    Args:
      game: what it plays.
      width: of the layers that see one card.
      hidden: widths of the trunk's layers, at least one.
      dtype: what matrix products are computed in; parameters and results stay float32.
      window: None; a card scorer and a window of a log do not go together.
      of_history: whether it reads the observations of all players.
    Raises:
      InputError: a game without card features, or a window.
    """
    features = _checked_features(game, width, window)
    seen = _inputs(game, features)
    players = game.num_players if of_history else 1
    compute = jnp.dtype(dtype)
    parts = _split(game, features)

    def forward(x: Array) -> tuple[Array, Array]:
        whole, cards, actions = parts(x.reshape(*x.shape[:-1], players, seen.size))
        each = jax.nn.relu(hk.Linear(width, name="slot")(cards.astype(compute)))
        trunk = jnp.concatenate([whole.astype(compute), jnp.mean(each, axis=-2)], axis=-1)
        trunk = trunk.reshape(*x.shape[:-1], -1)
        for n, size in enumerate(hidden):
            trunk = jax.nn.relu(hk.Linear(size, name=f"trunk_{n}")(trunk))
        # Linear in both, so that the trunk's share is computed once and not for every card.
        context = hk.Linear(width, with_bias=False, name="joint_trunk")(trunk)
        joint = jax.nn.relu(hk.Linear(width, name="joint_slot")(each) + context[..., None, None, :])
        small = hk.initializers.VarianceScaling(_SMALL**2)
        advantages = hk.Linear(game.num_actions, w_init=small, name="advantages")(trunk)
        for p in range(players):
            name = f"rating_{p}" if of_history else "rating"
            score = hk.Linear(features.choices, w_init=small, name=name)(joint[..., p, :, :])
            places = actions[..., p, :, :, None] == np.arange(game.num_actions)
            advantages += jnp.sum(jnp.where(places, score[..., None], 0), axis=(-3, -2))
        return advantages, hk.Linear(1, name="value")(trunk)[..., 0]

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


def _checked_features(game: Game, width: int, window: int | None) -> CardFeatures:
    """Returns the game's card features; raises InputError where it has none, or where a window is set."""
    features = game.card_features
    if features is None:
        raise InputError(
            f"network.card_scorer_width={width} scores actions by card features, and {game.name} has none; "
            "it must be null"
        )
    if window is not None:
        raise InputError(
            f"network.log_window={window} does not go with network.card_scorer_width={width}; one must be null"
        )
    return features


def _inputs(game: Game, features: CardFeatures) -> Inputs:
    """Returns the features in one vector: float32, actions too."""

    def of_observation(observation: Array) -> Array:
        return jnp.concatenate([part.reshape(-1).astype(jnp.float32) for part in features.of_observation(observation)])

    size = sum(math.prod(part.shape) for part in _shapes(game, features))
    return Inputs(size, of_observation, lambda view: of_observation(game.encode(view)), carries_log=False)


def _split(game: Game, features: CardFeatures) -> Callable[[Array], list[Array]]:
    """Returns the inverse: float32[..., size] -> what features.of_observation returns, with leading axes."""
    shapes = [part.shape for part in _shapes(game, features)]
    ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]

    def parts(x: Array) -> list[Array]:
        return [
            part.reshape(*x.shape[:-1], *shape) for part, shape in zip(jnp.split(x, ends, axis=-1), shapes, strict=True)
        ]

    return parts


def _shapes(game: Game, features: CardFeatures) -> tuple[Any, ...]:
    return jax.eval_shape(features.of_observation, jax.ShapeDtypeStruct((game.observation_size,), jnp.float32))
