"""Are PPO's equations the ones of its papers?"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from dream import algorithms
from dream.algorithms.critic import corrected
from dream.algorithms.ppo import PpoConfig, clipped_loss
from dream.algorithms.ppo.loss import Example, value_loss
from dream.equations.regret_matching import masked_softmax
from envs import InputError, Policy


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "slope"),
    [
        (1.0, 2.0, -2.0, -2.0),
        (1.5, 2.0, -2.4, 0.0),  # better than before by more than the clip: no further pull
        (0.5, 2.0, -1.0, -2.0),  # worse than before: pulled back
        (1.5, -2.0, 3.0, 2.0),
        (0.5, -2.0, 1.6, 0.0),
    ],
)
def test_the_clip_stops_the_gradient_on_one_side(ratio: float, advantage: float, loss: float, slope: float) -> None:
    """Schulman et al. 2017, eq. 7, clip 0.2."""
    value, gradient = jax.value_and_grad(clipped_loss)(ratio, advantage, 0.2)
    assert float(value) == pytest.approx(loss)
    assert float(gradient) == pytest.approx(slope)


@pytest.mark.parametrize(
    ("value", "loss"),
    [
        (0.0, 1.0),  # as it was: (0 - 1)^2
        (0.1, 0.81),  # within the clip
        (0.9, 0.64),  # nearer to the return than the clip lets it count
        (-0.9, 3.61),  # farther away: counts whole
    ],
)
def test_the_clipped_value_loss(value: float, loss: float) -> None:
    """By hand: return 1, value 0 when played, clip 0.2."""
    config = PpoConfig(value_loss="clipped", clip_epsilon=0.2)
    row = Example(None, None, None, None, jnp.float32([1.0]), jnp.float32([1.0]), None)
    assert float(value_loss(config, row, jnp.float32([value]))) == pytest.approx(loss)


@pytest.mark.parametrize("name", ["ppo", "mmd"])
@pytest.mark.parametrize(
    ("changes", "game", "message"),
    [
        ({"opponents": ["random"]}, "kuhn_poker", r"algo\.opponents must be \[self\]"),
        ({"advantage": "expected_sarsa"}, "kuhn_poker", r"algo\.advantage=expected_sarsa must be gae"),
        ({}, "rummy500", "needs a two-player zero-sum game"),
        (
            {"shaping": {"tie_penalty": -5.0}},
            "kuhn_poker",
            r"algo\.shaping\.scale and algo\.shaping\.tie_penalty must be 0",
        ),
    ],
)
def test_values_of_all_decisions_need_self_play_for_two(
    name: str, changes: dict[str, Any], game: str, message: str
) -> None:
    """Another player's value, and its rewards, are minus one's own there alone."""
    with pytest.raises(InputError, match=message):
        algorithms.make({"name": name, "gae_over": "all", **changes}, {"hidden": [8]}, envs.make(game))


def test_a_clipped_value_loss_needs_the_value_that_played() -> None:
    """A critic's advantages do not tell it."""
    with pytest.raises(InputError, match=r"algo\.value_loss=clipped needs the network's own values"):
        algorithms.make(CRITIC | {"value_loss": "clipped"}, {"hidden": [8]}, envs.make("kuhn_poker"))


def test_the_policy_is_a_softmax_over_legal_actions() -> None:
    """Illegal actions get exactly 0, the others what a softmax among them gives."""
    logits, legal = jnp.array([1.0, 50.0, -1.0, 0.0]), jnp.array([True, False, True, True])
    policy = np.asarray(masked_softmax(logits, legal))
    expected = np.exp([1.0, -1.0, 0.0])
    np.testing.assert_allclose(policy[[0, 2, 3]], expected / expected.sum(), rtol=1e-6)
    assert policy[1] == 0.0
    assert not np.any(np.asarray(masked_softmax(logits, jnp.zeros(4, bool))))


def _calls(_: Any, view: Any, legal: jax.Array) -> jax.Array:
    """Bets after pass and bet in Kuhn poker; leaves all else to the learner."""
    return jnp.where(view.bets == 0b1001, jnp.array([0.0, 1.0]), 0.0) * legal


