"""Does the history value function learn what exact sums over the tree give, whatever it bootstraps from?"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tree_values import action_values, tree_of

from dream.algorithms.deep import history_values
from dream.algorithms.deep.history_values import HistoryValueConfig
from dream.algorithms.deep.samplers import OutcomeSampler, WeightConfig
from dream.buffers import reservoir
from dream.game_tree.tabular_policy import row_of, table_index
from dream.networks import make_history_network

GAMES = 4096


@functools.cache
def _setting() -> tuple[Any, ...]:
    """Returns Kuhn's tree, a policy, its exact action values, and a memory of games whose stored policy is that one."""
    tree = tree_of("kuhn_poker")
    rows = np.random.default_rng(1).uniform(0.2, 1.0, tree.legal.shape)
    table = rows / rows.sum(axis=1, keepdims=True)
    index, chances = jax.tree.map(jnp.asarray, table_index(tree)), jnp.asarray(table, jnp.float32)

    def policy(view: Any, legal: jax.Array, player: jax.Array) -> jax.Array:
        return chances[row_of(index, view)[0]]

    sampler = OutcomeSampler(tree.game, GAMES, GAMES, 1.0, WeightConfig())
    nothing = lambda views, legal: jnp.zeros(2)  # noqa: E731
    sampled = jax.jit(lambda key: sampler(policy, nothing, jnp.int32(0), jnp.int32(0), key))(jax.random.key(0))
    memory = reservoir.empty(jax.tree.map(lambda x: x[0], sampled.moves), 3 * GAMES)
    memory = reservoir.add(memory, sampled.moves, sampled.moved, jax.random.key(1), kind="fifo")
    return tree, policy, action_values(tree, table), memory


def _learned(config: HistoryValueConfig, memory: reservoir.ReservoirBuffer) -> tuple[np.ndarray, np.ndarray]:
    """Returns learned and exact values at every history of Kuhn where somebody acts: float[N, A] each."""
    tree, policy, exact, _ = _setting()
    network = make_history_network({"hidden": [64, 64]}, tree.game)
    params = network.init(jax.random.key(2))
    state = history_values.ValueState(params, history_values.optimizer(config).init(params), memory)
    learn = jax.jit(functools.partial(history_values.learn, network, config, policy=policy))
    state, metrics = learn(state, key=jax.random.key(3))
    assert np.isfinite(metrics["baseline_loss"])
    histories = np.flatnonzero(tree.infoset >= 0)
    views = jax.tree.map(lambda *x: jnp.stack(x), *(_views(tree, h) for h in histories))
    legal = jnp.ones((len(histories), 2), bool)
    q = jax.vmap(functools.partial(history_values.action_values, network, state.params))(views, legal)
    return np.asarray(q), exact[histories]


def _views(tree: Any, history: int) -> Any:
    """Returns what both players see at a history, replayed from its deal."""
    path = []
    while tree.parent[history] >= 0:
        path.append(int(tree.action[history]))
        history = tree.parent[history]
    states, _ = tree.game.initial_outcomes()
    state = jax.tree.map(lambda x: x[history], states)
    for action in reversed(path):
        state, _, _ = tree.game.step(state, jnp.int32(action))
    return jax.vmap(lambda player: tree.game.view(state, player))(jnp.arange(2))


@pytest.mark.parametrize(
    "target",
    [{}, {"policy": "current"}, {"policy": "current", "sync_every": 50, "reinitialise": True}],
    ids=["stored policy", "today's policy", "copies"],
)
def test_values_are_those_of_the_policy(target: dict[str, Any]) -> None:
    """Games were sampled uniformly by one player, so the values are learned off policy."""
    config = HistoryValueConfig(steps=1500, batch_size=256, learning_rate=3e-3, **target)
    learned, exact = _learned(config, _setting()[3])
    assert np.sqrt(np.mean((learned - exact) ** 2)) < 0.12
    assert exact.std() > 0.8


def test_only_todays_policy_forgets_an_old_one() -> None:
    """With a wrong policy stored beside the moves, values of the stored kind are wrong and the others are not."""
    memory = _setting()[3]
    wrong = jnp.broadcast_to(jnp.array([0.0, 1.0]), memory.rows.next_policy.shape)
    memory = memory._replace(rows=memory.rows._replace(next_policy=wrong))
    errors = []
    for policy in ("stored", "current"):
        config = HistoryValueConfig(steps=1500, batch_size=256, learning_rate=3e-3, policy=policy)
        learned, exact = _learned(config, memory)
        errors.append(np.sqrt(np.mean((learned - exact) ** 2)))
    assert errors[1] < 0.12 < 0.3 < errors[0]
