"""Advantage targets against a slow reference."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from dream.equations.advantage_targets import policy_baseline_targets, value_baseline_targets

ACTIONS = 5


def slow_targets(
    advantages: np.ndarray, value: float, action: int, g: float, policy: np.ndarray, legal: np.ndarray, clip: float
) -> list[float]:
    """The document's rule action by action."""
    q = {a: g if a == action else value + advantages[a] for a in range(ACTIONS) if legal[a]}
    mean = sum(policy[a] * q[a] for a in q)
    return [max(-clip, min(clip, q[a] - mean)) if a in q else 0.0 for a in range(ACTIONS)]


def _case(seed: int) -> tuple:
    """Returns random arguments; the policy has, like a stored one, a little weight nowhere but on legal actions."""
    rng = np.random.default_rng(seed)
    legal = rng.random(ACTIONS) < 0.6
    action = int(rng.integers(ACTIONS))
    legal[action] = True
    policy = np.where(legal, rng.random(ACTIONS), 0.0).astype(np.float32)
    advantages = rng.normal(size=ACTIONS).astype(np.float32)
    return advantages, np.float32(rng.normal()), action, np.float32(rng.normal()), policy / policy.sum(), legal


@pytest.mark.parametrize("clip", [0.5, 10.0])
def test_equals_the_slow_reference(clip: float) -> None:
    """Random networks, returns, policies and masks, with and without clipping at work."""
    cases = [_case(seed) for seed in range(100)]
    columns = [np.stack(column) for column in zip(*cases, strict=True)]
    found = jax.jit(jax.vmap(lambda *x: policy_baseline_targets(*x, clip=clip)))(*columns)
    for case, targets in zip(cases, np.asarray(found), strict=True):
        np.testing.assert_allclose(targets, slow_targets(*case, clip), rtol=1e-4, atol=1e-5)
    assert (np.abs(found) == clip).any() == (clip < 1)


def test_written_out() -> None:
    """V = 1, A = (2, 0, -1, 9), return 5 for action 1, policy (.5, .25, .25, 0): Q = 3, 5, 0; mean 2.75."""
    policy, legal = np.array([0.5, 0.25, 0.25, 0.0]), np.array([True, True, True, False])
    arguments = (np.array([2.0, 0.0, -1.0, 9.0]), 1.0, 1, 5.0, policy, legal)
    np.testing.assert_allclose(policy_baseline_targets(*arguments, clip=10.0), [0.25, 2.25, -2.75, 0.0])
    np.testing.assert_allclose(policy_baseline_targets(*arguments, clip=1.0), [0.25, 1.0, -1.0, 0.0])


def test_policy_mean_of_the_targets_is_zero() -> None:
    """Without clipping at work, as an advantage's is."""
    for seed in range(20):
        case = _case(seed)
        assert np.sum(case[4] * np.asarray(policy_baseline_targets(*case, clip=1e6))) == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("clip", [0.5, 10.0])
def test_value_baseline_is_the_rule_action_by_action(clip: float) -> None:
    """The return moves the action taken; the others keep the target network's advantages, whatever policy acted."""
    for case in map(_case, range(20)):
        advantages, value, action, g, _, legal = case
        rows = [g - value if a == action else advantages[a] for a in range(ACTIONS)]
        expected = [max(-clip, min(clip, row)) if legal[a] else 0.0 for a, row in enumerate(rows)]
        found = value_baseline_targets(advantages, value, action, g, legal, clip=clip)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(("untaken_weight", "iterations"), [(1.0, 550), (0.1, 100)])
def test_how_long_an_advantage_takes(untaken_weight: float, iterations: int) -> None:
    """A table that fits its targets is 1 - 1/e of the way after the time constant of docs/algorithms/dueling_dream.md.

    One of eleven actions that are equally likely, with returns of 1 above the value; tau 0.1 every 5 iterations.
    """
    tau, period, shares = 0.1, 5, np.array([1 / 11, untaken_weight * 10 / 11])
    slow = 0.0
    for _ in range(iterations // period):
        advantages, legal = np.full(11, slow, np.float32), np.ones(11, bool)
        targets = [value_baseline_targets(advantages, 0.0, action, 1.0, legal, clip=10.0)[0] for action in (0, 1)]
        slow += tau * (float(np.average(targets, weights=shares)) - slow)
    assert slow == pytest.approx(1 - np.exp(-1), abs=0.02)
