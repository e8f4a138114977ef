"""Does learning from a player's advice begin as that player, and end as a policy of the game itself?"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import envs
from dream.algorithms.types import Value
from dream.equations.estimators import exploring
from dream.equations.regret_matching import masked_softmax
from dream.evaluation.best_response import BestResponseConfig, make_learner
from dream.evaluation.headstart import AdvisedGame, advised, on_advice, unadvised_value, unaware
from dream.networks import make_network
from envs import Policy

GAME = envs.make("leduc_poker")


def _third_action(params: jax.Array, view: object, legal: jax.Array) -> jax.Array:
    """Raises where that is legal, else calls."""
    wanted = jnp.where(legal[2], 2, 1)
    return params * (jnp.arange(3) == wanted)


PLAYER = Policy(_third_action, np.float32(1.0))


def test_a_network_of_zeros_plays_the_advice() -> None:
    """The player with its share of uniform play, exactly, where three actions are legal and where two are."""
    network = make_network({"hidden": [8]}, GAME)
    zeros = jax.tree.map(jnp.zeros_like, network.init(jax.random.key(0)))
    hinted = on_advice(network, GAME.num_actions)
    state = GAME.init(jax.random.key(1))
    for action in (2, 2):
        state, _, _ = GAME.step(state, jnp.int32(action))
        legal, seat = GAME.legal_actions(state), state.current_player
        seen = AdvisedGame(GAME, PLAYER, 0.3).view(state, seat)
        logits, _ = hinted.apply_inputs(zeros, hinted.inputs.of_view(seen))
        expected = exploring(PLAYER(seen.view, legal), legal, 0.3)
        np.testing.assert_allclose(masked_softmax(logits, legal), expected, rtol=1e-5)


def test_a_batch_is_its_rows() -> None:
    """Networks are applied to whole batches in fits."""
    hinted = on_advice(make_network({"hidden": [8]}, GAME), GAME.num_actions)
    params = hinted.init(jax.random.key(0))
    rows = jax.random.normal(jax.random.key(1), (4, hinted.inputs.size))
    together, one_by_one = hinted.apply_inputs(params, rows), jax.vmap(hinted.apply_inputs, (None, 0))(params, rows)
    for both in zip(together, one_by_one, strict=True):
        np.testing.assert_allclose(*both, rtol=1e-5, atol=1e-6)


def test_what_was_learned_plays_the_game_itself() -> None:
    """On its own views it plays what it plays on advised ones; the frozen policy sees no advice; values need none."""
    config = BestResponseConfig(algo={"episodes_per_iteration": 8, "batch_size": 8}, network={"hidden": [8]})
    learner = make_learner(GAME, envs.make_bot("random", GAME), config, PLAYER)
    state, _ = learner.iterate(learner.init(jax.random.key(0)))
    hand = GAME.init(jax.random.key(3))
    legal, view = GAME.legal_actions(hand), GAME.view(hand, 0)
    seen = AdvisedGame(GAME, PLAYER, config.start_exploration).view(hand, 0)
    current = learner.policies(state)["current"]
    own = advised(current, PLAYER, config.start_exploration)
    np.testing.assert_allclose(own(view, legal), current(seen, legal), rtol=1e-6)
    np.testing.assert_array_equal(unaware(PLAYER)(seen, legal), PLAYER(view, legal))
    value, network = learner.value(state), make_network({"hidden": [8]}, GAME)
    assert isinstance(value, Value)
    np.testing.assert_allclose(unadvised_value(network, value)(view), value(seen), rtol=1e-6)


def test_sizes_that_are_left_open_follow_the_game() -> None:
    """Many games where they are short; the shared layers where cards are described; what is given stays."""
    given = BestResponseConfig(iterations=7, algo={"batch_size": 64, "episodes_per_iteration": None})
    small, gin = given.sized(GAME), given.sized(envs.make("gin_rummy"))
    assert (small.iterations, small.algo["batch_size"], small.algo["episodes_per_iteration"]) == (7, 64, 32768)
    assert small.algo["learning_rate_decay"]["transition_steps"] == 7
    assert "card_scorer_width" not in small.network
    assert gin.network["card_scorer_width"] == 64
    assert gin.algo["episodes_per_iteration"] == 512
