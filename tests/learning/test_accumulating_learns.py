"""The dueling agent that accumulates approaches an equilibrium of Kuhn poker, its networks and samples included."""

from __future__ import annotations

import functools

import jax
import pytest
from tree_values import tree_of

from dream import algorithms
from dream.algorithms.types import Algorithm
from dream.game_tree.sequence_form import nash_conv
from dream.game_tree.tabular_policy import tabulate

ITERATIONS = 150


@functools.cache
def _learner() -> Algorithm:
    config = {
        "name": "dueling_dream", "episodes_per_iteration": 512, "batch_size": 256, "epochs": 20, "discount": 1.0,
        "learning_rate": 2e-3, "learning_rate_decay": {"start": 1.0, "end": 0.1, "transition_steps": ITERATIONS},
        "uniform_iterations": 2, "tau": 1.0, "target_update_period": 1, "untaken_weight": 0.1,
        "accumulate": "mirror_descent", "shaping": {"tie_penalty": 0.0},
        "mirror": {
            "eta": {"start": 0.3, "end": 0.05, "transition_steps": ITERATIONS},
            "alpha": {"start": 0.3, "end": 0.05, "transition_steps": ITERATIONS},
        },
    }  # fmt: skip
    return algorithms.make(config, {"name": "dueling", "hidden": [32, 32]}, tree_of("kuhn_poker").game)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_last_iterate_approaches_an_equilibrium(seed: int) -> None:
    """150 iterations of 512 games; exploitability of the last policy in chips, uniform play 0.458.

    Measured: 0.048, 0.043 and 0.030.
    """
    algorithm, tree = _learner(), tree_of("kuhn_poker")
    state = algorithm.init(jax.random.key(seed))
    for _ in range(ITERATIONS):
        state, _ = algorithm.iterate(state)
    exploitability = nash_conv(tree, tabulate(tree, algorithm.policies(state)["current"])) / 2
    assert exploitability < 0.1
