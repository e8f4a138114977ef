"""The fitted average of a self-play learner: weights count in full, however few decisions a minibatch has."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import envs
from dream.algorithms.average_policy import AverageConfig, AveragePolicy, Played
from dream.networks import make_network

ROWS = 64


def test_weights_count_in_minibatches_of_one() -> None:
    """Half of the decisions say the first action and weigh nine times as much as the others: 0.9 of the average."""
    game = envs.make("kuhn_poker")
    config = AverageConfig(capacity=ROWS, steps=4000, batch_size=1, learning_rate=1e-3, power=0.0)
    average = AveragePolicy(config, game, make_network({"name": "dueling", "hidden": [8]}, game))
    state = game.init(jax.random.key(0))
    view, legal = game.view(state, state.current_player), game.legal_actions(state)
    first = np.arange(ROWS) % 2 == 0
    rows = Played(
        jax.tree.map(lambda x: jnp.repeat(jnp.asarray(x)[None], ROWS, 0), view),
        jnp.repeat(jnp.packbits(legal)[None], ROWS, 0),
        jnp.asarray(np.stack([first, ~first], axis=1), jnp.float16),
        jnp.asarray(np.where(first, 0.9, 0.1), jnp.float32),
    )
    fitted, _ = average.update(
        average.init(jax.random.key(1)),
        rows,
        jnp.ones(ROWS, bool),
        jnp.int32(0),
        jax.random.key(2),
        decay=jnp.float32(0.3),
    )
    np.testing.assert_allclose(average.play(fitted.params, view, legal), [0.9, 0.1], atol=0.05)
