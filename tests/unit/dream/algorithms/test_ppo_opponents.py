"""PPO against its own past, and with the opponent's id in its view."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from dream import algorithms
from dream.algorithms.types import Algorithm
from dream.rollout import policy_pool
from dream.rollout.policy_pool import make_pool
from dream.storage.checkpoint import find
from dream.storage.checkpoint_writer import CheckpointWriter
from envs import InputError, betting

KUHN = envs.make("kuhn_poker")
NETWORK = {"name": "dueling", "hidden": [16, 8]}
SETTINGS = {"name": "ppo", "batch_size": 32, "epochs": 2, "learning_rate": 3e-3, "pool_every": 1, "pool_size": 2}
MODES = {
    "games": {"episodes_per_iteration": 64, "opponents": ["random", "past_self", "self"]},
    "rollouts": {"num_envs": 32, "rollout_length": 5, "opponents": ["random", "past_self"]},
}


def _made(game: envs.Game = KUHN, **changes: Any) -> Algorithm:
    return algorithms.make(SETTINGS | changes, NETWORK, game)


def test_the_pool_keeps_the_latest() -> None:
    """Three places: what is sampled was added, and not yet replaced."""
    pool = make_pool({"w": jnp.float32(0)}, 3)
    for n in range(1, 6):
        pool = policy_pool.add(pool, {"w": jnp.float32(n)}, jnp.bool_(n != 4))
    assert sorted(pool.params["w"].tolist()) == [2, 3, 5]
    sampled = {float(policy_pool.sample(pool, jax.random.key(n))["w"]) for n in range(40)}
    assert sampled == {2.0, 3.0, 5.0}
    young = policy_pool.add(make_pool({"w": jnp.float32(7)}, 3), {"w": jnp.float32(8)}, jnp.bool_(True))
    assert {float(policy_pool.sample(young, jax.random.key(n))["w"]) for n in range(40)} == {7.0, 8.0}


@pytest.mark.parametrize("mode", MODES)
def test_resume_is_exact(mode: str, tmp_path: Path) -> None:
    """Four iterations in one go, or two, a checkpoint and two more: network, pool and games under way to the bit."""
    algorithm = _made(**MODES[mode])
    whole = part = algorithm.init(jax.random.key(1))
    for _ in range(4):
        whole, _ = algorithm.iterate(whole)
    for _ in range(2):
        part, _ = algorithm.iterate(part)
    writer = CheckpointWriter(tmp_path, 1)
    writer.save(2, part, {"config": {}, "game": {"name": "kuhn_poker", "version": "1"}})
    writer.close()
    part = find(tmp_path).restore(algorithm.init(jax.random.key(9)))
    for _ in range(2):
        part, _ = algorithm.iterate(part)
    assert int(part.pool.added) == 5
    for one, two in zip(*(jax.tree.leaves(jax.tree.map(_plain, state)) for state in (whole, part)), strict=True):
        np.testing.assert_array_equal(one, two)


def test_an_iteration_without_a_decision_changes_nothing() -> None:
    """One step of new games in which others move first holds none; every metric is finite."""
    algorithm = _made(opponents=["random"], num_envs=4, rollout_length=1)
    state = algorithm.init(jax.random.key(0))
    after, metrics = algorithm.iterate(state)
    assert metrics["decisions"] == metrics["gradient_steps"] == 0
    assert all(np.isfinite(value) for value in metrics.values())
    jax.tree.map(np.testing.assert_array_equal, after.params, state.params)
    assert algorithm.iterate(after)[1]["decisions"] > 0


def _plain(x: jax.Array) -> np.ndarray:
    return np.asarray(jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x)


def test_the_past_self_plays_as_the_pool_says() -> None:
    """A pool of one network that always passes, against it alone: the learner sees no bet it did not make."""
    algorithm = _made(episodes_per_iteration=256, opponents=["past_self"])
    learner = algorithm.iterate.__self__
    state = algorithm.init(jax.random.key(2))
    passive = jax.tree.map(jnp.zeros_like, state.params)
    passive["advantages"]["b"] = passive["advantages"]["b"].at[0].set(40.0)
    state = state._replace(pool=make_pool(passive, 2))
    replay = learner.generate(state, learner.parts.mixture.players)[0].replay
    views = jax.tree.map(lambda x: np.asarray(x)[np.asarray(replay.index)[: int(replay.count)]], replay.rows.view)
    seen = {
        (seat, *betting.named(bets, ("pass", "bet")))
        for seat, bets in zip(views.seat.tolist(), views.bets.tolist(), strict=True)
    }
    assert not any("bet" in moves[1 - seat :: 2] for seat, *moves in seen)
    assert seen == {(0,), (1, "pass")}, "a pass or a bet of its own ends the game"


@pytest.mark.parametrize(
    "mode", [{"episodes_per_iteration": 96}, {"num_envs": 96, "rollout_length": 4}], ids=["games", "rollouts"]
)
def test_views_name_the_opponent(mode: dict[str, int]) -> None:
    """In about the share of games asked for its views name the opponent, each of them."""
    settings = {"opponents": ["random", "greedy"], "opponent_id_prob": 0.5, "shares": [0.5, 0.5], **mode}
    algorithm = _made(envs.make("gin_rummy_mdp", max_actions=40), **settings)
    learner = algorithm.iterate.__self__
    replay = learner.generate(algorithm.init(jax.random.key(0)), learner.parts.mixture.players)[0].replay
    named = np.asarray(replay.rows.view.opponent)[np.asarray(replay.index)[: int(replay.count)]]
    assert set(np.unique(named)) == {0, 1, 2}
    assert 0.3 < np.mean(named == 0) < 0.7


def test_opponents_that_cannot_be_named_are_refused() -> None:
    """One line that says how many can."""
    with pytest.raises(InputError, match="kuhn_poker can name 0 opponents, and there are 2"):
        _made(opponents=["random", "past_self"], opponent_id_prob=0.5)
    for game in (KUHN, envs.make("gin_rummy_mdp")):
        with pytest.raises(InputError, match=r"algo\.opponents has nobody to name but 'self'; it must be 0"):
            _made(game, opponent_id_prob=0.5)
