"""The simba network: residual blocks with layer norm, a value head for each phase, a head that predicts.

x = relu(Dense_0(observation)); each block: x <- x + Dense(relu(Dense(LayerNorm(x)))); every head is linear in the last
LayerNorm(x). Its parameters have the names of the document, kernels [in, out]:

    Dense_0, then Dense_1, Dense_2 with LayerNorm_0 for the first block, and so on; the last LayerNorm; the last Dense,
    whose outputs are the logits; value_<phase> for each phase, or `value` where an observation does not show the phase;
    opp_dw_pred where the game has something to predict.

The value is that of the phase the observation shows, 0 where it shows none.
Source: the gin rummy MDP document, sections 6 to 8, written there for two blocks of width 1,024; Lee et al. 2024,
"SimBa". Deviations: none in the forward pass; parameters are drawn as Flax draws a Dense layer's (LeCun normal, biases
0), of which the document says nothing.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dream.config.settings import choice, number
from dream.networks import inputs
from dream.networks.network import Network
from dream.networks.products import product
from envs import Game

LOGITS, PREDICTED = "logits", "opp_dw_pred"
"""Heads by the names of their outputs; the others are values."""
EPSILON = 1e-5
"""Added to the variance in a layer norm."""

Params = dict[str, dict[str, Array]]


@dataclasses.dataclass(frozen=True)
class SimbaConfig:
    """Settings of the simba network.

    Attributes:
      name: "simba".
      width: of every hidden layer.
      blocks: residual blocks.
      dtype: what the blocks' products are computed in; parameters, norms, heads and results stay float32.
    """

    name: str = "simba"
    width: int = number(1024, 1)
    blocks: int = number(2, 1)
    dtype: str = choice("float32", "float32", "bfloat16")


def parameter_shapes(config: SimbaConfig, game: Game) -> dict[str, dict[str, tuple[int, ...]]]:
    """Returns the shape of every parameter: layer -> {kernel, bias} or {scale, bias} -> shape."""
    width, last = config.width, 2 * config.blocks + 1
    sizes = {"Dense_0": (game.observation_size, width)}
    sizes |= {f"Dense_{n}": (width, width) for n in range(1, last)}
    sizes |= {f"Dense_{last}": (width, game.num_actions)}
    sizes |= dict.fromkeys(_value_heads(game), (width, 1))
    if game.auxiliary:
        sizes[PREDICTED] = (width, 1)
    shapes = {name: {"kernel": size, "bias": size[1:]} for name, size in sizes.items()}
    norms = {f"LayerNorm_{n}": {"scale": (width,), "bias": (width,)} for n in range(config.blocks + 1)}
    return {**shapes, **norms}


def make(config: SimbaConfig, game: Game) -> Network:
    """Builds the simba network for a game's observation, actions and phases."""
    net = _Simba(config, game)
    by_phase = game.phase_offset is not None
    seen = inputs.whole(game)
    return Network(
        init=net.init,
        apply=net.outputs,
        inputs=seen._replace(carries_log=seen.carries_log and not by_phase),
        apply_inputs=net.outputs,
        first_layer=lambda params: (params["Dense_0"]["kernel"].astype(net.compute), params["Dense_0"]["bias"]),
        rest=lambda params, sums: net.chosen(net.upper(params, sums.astype(jnp.float32)), None),
        width=config.width,
        rated_by=(f"Dense_{2 * config.blocks + 1}",),
        heads=net.heads,
        auxiliary_prediction=net.auxiliary_prediction if game.auxiliary else None,
    )


def _value_heads(game: Game) -> list[str]:
    """Returns the names of the value heads, in the order of the phases."""
    return ["value"] if game.phase_offset is None else [f"value_{phase}" for phase in game.phases]


@dataclasses.dataclass(frozen=True)
class _Simba:
    """The network's functions; inputs may have leading axes."""

    config: SimbaConfig
    game: Game

    @property
    def compute(self) -> np.dtype:
        return jnp.dtype(self.config.dtype)

    def init(self, key: Array) -> Params:
        draw, made = jax.nn.initializers.lecun_normal(), {}
        for n, (name, shapes) in enumerate(parameter_shapes(self.config, self.game).items()):
            made[name] = {part: jnp.full(shape, part == "scale", jnp.float32) for part, shape in shapes.items()}
            if "kernel" in shapes:
                made[name]["kernel"] = draw(jax.random.fold_in(key, n), shapes["kernel"])
        return made

    def heads(self, params: Params, x: Array) -> dict[str, Array]:
        """Returns every head's output by name: `logits` float32[..., A], the others float32[...]."""
        return self.upper(params, self._dense(params["Dense_0"], x))

    def upper(self, params: Params, sums: Array) -> dict[str, Array]:
        """Returns the heads, from the first layer's sums."""
        x, last = jax.nn.relu(sums), 2 * self.config.blocks + 1
        for n in range(self.config.blocks):
            inner = jax.nn.relu(self._dense(params[f"Dense_{2 * n + 1}"], _normed(params[f"LayerNorm_{n}"], x)))
            x = x + self._dense(params[f"Dense_{2 * n + 2}"], inner)
        x = _normed(params[f"LayerNorm_{self.config.blocks}"], x)
        single = [*_value_heads(self.game), *([PREDICTED] if self.game.auxiliary else [])]
        scalars = {name: _dense(params[name], x, jnp.float32)[..., 0] for name in single}
        return {LOGITS: _dense(params[f"Dense_{last}"], x, jnp.float32), **scalars}

    def outputs(self, params: Params, x: Array) -> tuple[Array, Array]:
        """Returns (logits, the value of the phase that x shows)."""
        return self.chosen(self.heads(params, x), x)

    def auxiliary_prediction(self, params: Params, x: Array) -> tuple[tuple[Array, Array], Array]:
        """Returns the outputs, and what is predicted of game.auxiliary."""
        heads = self.heads(params, x)
        return self.chosen(heads, x), heads[PREDICTED]

    def chosen(self, heads: dict[str, Array], x: Array | None) -> tuple[Array, Array]:
        """Returns (logits, value) from the heads; x shows the phase where there is one value per phase."""
        values = jnp.stack([heads[name] for name in _value_heads(self.game)], axis=-1)
        start = self.game.phase_offset
        if start is None:
            return heads[LOGITS], values[..., 0]
        phase = x[..., start : start + len(self.game.phases)] > 0.5
        return heads[LOGITS], jnp.sum(jnp.where(phase, values, 0.0), axis=-1)

    def _dense(self, layer: dict[str, Array], x: Array) -> Array:
        return _dense(layer, x, self.compute)


def _dense(layer: dict[str, Array], x: Array, dtype: Any) -> Array:
    """Returns x @ kernel + bias, the operands of the product in a dtype, its sums and the bias in float32."""
    return product(x, layer["kernel"], dtype) + layer["bias"]


def _normed(layer: dict[str, Array], x: Array) -> Array:
    """Returns (x - mean) / sqrt(variance + EPSILON) * scale + bias, over the last axis."""
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(centred**2, axis=-1, keepdims=True)
    return centred / jnp.sqrt(variance + EPSILON) * layer["scale"] + layer["bias"]
