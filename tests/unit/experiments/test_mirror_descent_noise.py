"""Are the sampled steps of experiments/mirror_descent_noise.py those of the exact values, but for their noise?"""

from __future__ import annotations

import importlib
from types import ModuleType

import numpy as np
import pytest
from command_support import REPO
from tree_values import action_values, history_values, tree_of

import envs
from envs import InputError


@pytest.fixture
def noise(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module."""
    monkeypatch.syspath_prepend(REPO / "experiments")
    return importlib.import_module("mirror_descent_noise")


def test_samples_have_the_exact_advantages_as_their_mean(noise: ModuleType) -> None:
    """Of explored games, weighted by the other's reach, in every information set of Kuhn poker."""
    tree, random = tree_of("kuhn_poker"), np.random.default_rng(0)
    policy = tree.uniform() * random.uniform(0.2, 1.0, tree.legal.shape)
    policy /= policy.sum(axis=1, keepdims=True)
    drawn = 0.5 * policy + 0.5 * tree.uniform()
    advantages = noise._advantages(tree, policy)
    exact = np.where(
        tree.player[:, None] >= 0, action_values(tree, policy)[:-1, :], history_values(tree, policy)[:, None]
    )
    np.testing.assert_allclose(advantages, exact - history_values(tree, policy)[:, None], atol=1e-12)
    visits = noise._visits(tree, drawn, 1_000_000, random)
    assert visits[tree.parent < 0].sum() == 1_000_000
    ratios = noise._ratios(tree, policy, drawn)
    met, mean = noise._means(tree, advantages, visits * ratios)
    _, wanted = noise._means(tree, advantages, noise._visits(tree, policy, None, random))
    own_only = noise._means(tree, advantages, visits)[1]
    assert met.all()
    np.testing.assert_allclose(mean, wanted, atol=0.02)
    assert np.abs(own_only - wanted).max() > 0.05, "without the ratio they would be others'"


def test_exact_steps_settle_and_samples_stay_apart(noise: ModuleType) -> None:
    """On Kuhn poker, 600 iterations of 64 games."""
    tree, random = tree_of("kuhn_poker"), np.random.default_rng(0)
    small = noise.Settings(games=64, iterations=600, alpha=(0.1, 0.01), beta=10.0, average_tau=0.02)
    exact, sampled = (noise.settle(tree, small._replace(games=games), random) for games in (None, 64))
    assert exact["last"] < 0.01
    assert 2 * exact["last"] < sampled["last"] < 0.3


def test_a_game_without_a_tree_is_refused(noise: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line, exit code 2."""
    monkeypatch.setattr("sys.argv", ["mirror_descent_noise.py", "--env", "gin_rummy"])
    with pytest.raises(SystemExit) as stopped:
        noise.main()
    assert stopped.value.code == 2
    with pytest.raises(InputError):
        noise.build_tree(envs.make("gin_rummy"))
