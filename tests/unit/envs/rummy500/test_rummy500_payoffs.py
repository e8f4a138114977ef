"""Rewards by points or against the others' mean: what is paid alone."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs import Game

STEPS = 60


def _rounds(game: Game) -> tuple:
    """Returns all that is seen and allowed along eight rounds of random play, and what they paid."""

    def play(key: jax.Array) -> tuple:
        def step(state: object, key: jax.Array) -> tuple:
            views = [game.view(state, jnp.int32(player)) for player in range(game.num_players)]
            legal = game.legal_actions(state)
            new, rewards, done = game.step(state, jax.random.categorical(key, jnp.where(legal, 0.0, -jnp.inf)))
            return new, (views, legal, done, rewards)

        return jax.lax.scan(step, game.init(key), jax.random.split(key, STEPS))[1]

    *seen, rewards = jax.device_get(jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(2), 8)))
    return seen, rewards


def test_policies_play_under_both_rewards() -> None:
    """Views and legal actions are the same; another hand is another game."""
    against, points = (envs.make("rummy500", max_turns=12, rewards=rewards) for rewards in ("zero_sum", "points"))
    (seen, paid), (seen_there, paid_there) = _rounds(against), _rounds(points)
    jax.tree.map(np.testing.assert_array_equal, seen, seen_there)
    assert not np.array_equal(paid, paid_there)
    policy = envs.make_bot("greedy", against)
    envs.check_plays(policy, points)
    with pytest.raises(envs.InputError, match="with other rules"):
        envs.check_plays(policy, envs.make("rummy500", hand_size=8, rewards="points"))
