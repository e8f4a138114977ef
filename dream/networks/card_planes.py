"""A network that looks at planes of cards as pictures: convolutions along ranks and along suits, separate heads.

The observation begins with game.card_planes planes of 4 suits by 13 ranks. One convolution sees three neighbouring ranks
of a suit, where runs are, the other three neighbouring suits of a rank, where sets are; their outputs and the observation
itself go through the trunk, then through a hidden layer of each head, all layers with ReLU:

    features = trunk(relu(ranks(planes)), relu(suits(planes)), observation)
    logits = linear(relu(linear(features))),  value = linear(relu(linear(features))).

A game without planes has the trunk and the heads alone.
Source: the OpenSpiel document, "PPO Training Results", which names the two kernels, (1, 3) and (3, 1), and the separate
heads; widths and the trunk are this project's.
"""  # noqa: E501

from __future__ import annotations

import dataclasses

import haiku as hk
import jax
import jax.numpy as jnp
from jax import Array

from dream.config.settings import choice, number
from dream.networks import inputs
from dream.networks.layers import check_widths, linear
from dream.networks.network import Network
from envs import Game

SUITS, RANKS = 4, 13
_REACH = 3
"""Neighbours a kernel sees."""


@dataclasses.dataclass(frozen=True)
class CardPlanesConfig:
    """Settings of the network.

    Attributes:
      name: "card_planes".
      channels: of each convolution.
      hidden: widths of the trunk's layers.
      head: width of each head's hidden layer.
      dtype: what matrix products are computed in; parameters, biases, the last layers and results stay float32.
    """

    name: str = "card_planes"
    channels: int = number(32, 1)
    hidden: tuple[int, ...] = number((512, 256), 1)
    head: int = number(128, 1)
    dtype: str = choice("float32", "float32", "bfloat16")


def make(config: CardPlanesConfig, game: Game) -> Network:
    """Builds the network for a game's observation and actions.

    Raises:
      InputError: no trunk layer.
    """
    check_widths(config.hidden)
    seen, planes = inputs.whole(game), game.card_planes
    compute = jnp.dtype(config.dtype)

    def forward(x: Array) -> tuple[Array, Array]:
        parts = [x]
        if planes:
            cards = x[..., : planes * SUITS * RANKS].reshape(*x.shape[:-1], planes, SUITS, RANKS)
            for axis, name in ((-1, "ranks"), (-2, "suits")):
                found = jax.nn.relu(linear(config.channels, name, compute)(_neighbours(cards, axis)))
                parts.append(found.reshape(*x.shape[:-1], -1))
        features = jnp.concatenate(parts, axis=-1)
        for n, width in enumerate(config.hidden):
            features = jax.nn.relu(linear(width, f"trunk_{n}", compute)(features))
        actor, critic = (jax.nn.relu(linear(config.head, name, compute)(features)) for name in ("actor", "critic"))
        return linear(game.num_actions, "logits")(actor), linear(1, "value")(critic)[..., 0]

    whole = hk.without_apply_rng(hk.transform(forward))

    return Network(
        init=lambda key: whole.init(key, jnp.zeros(seen.size)),
        apply=whole.apply,
        inputs=seen._replace(carries_log=False),
        apply_inputs=whole.apply,
        first_layer=None,
        rest=None,
        width=config.hidden[0],
        rated_by=("logits",),
    )


def _neighbours(cards: Array, axis: int) -> Array:
    """Returns each place's neighbours along an axis, beyond the edge 0: [..., SUITS, RANKS, 3 * planes]."""
    pad = [(0, 0)] * cards.ndim
    pad[axis] = (_REACH // 2, _REACH // 2)
    padded, size = jnp.pad(cards, pad), cards.shape[axis]
    shifted = [jax.lax.slice_in_dim(padded, step, step + size, axis=axis % cards.ndim) for step in range(_REACH)]
    return jnp.moveaxis(jnp.concatenate(shifted, axis=-3), -3, -1)
