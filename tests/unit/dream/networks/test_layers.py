"""Does a network in bfloat16 keep what float32 holds of its biases and outputs?"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dream_support import CoinGame

from dream.networks import make_network, make_policy_network

NODES = [
    {"name": "dueling", "hidden": [16, 8]},
    {"name": "simba", "width": 16, "blocks": 1},
    {"name": "card_planes", "hidden": [16], "head": 8},
]


@pytest.mark.parametrize("node", NODES, ids=lambda node: node["name"])
def test_heads_are_float32(node: dict[str, Any]) -> None:
    """A change of 1e-4 in the bias of outputs near 0.5, where bfloat16 rounds by 0.002, is seen whole."""
    game = CoinGame()
    network = make_network({**node, "dtype": "bfloat16"}, game)
    (name,) = network.rated_by
    params, part = dict(jax.jit(network.init)(jax.random.key(0))), "bias" if node["name"] == "simba" else "b"
    observation = np.random.default_rng(0).random(game.observation_size, np.float32)
    outputs = []
    for shift in (0.5, 0.5001):
        moved = {**params, name: {**params[name], part: params[name][part] + shift}}
        outputs.append(np.asarray(network.apply(moved, jnp.asarray(observation))[0]))
    assert outputs[0].dtype == np.float32
    np.testing.assert_allclose(outputs[1] - outputs[0], 1e-4, atol=2e-6)


def test_a_policy_head_is_a_third_output_that_starts_near_uniform() -> None:
    """Its layer is the only one more."""
    game = CoinGame()
    network = make_policy_network(NODES[0], game)
    params = jax.jit(network.init)(jax.random.key(0))
    advantages, value, logits = network.apply(params, jnp.ones(game.observation_size))
    assert advantages.shape == logits.shape == (game.num_actions,)
    assert value.shape == ()
    assert np.abs(logits).max() < 0.05
    assert set(params) == {*make_network(NODES[0], game).init(jax.random.key(0)), "policy"}
