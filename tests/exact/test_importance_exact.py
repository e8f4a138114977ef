"""Games by one policy, corrected to another: means over all trajectories of the coin game are the exact quantities."""

from __future__ import annotations

import functools

import jax
import numpy as np
import pytest
from dream_support import CoinGame, coin_trees, exact_action_values, random_table, trajectories

from dream.equations.importance import corrected_lambda_returns, reach_ratios
from dream.equations.returns import lambda_returns

DISCOUNT = 0.9
STEPS = 3


@functools.cache
def _trees() -> list:
    return coin_trees(CoinGame())


@functools.partial(jax.jit, static_argnums=5)
def _corrected(
    rewards: jax.Array, dones: jax.Array, players: jax.Array, values: jax.Array, ratios: jax.Array, gae_lambda: float
) -> tuple[jax.Array, ...]:
    def one(*stream: jax.Array) -> tuple[jax.Array, ...]:
        *most, ratio = stream
        returns = corrected_lambda_returns(*most, ratio, discount=DISCOUNT, gae_lambda=gae_lambda)
        return returns, *reach_ratios(ratio, stream[1], stream[2], 2)

    return jax.vmap(one)(rewards, dones, players, values, ratios)


class Corrected:
    """All trajectories by a policy mu, and what pi's exact values are."""

    def __init__(self, seed: int) -> None:
        """Enumerates."""
        self.pi, self.mu = random_table(_trees(), seed), random_table(_trees(), seed + 100)
        self.q, self.reach = exact_action_values(_trees(), self.pi, DISCOUNT)
        self.value = {key: float(np.nansum(self.pi[key] * q)) for key, q in self.q.items()}
        self.paths = trajectories(_trees(), self.mu)
        shape = (len(self.paths), STEPS)
        # What comes after the end is another game, whose rewards and ratios must not reach back.
        self.rewards, self.dones = np.full((*shape, 2), 7.0, np.float32), np.ones(shape, bool)
        self.players, self.ratios = np.zeros(shape, np.int32), np.full(shape, 3.0, np.float32)
        for n, (_, path) in enumerate(self.paths):
            for t, (node, action) in enumerate(path):
                self.rewards[n, t] = node.children[action][0]
                self.dones[n, t] = t + 1 == len(path)
                self.players[n, t] = node.player
                self.ratios[n, t] = self.pi[node.key][action] / self.mu[node.key][action]

    def streams(self, values: dict[bytes, float], gae_lambda: float) -> tuple[np.ndarray, ...]:
        """Returns corrected returns, own and others' reach ratios of every trajectory."""
        predicted = np.zeros(self.dones.shape, np.float32)
        for n, (_, path) in enumerate(self.paths):
            predicted[n, : len(path)] = [values[node.key] for node, _ in path]
        found = _corrected(self.rewards, self.dones, self.players, predicted, self.ratios, gae_lambda)
        return tuple(np.asarray(x, np.float64) for x in found)

    def mean_by_action(self, samples: np.ndarray, weights: np.ndarray) -> dict[tuple[bytes, int], float]:
        """Returns the mean of samples at each information set and action, each counting chance times weight."""
        sums: dict[tuple[bytes, int], np.ndarray] = {}
        for (chance, path), own, counts in zip(self.paths, samples, weights, strict=True):
            for (node, action), sample, count in zip(path, own, counts, strict=False):
                place = (node.key, action)
                sums[place] = sums.get(place, 0.0) + chance * count * np.array([sample, 1.0])
        return {place: total / mass for place, (total, mass) in sums.items()}


@pytest.fixture(scope="module", params=range(5))
def games(request: pytest.FixtureRequest) -> Corrected:
    """Games by one random policy, corrected to another."""
    return Corrected(request.param)


@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_weighted_mean_return_is_the_exact_action_value(games: Corrected, offset: float) -> None:
    """Weighted by the others' reach, E_mu[G | I, a] = Q^pi(I, a), whatever the values where lambda is 1."""
    wrong = {key: value + offset for key, value in games.value.items()}
    returns, _, others = games.streams(wrong, 1.0)
    means = games.mean_by_action(returns, others)
    assert len(means) == sum(np.isfinite(q).sum() for q in games.q.values())
    for (key, action), mean in means.items():
        assert mean == pytest.approx(games.q[key][action], abs=1e-5)


def test_a_shorter_trace_needs_exact_values(games: Corrected) -> None:
    """With lambda = 0.5: unbiased where the values are V^pi, not where they are off by one."""
    returns, _, others = games.streams(games.value, 0.5)
    for (key, action), mean in games.mean_by_action(returns, others).items():
        assert mean == pytest.approx(games.q[key][action], abs=1e-5)
    wrong, _, others = games.streams({key: value + 1.0 for key, value in games.value.items()}, 0.5)
    means = games.mean_by_action(wrong, others)
    assert any(abs(mean - games.q[key][action]) > 0.1 for (key, action), mean in means.items())


def test_neither_correction_can_be_left_out(games: Corrected) -> None:
    """Plain returns weighted, or corrected returns unweighted, miss Q^pi somewhere."""
    plain = np.asarray(
        jax.vmap(functools.partial(lambda_returns, discount=DISCOUNT, gae_lambda=1.0))(
            games.rewards, games.dones, games.players, np.zeros(games.dones.shape, np.float32)
        )
    )
    returns, _, others = games.streams(games.value, 1.0)
    for samples, weights in ((plain, others), (returns, np.ones_like(others))):
        means = games.mean_by_action(samples, weights)
        assert any(abs(mean - games.q[key][action]) > 0.01 for (key, action), mean in means.items())


def test_both_ratios_give_the_reach_of_every_set(games: Corrected) -> None:
    """E_mu[own * others, in I] = the probability of I under pi."""
    _, own, others = games.streams(games.value, 1.0)
    reach: dict[bytes, float] = {}
    for (chance, path), mine, rest in zip(games.paths, own, others, strict=True):
        for (node, _), a, b in zip(path, mine, rest, strict=False):
            reach[node.key] = reach.get(node.key, 0.0) + chance * a * b
    assert reach.keys() == games.reach.keys()
    for key, found in reach.items():
        assert found == pytest.approx(games.reach[key], abs=1e-6)


def test_without_exploration_it_is_the_lambda_return(games: Corrected) -> None:
    """Ratios of 1 change nothing."""
    ones, values = np.ones_like(games.ratios), np.full(games.dones.shape, 0.3, np.float32)
    found, own, others = _corrected(games.rewards, games.dones, games.players, values, ones, 0.5)
    plain = jax.vmap(functools.partial(lambda_returns, discount=DISCOUNT, gae_lambda=0.5))(
        games.rewards, games.dones, games.players, values
    )
    np.testing.assert_allclose(found, plain, atol=1e-6)
    np.testing.assert_array_equal(own, 1.0)
    np.testing.assert_array_equal(others, 1.0)