@pytest.mark.parametrize(("name", "opponents"), [("ppo", ["self"]), ("mmd", ["random"])])
def test_what_an_assistant_decides_is_not_bootstrapped_from(name: str, opponents: list[str]) -> None:
    """With lambda 0 and one decision of its own in each game, a return is what the game pays: one or two chips."""
    settings = {"name": name, "episodes_per_iteration": 64, "gae_lambda": 0.0, "opponents": opponents}
    algorithm = algorithms.make(settings, {"hidden": [8]}, envs.make("kuhn_poker"))
    learner = algorithm.iterate.__self__
    parts = dataclasses.replace(learner.parts, assistant=Policy(_calls))
    learner = dataclasses.replace(learner, parts=parts)
    replay = learner.generate(*learner.play_arguments(learner.init(jax.random.key(0))))[0].replay
    rows = jax.tree.map(lambda x: np.asarray(x)[np.asarray(replay.index)[: int(replay.count)]], replay.rows)
    assert not np.any(rows.view.bets == 0b1001), "the assistant's own decisions are not learned from"
    assert np.any((rows.view.bets == 0) & (rows.action == 0)), "decisions before one of the assistant's are"
    assert set(np.abs(rows.returns).tolist()) == {1.0, 2.0}


CRITIC = {"name": "ppo", "advantage": "expected_sarsa", "episodes_per_iteration": 16, "batch_size": 16, "epochs": 1}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"opponents": ["random"]}, r"algo\.opponents must be \[self\]"),
        ({"rollout_length": 4, "opponents": ["random"]}, "expected_sarsa"),
        ({"shaping": {"tie_penalty": -1.0, "scale": {"start": 0.0, "end": 0.0}}}, "tie_penalty must be 0"),
        ({"critic": {"chance": "exact"}}, r"algo\.critic\.chance must be sampled"),
        ({"advantage": "gae", "objective": "all_actions"}, "algo.advantage=gae must be expected_sarsa"),
    ],
)
def test_a_critic_of_histories_needs_zero_sum_self_play(changes: dict[str, Any], message: str) -> None:
    """Anything else is refused in one line."""
    with pytest.raises(InputError, match=message):
        algorithms.make(CRITIC | changes, {"hidden": [8]}, envs.make("kuhn_poker"))


@pytest.mark.parametrize("objective", ["sampled", "all_actions"])
def test_the_critic_learns_as_ppo_plays(objective: str) -> None:
    """Its error falls, and its rows and steps are counted."""
    settings = CRITIC | {"objective": objective, "critic": {"steps": 20, "batch_size": 64, "policy": "current"}}
    learner = algorithms.make(settings, {"hidden": [16]}, envs.make("kuhn_poker"))
    state, losses = learner.init(jax.random.key(0)), []
    for _ in range(5):
        state, metrics = learner.iterate(state)
        losses.append(metrics["baseline_loss"])
        assert metrics["gradient_steps"] == 20 + -(-metrics["decisions"] // 16)
    assert losses[-1] < losses[0]


def test_the_correction_of_the_action_taken() -> None:
    """By hand: bound 0 leaves the critic's advantages; no bound makes their mean over actions taken exact."""
    q, policy = jnp.array([1.0, 0.0, 3.0]), jnp.array([0.5, 0.0, 0.5])
    legal, truth = jnp.array([True, False, True]), np.array([2.0, 0.0, -1.0])
    alone = corrected(q, policy, jnp.int32(2), jnp.float32(-1.0), legal, 0.0)
    np.testing.assert_allclose(alone, [-1.0, 0.0, 1.0])
    means = sum(policy[a] * corrected(q, policy, jnp.int32(a), jnp.float32(truth[a]), legal, np.inf) for a in (0, 2))
    np.testing.assert_allclose(means, [truth[0] - 2.0, 0.0, truth[2] - 2.0])


def test_the_correction_counts_how_the_action_was_drawn() -> None:
    """Drawn from mu, the mean is exact as well, also of an action that the policy itself never plays."""
    q, policy, drawn = jnp.array([1.0, 0.5]), jnp.array([1.0, 0.0]), jnp.array([0.3, 0.7])
    legal, truth = jnp.ones(2, bool), np.array([2.0, -1.0])
    means = sum(drawn[a] * corrected(q, policy, jnp.int32(a), truth[a], legal, np.inf, drawn[a]) for a in (0, 1))
    np.testing.assert_allclose(means, truth - 1.0, rtol=1e-6)
