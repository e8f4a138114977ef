"""Expectations over all trajectories of the coin game equal the exact quantities, whatever random policy plays."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dream_support import CoinGame, coin_trees, exact_action_values, nodes, random_table, trajectories

from dream.equations.advantage_targets import policy_baseline_targets, value_baseline_targets
from dream.equations.returns import lambda_returns, lambda_returns_over_all

DISCOUNT = 0.9
STEPS = 3
SEEDS = range(5)
NO_CLIP = 1e9


@functools.cache
def _trees() -> list:
    return coin_trees(CoinGame())


@functools.partial(jax.jit, static_argnums=(4, 5))
def _returns(
    rewards: jax.Array,
    dones: jax.Array,
    players: jax.Array,
    values: jax.Array,
    gae_lambda: float,
    equation: Callable[..., jax.Array] = lambda_returns,
) -> jax.Array:
    return jax.vmap(lambda r, d, p, v: equation(r, d, p, v, discount=DISCOUNT, gae_lambda=gae_lambda))(
        rewards, dones, players, values
    )


class Exact:
    """All trajectories of the game under one random policy, and the exact values."""

    def __init__(self, seed: int) -> None:
        """Enumerates."""
        self.table = random_table(_trees(), seed)
        self.q, self.reach = exact_action_values(_trees(), self.table, DISCOUNT)
        self.value = {key: float(np.nansum(self.table[key] * q)) for key, q in self.q.items()}
        self.paths = trajectories(_trees(), self.table)
        self.chances = np.array([chance for chance, _ in self.paths])

    def returns(
        self, values: dict[bytes, float], gae_lambda: float, equation: Callable[..., jax.Array] = lambda_returns
    ) -> np.ndarray:
        """Returns each trajectory's return targets, float[paths, STEPS]; what comes after the end is another game."""
        rewards = np.full((len(self.paths), STEPS, 2), 7.0, np.float32)
        dones = np.ones((len(self.paths), STEPS), bool)
        players, predicted = np.zeros((len(self.paths), STEPS), int), np.zeros((len(self.paths), STEPS), np.float32)
        for n, (_, path) in enumerate(self.paths):
            for t, (node, action) in enumerate(path):
                rewards[n, t] = node.children[action][0]
                dones[n, t] = t + 1 == len(path)
                players[n, t], predicted[n, t] = node.player, values[node.key]
        return np.asarray(_returns(rewards, dones, players, predicted, gae_lambda, equation))

    def mean_by_action(self, samples: list[list[np.ndarray]]) -> dict[tuple[bytes, int], np.ndarray]:
        """Returns E[sample | information set, action taken there], each sample weighted by its trajectory's chance."""
        sums: dict[tuple[bytes, int], np.ndarray] = {}
        weights: dict[tuple[bytes, int], float] = {}
        for chance, (_, path), own in zip(self.chances, self.paths, samples, strict=True):
            for (node, action), sample in zip(path, own, strict=False):
                place = (node.key, action)
                sums[place] = sums.get(place, 0.0) + chance * sample
                weights[place] = weights.get(place, 0.0) + chance
        return {place: total / weights[place] for place, total in sums.items()}


@pytest.fixture(scope="module", params=SEEDS)
def exact(request: pytest.FixtureRequest) -> Exact:
    """The game under one random policy."""
    return Exact(request.param)


def test_the_game_is_what_the_proofs_need(exact: Exact) -> None:
    """18 trajectories of 1 to 3 moves; 10 information sets, two of which hide the coin; draws and a third action."""
    assert len(exact.paths) == 18
    assert exact.chances.sum() == pytest.approx(1.0)
    assert {len(path) for _, path in exact.paths} == {1, 2, 3}
    assert len(exact.q) == 10
    histories = [node.key for tree in _trees() for node in nodes(tree)]
    assert sorted(histories.count(key) for key in exact.q) == [1] * 8 + [2] * 2
    assert any(path[-1][0].children[path[-1][1]][0].any() == 0 for _, path in exact.paths)


@pytest.mark.parametrize("gae_lambda", [0.0, 0.5, 1.0])
def test_mean_return_is_the_exact_action_value(exact: Exact, gae_lambda: float) -> None:
    """E[G | I, a] = Q^pi(I, a) for every information set and action; with lambda < 1 where the values are V^pi."""
    means = exact.mean_by_action(list(exact.returns(exact.value, gae_lambda)))
    assert len(means) == sum(np.isfinite(q).sum() for q in exact.q.values())
    for (key, action), mean in means.items():
        assert mean == pytest.approx(exact.q[key][action], abs=1e-6)


