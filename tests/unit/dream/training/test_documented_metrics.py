"""Are metrics that no run of test_devices.py reports on docs/metrics.md too?"""

from __future__ import annotations

from typing import Any

import jax
import pytest
from documented_metrics import is_documented

import envs
from dream import algorithms

FIT = {"steps": 1, "batch_size": 8, "capacity": 16}
CASES: dict[str, dict[str, Any]] = {
    "tables": {"name": "cfr"},
    "a critic, optimism and the step of mirror descent": {
        "name": "mmd", "episodes_per_iteration": 8, "batch_size": 8, "epochs": 1, "advantage": "expected_sarsa",
        "advantage_unit": "reward", "objective": "mirror_step", "optimism": 1.0, "kl_weight": 1.0, "critic": FIT,
    },
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_every_metric_is_documented(case: str) -> None:
    """Of one iteration on Kuhn poker."""
    learner = algorithms.make(CASES[case], {"name": "dueling", "hidden": [4]}, envs.make("kuhn_poker"))
    _, metrics = learner.iterate(learner.init(jax.random.key(0)))
    assert [name for name in metrics if not is_documented(name)] == []
    assert metrics.keys() & {"regret_positive", "step_distance"}
