"""R-NaD and NFSP: what they pass from one iteration to the next, and that both find Kuhn's equilibrium roughly."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tree_values import tree_of

import envs
from dream import algorithms
from dream.algorithms.nfsp import own_steps
from dream.game_tree.sequence_form import nash_conv
from dream.game_tree.tabular_policy import tabulate
from envs import InputError

NETWORK = {"name": "dueling", "hidden": [32, 32]}
RNAD = {
    "name": "rnad", "episodes_per_iteration": 512, "batch_games": 128, "epochs": 2, "learning_rate": 3e-3,
    "learning_rate_decay": {"start": 1.0, "end": 0.1, "transition_steps": 100},
    "eta": 0.5, "period": 25, "target_tau": 0.02, "max_grad_norm": 10.0,
}  # fmt: skip
NFSP = {
    "name": "nfsp", "epsilon": {"start": 0.1, "end": 0.0, "transition_steps": 1000},
    "best_response": {"capacity": 20_000, "steps": 8}, "average": {"capacity": 200_000, "steps": 8},
}  # fmt: skip


@functools.cache
def _learner(name: str) -> Any:
    settings = {"rnad": RNAD, "nfsp": NFSP}[name]
    return algorithms.make(settings, NETWORK, envs.make("kuhn_poker"))


def _exploitability(name: str, policy: str, iterations: int) -> float:
    learner = _learner(name)
    state = learner.init(jax.random.key(0))
    for _ in range(iterations):
        state, _ = learner.iterate(state)
    return nash_conv(tree_of("kuhn_poker"), tabulate(tree_of("kuhn_poker"), learner.policies(state)[policy])) / 2


@pytest.mark.parametrize(
    ("name", "policy", "iterations", "bound"), [("rnad", "average", 120, 0.1), ("nfsp", "average", 600, 0.1)]
)
def test_kuhn(name: str, policy: str, iterations: int, bound: float) -> None:
    """Uniform play 0.458; one run each: R-NaD 0.042 after 120 iterations of 512 games, NFSP 0.059 after 600 of 128."""
    assert _exploitability(name, policy, iterations) < bound


def test_own_steps_pass_over_the_other_player() -> None:
    """Two games in one stream, players 0 1 0 | 1 0: rewards until the next own decision of the same game."""
    rewards = np.array([[1, -1], [2, -2], [4, -4], [8, -8], [16, -16]], np.float32)
    dones, players = np.array([0, 0, 1, 0, 1], bool), np.array([0, 1, 0, 1, 0])
    earned, following, discount = own_steps(rewards, dones, players, discount=0.5)
    np.testing.assert_array_equal(earned, [1 + 2, -2 - 4, 4, -8 - 16, 16])
    np.testing.assert_array_equal(discount, [0.5, 0, 0, 0, 0])
    assert following[0] == 2


def test_nfsp_keeps_best_responses_alone_for_the_average() -> None:
    """Every decision goes to the buffer of Q; with anticipation 1 all go to the reservoir, with 0.1 about a tenth."""
    for anticipation, least, most in ((1.0, 1.0, 1.0), (0.1, 0.03, 0.25)):
        learner = algorithms.make(NFSP | {"anticipation": anticipation}, NETWORK, envs.make("kuhn_poker"))
        state, metrics = learner.iterate(learner.init(jax.random.key(1)))
        assert int(state.best_response.buffer.seen) == metrics["decisions"]
        assert least <= int(state.average.buffer.seen) / metrics["decisions"] <= most


def test_the_anchor_is_replaced_at_the_end_of_a_period() -> None:
    """Not before; then by the slowly moving copy, the anchor before it becoming the last one."""
    learner = algorithms.make(RNAD | {"period": 2}, NETWORK, envs.make("kuhn_poker"))
    states = [learner.init(jax.random.key(2))]
    for _ in range(2):
        states.append(learner.iterate(states[-1])[0])
    leaves = [[np.asarray(jax.tree.leaves(tree)[0]) for tree in (s.anchor, s.last_anchor, s.target)] for s in states]
    np.testing.assert_array_equal(leaves[1][0], leaves[0][0])
    np.testing.assert_array_equal(leaves[2][0], leaves[2][2])
    np.testing.assert_array_equal(leaves[2][1], leaves[0][0])
    assert jnp.any(leaves[2][0] != leaves[0][0])


def test_settings_that_do_not_fit_are_refused() -> None:
    """By name."""
    for games in (1024, 200):
        with pytest.raises(InputError, match=r"algo\.batch_games=.* must divide algo\.episodes_per_iteration=512"):
            algorithms.make(RNAD | {"batch_games": games}, NETWORK, envs.make("kuhn_poker"))
    with pytest.raises(InputError, match="needs a two-player zero-sum game, and rummy500 has 3 players"):
        algorithms.make(RNAD, NETWORK, envs.make("rummy500", num_players=3))
    with pytest.raises(
        InputError,
        match="algo=rnad needs a two-player zero-sum game, and gin_rummy_mdp is not zero-sum with these rules",
    ):
        algorithms.make(RNAD, NETWORK, envs.make("gin_rummy_mdp", reward="categorical"))