def test_full_trace_needs_no_values(exact: Exact) -> None:
    """With lambda = 1 the same holds whatever the values, with lambda = 0 it does not."""
    wrong = {key: value + 1.0 for key, value in exact.value.items()}
    for (key, action), mean in exact.mean_by_action(list(exact.returns(wrong, 1.0))).items():
        assert mean == pytest.approx(exact.q[key][action], abs=1e-6)
    biased = exact.mean_by_action(list(exact.returns(wrong, 0.0)))
    assert any(abs(mean - exact.q[key][action]) > 0.1 for (key, action), mean in biased.items())


def test_the_other_players_values_are_biased(exact: Exact) -> None:
    """With both players' decisions as steps exact values are right for lambda = 1 alone: the other sees the coin."""
    errors = {}
    for gae_lambda in (0.0, 1.0):
        means = exact.mean_by_action(list(exact.returns(exact.value, gae_lambda, lambda_returns_over_all)))
        errors[gae_lambda] = max(abs(mean - exact.q[key][action]) for (key, action), mean in means.items())
    assert errors[1.0] < 1e-6
    assert errors[0.0] > 0.01


def _targets(exact: Exact, net_q: dict[bytes, np.ndarray], offset: float) -> list[list[np.ndarray]]:
    """Returns the targets float[3] at each decision of each trajectory; the network splits Q into value and rest."""
    returns = exact.returns(exact.value, 1.0)
    calls = [
        (np.nan_to_num(net_q[node.key]) - offset, offset, action, g, exact.table[node.key], node.legal)
        for (_, path), row in zip(exact.paths, returns, strict=True)
        for (node, action), g in zip(path, row, strict=False)
    ]
    columns = [jnp.asarray(np.stack(column)) for column in zip(*calls, strict=True)]
    flat = iter(np.asarray(jax.vmap(lambda *x: policy_baseline_targets(*x, clip=NO_CLIP))(*columns)))
    return [[next(flat) for _ in path] for _, path in exact.paths]


@pytest.mark.parametrize("offset", [0.0, 0.35])
def test_mean_target_is_the_exact_advantage(exact: Exact, offset: float) -> None:
    """Where the target network's value + advantages are Q^pi, E[target(b) | I, a taken] = Q^pi(I, b) - V^pi(I).

    For all a and b: so it is under any distribution of the action taken, and however the network splits Q into value
    and advantage.
    """
    for (key, _), mean in exact.mean_by_action(_targets(exact, exact.q, offset)).items():
        advantage = np.where(np.isfinite(exact.q[key]), exact.q[key] - exact.value[key], 0.0)
        np.testing.assert_allclose(mean, advantage, atol=1e-6)


def test_mean_target_of_a_wrong_network(exact: Exact) -> None:
    """An error of the target network's Q' is kept in the share 1 - pi(b) of cases that do not try the action.

    E[target(b) | I] = M(b) - sum over c of pi(c) M(c), M(b) = pi(b) Q^pi(b) + (1 - pi(b)) Q'(b), actions drawn from pi.
    """
    rng = np.random.default_rng(3)
    guess = {key: q + rng.normal(size=3) for key, q in exact.q.items()}
    by_action = exact.mean_by_action(_targets(exact, guess, 0.0))
    for key, q in exact.q.items():
        pi, legal = exact.table[key], np.isfinite(q)
        mixed = np.where(legal, pi * np.nan_to_num(q) + (1 - pi) * np.nan_to_num(guess[key]), 0.0)
        mean = sum(pi[a] * by_action[key, a] for a in np.flatnonzero(legal))
        np.testing.assert_allclose(mean, np.where(legal, mixed - np.sum(pi * mixed), 0.0), atol=1e-6)


def test_value_baseline_measures_what_was_taken(exact: Exact) -> None:
    """E[target(a) | I, a taken] = Q^pi(I, a) - V^pi(I) by any target network; actions not taken keep that network's."""
    rng = np.random.default_rng(4)
    guess = {key: rng.normal(size=3).astype(np.float32) for key in exact.q}
    returns = exact.returns(exact.value, 1.0)
    samples = [
        [
            np.asarray(value_baseline_targets(guess[n.key], exact.value[n.key], a, g, n.legal, clip=NO_CLIP))
            for (n, a), g in zip(path, row, strict=False)
        ]
        for (_, path), row in zip(exact.paths, returns, strict=True)
    ]
    for (key, action), mean in exact.mean_by_action(samples).items():
        expected = np.where(np.isfinite(exact.q[key]), guess[key], 0.0)
        expected[action] = exact.q[key][action] - exact.value[key]
        np.testing.assert_allclose(mean, expected, atol=1e-6)
