"""Does the learned best response come close to the exact one, and never above it?"""

from __future__ import annotations

import numpy as np
import pytest

import envs
from dream.evaluation.best_response import BestResponseConfig, learn_best_response
from dream.game_tree import sequence_form
from dream.game_tree.tabular_policy import table_index, table_policy
from dream.game_tree.tree import build_tree

SETTINGS = {
    "episodes_per_iteration": 512,
    "batch_size": 512,
    "epochs": 4,
    "learning_rate": 5e-3,
    "learning_rate_decay": {"start": 1.0, "end": 0.05, "transition_steps": 60},
    "gae_lambda": 1.0,
    "value_loss": "relative",
    "shaping": {"scale": {"start": 0.0, "end": 0.0}, "tie_penalty": 0.0},
}


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker"])
def test_the_bound_on_uniform_play_is_tight(name: str) -> None:
    """Against uniform play two seeds reach 90 % of the exact value, and stay below it within their interval."""
    game = envs.make(name)
    tree = build_tree(game)
    truth = sequence_form.nash_conv(tree, tree.uniform()) * game.reward_scale / 2
    config = BestResponseConfig(
        iterations=60, seeds=(0, 1), choice_games=1024, games=4096, algo=SETTINGS, network={"hidden": [32, 32]}
    )
    learned = learn_best_response(game, envs.make_bot("random", game), config)
    bound = learned.report["points_per_hand"]
    assert bound.low <= truth
    assert bound.mean >= 0.9 * truth
    assert [len(curve) for curve in learned.curves.values()] == [60, 60]


def test_the_best_of_all_answers_is_measured() -> None:
    """A player beside the trained ones is chosen where it earns more: here the exact best response."""
    game = envs.make("kuhn_poker")
    tree = build_tree(game)
    answers = [sequence_form.best_response(tree, tree.uniform(), player)[1] for player in range(2)]
    table = np.where((tree.owner == 0)[:, None], *map(np.asarray, answers))
    best = table_policy(table_index(tree), table.astype(np.float32))
    config = BestResponseConfig(
        iterations=1, seeds=(0,), choice_games=1024, games=4096, algo=SETTINGS, network={"hidden": [8]}
    )
    learned = learn_best_response(game, envs.make_bot("random", game), config, {"exact": best})
    truth = sequence_form.nash_conv(tree, tree.uniform()) * game.reward_scale / 2
    assert learned.chosen == "exact"
    assert set(learned.earned) == {"exact", "seed 0"}
    assert learned.control is None
    assert learned.report["points_per_hand"].low <= truth <= learned.report["points_per_hand"].high
