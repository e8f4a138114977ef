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

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dream.networks.inputs import Inputs, of_all_players
from dream.networks.layers import POLICY, SMALL, linear
from dream.networks.network import Network
from envs import CardFeatures, Game, InputError


def make(
    game: Game,
    *,
    width: int,
    hidden: tuple[int, ...],
    dtype: str,
    window: int | None,
    of_history: bool = False,
    policy_head: bool = False,
    recall: bool = False,
) -> Network:
    """Builds the network for a game's card features and actions.

    Args:
      game: what it plays.
      width: of the layers that see one card.
      hidden: widths of the trunk's layers, at least one.
      dtype: what matrix products are computed in; parameters, biases, the last layers and results stay float32.
      window: None; a card scorer and a window of a log do not go together.
      of_history: whether it reads the observations of all players.
      policy_head: whether it has a third output, the logits of a policy, made like the advantages.
      recall: whether it also reads what the opponent has discarded.
    Raises:
      InputError: a game without card features or without what `recall` asks for, or a window.
    """
    features = _checked_features(game, width, window, recall)
    seen = _inputs(game, features)
    players = game.num_players if of_history else 1
    compute = jnp.dtype(dtype)
    parts = _split(game, features)

    def forward(x: Array) -> tuple[Array, ...]:
        whole, cards, actions = parts(x.reshape(*x.shape[:-1], players, seen.size))
        each = jax.nn.relu(linear(width, "slot", compute)(cards))
        trunk = jnp.concatenate([whole, jnp.mean(each, axis=-2)], axis=-1)
        trunk = trunk.reshape(*x.shape[:-1], -1)
        for n, size in enumerate(hidden):
            trunk = jax.nn.relu(linear(size, f"trunk_{n}", compute)(trunk))
        # Linear in both, so that the trunk's share is computed once and not for every card.
        context = linear(width, "joint_trunk", compute, with_bias=False)(trunk)
        joint = jax.nn.relu(linear(width, "joint_slot", compute)(each) + context[..., None, None, :])
        places = actions[..., None] == np.arange(game.num_actions)
        rate = functools.partial(_ratings, trunk, joint, places, features.choices)
        names = [f"rating_{p}" for p in range(players)] if of_history else ["rating"]
        logits = (rate(POLICY, [f"{POLICY}_{name}" for name in names]),) if policy_head else ()
        return rate("advantages", names), linear(1, "value")(trunk)[..., 0], *logits

    net = hk.without_apply_rng(hk.transform(forward))
    selected = of_all_players(game, seen) if of_history else seen

    return Network(
        init=lambda key: net.init(key, jnp.zeros(selected.size)),
        apply=lambda params, observation: net.apply(params, selected.of_observation(observation)),
        inputs=selected,
        apply_inputs=net.apply,
        first_layer=None,
        rest=None,
        width=hidden[0],
    )


def _ratings(trunk: Array, joint: Array, places: Array, choices: int, head: str, names: list[str]) -> Array:
    """Returns one number for each action: a linear layer of the trunk plus the cards' scores at their actions.

    Args:
      trunk: float32[..., n].
      joint: float32[..., P, K, width], of each player's cards.
      places: bool[..., P, K, C, A], the actions about each card.
      choices: C.
      head: name of the trunk's layer.
      names: of each player's scores.
    Returns:
      float32[..., A].
    """
    small = hk.initializers.VarianceScaling(SMALL**2)
    total = linear(places.shape[-1], head, w_init=small)(trunk)
    for p, name in enumerate(names):
        score = linear(choices, name, w_init=small)(joint[..., p, :, :])
        total += jnp.sum(jnp.where(places[..., p, :, :, :], score[..., None], 0), axis=(-3, -2))
    return total


def _checked_features(game: Game, width: int, window: int | None, recall: bool) -> CardFeatures:
    """Returns the card features that are read; raises InputError where the game lacks them, or a window is set."""
    features = game.card_features
    if features is None:
        raise InputError(
            f"network.card_scorer_width={width} scores actions by card features, and {game.name} has none; "
            "it must be null"
        )
    if window is not None:
        raise InputError(
            f"network.log_window={window} cannot be combined with network.card_scorer_width={width}; one must be null"
        )
    if not recall:
        return features
    if features.with_recall is None:
        raise InputError(
            f"network.recall=true reads what the opponent discarded, which {game.name} does not show apart from its "
            "card features; it must be false"
        )
    return dataclasses.replace(features, of_observation=features.with_recall)


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
