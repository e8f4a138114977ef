"""PPO against its own past, and told whom it faces."""

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
from dream.rollout.opponents import draw_past, make_ring, push
from dream.storage.checkpoint import CheckpointWriter, find
from envs import InputError

KUHN = envs.make("kuhn_poker")
NETWORK = {"name": "dueling", "hidden": [16, 8]}
SETTINGS = {"name": "ppo", "batch_size": 32, "epochs": 2, "learning_rate": 3e-3, "pool_every": 1, "pool_size": 2}
MODES = {
    "games": {"episodes_per_iteration": 64, "opponents": ["random", "frozen", "self"]},
    "steps": {"num_envs": 32, "steps": 5, "opponents": ["random", "frozen"]},
}


def _made(game: envs.Game = KUHN, **changes: Any) -> Algorithm:
    return algorithms.make(SETTINGS | changes, NETWORK, game)


def test_the_ring_keeps_the_latest() -> None:
    """Three slots: what is drawn was put in, and not yet overwritten."""
    ring = make_ring({"w": jnp.float32(0)}, 3)
    for n in range(1, 6):
        ring = push(ring, {"w": jnp.float32(n)}, jnp.bool_(n != 4))
    assert sorted(ring.params["w"].tolist()) == [2, 3, 5]
    drawn = {float(draw_past(ring, jax.random.key(n))["w"]) for n in range(40)}
    assert drawn == {2.0, 3.0, 5.0}
    young = push(make_ring({"w": jnp.float32(7)}, 3), {"w": jnp.float32(8)}, jnp.bool_(True))
    assert {float(draw_past(young, jax.random.key(n))["w"]) for n in range(40)} == {7.0, 8.0}


@pytest.mark.parametrize("mode", MODES)
def test_resume_is_exact(mode: str, tmp_path: Path) -> None:
    """Four iterations in one go, or two, a checkpoint and two more: network, ring and games under way to the bit."""
    algorithm = _made(**MODES[mode])
    whole = part = algorithm.init(jax.random.key(1))
    for _ in range(4):
        whole, _ = algorithm.iterate(whole)
    for _ in range(2):
        part, _ = algorithm.iterate(part)
    writer = CheckpointWriter(tmp_path, 1)
    writer.save(2, part, {"config": {}, "game": {}})
    writer.close()
    part = find(tmp_path).restore(algorithm.init(jax.random.key(9)))
    for _ in range(2):
        part, _ = algorithm.iterate(part)
    assert int(part.ring.pushed) == 5
    for one, two in zip(*(jax.tree.leaves(jax.tree.map(_plain, state)) for state in (whole, part)), strict=True):
        np.testing.assert_array_equal(one, two)


def _plain(x: jax.Array) -> np.ndarray:
    return np.asarray(jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x)


def test_the_past_self_plays_as_the_ring_says() -> None:
    """A ring of one network that always passes, against it alone: the learner sees no bet it did not make."""
    algorithm = _made(episodes_per_iteration=256, opponents=["frozen"])
    parts = algorithm.iterate.__self__
    state = algorithm.init(jax.random.key(2))
    passive = jax.tree.map(jnp.zeros_like, state.params)
    passive["advantages"]["b"] = passive["advantages"]["b"].at[0].set(40.0)
    state = state._replace(ring=make_ring(passive, 2))
    _, replay, _ = parts.generate(state, parts.mixture.players)
    views = jax.tree.map(lambda x: np.asarray(x)[np.asarray(replay.index)[: int(replay.count)]], replay.rows.view)
    observed = np.asarray(jax.vmap(KUHN.encode)(views))
    free = _made(episodes_per_iteration=256, opponents=["random"])
    parts = free.iterate.__self__
    _, replay, _ = parts.generate(free.init(jax.random.key(2)), parts.mixture.players)
    views = jax.tree.map(lambda x: np.asarray(x)[np.asarray(replay.index)[: int(replay.count)]], replay.rows.view)
    assert len(np.unique(observed, axis=0)) < len(np.unique(np.asarray(jax.vmap(KUHN.encode)(views)), axis=0))


@pytest.mark.parametrize("mode", [{"episodes_per_iteration": 96}, {"num_envs": 96, "steps": 4}], ids=["games", "steps"])
def test_the_learner_is_told_its_opponent(mode: dict[str, int]) -> None:
    """In about the share of games asked for its views name the opponent, each of them."""
    settings = {"opponents": ["random", "greedy"], "opponent_id_prob": 0.5, "shares": [0.5, 0.5], **mode}
    algorithm = _made(envs.make("gin_rummy_mdp", max_actions=40), **settings)
    parts = algorithm.iterate.__self__
    _, replay, _ = parts.generate(algorithm.init(jax.random.key(0)), parts.mixture.players)
    named = np.asarray(replay.rows.view.opponent)[np.asarray(replay.index)[: int(replay.count)]]
    assert set(np.unique(named)) == {0, 1, 2}
    assert 0.3 < np.mean(named == 0) < 0.7


def test_opponents_that_cannot_be_named_are_refused() -> None:
    """One line that says how many can."""
    with pytest.raises(InputError, match="kuhn_poker can name 0 opponents, and there are 2"):
        _made(opponents=["random", "frozen"], opponent_id_prob=0.5)
