"""Are the sampled steps of experiments/mirror_descent_noise.py those of the exact values, but for their noise?"""

from __future__ import annotations

import json
from pathlib import Path

import mirror_descent_noise as noise
import numpy as np
import pytest
from tree_values import action_values, history_values, tree_of


def test_samples_have_the_exact_advantages_as_their_mean() -> None:
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


def test_exact_steps_settle_and_optimism_damps_sampled_ones() -> None:
    """On Kuhn poker, 600 iterations of 64 games."""
    tree = tree_of("kuhn_poker")
    small = noise.Settings(games=64, iterations=600, alpha=(0.1, 0.01), beta=10.0, average_tau=0.02)

    def reached(**changes: float | None) -> dict[str, float]:
        return noise.settle(tree, small._replace(**changes), np.random.default_rng(0))

    exact, sampled, optimistic = reached(games=None), reached(), reached(optimism=3.0)
    assert exact["last"] < 0.01
    assert exact["averaged"] < 0.01
    assert 2 * exact["last"] < sampled["last"] < 0.3
    assert sampled["averaged"] < sampled["last"]
    assert optimistic["last"] < 0.6 * sampled["last"]


def test_the_result_is_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every case with its settings and a run per seed, into a folder that is made."""
    monkeypatch.setattr("sys.argv", ["", "--seeds", "2", "--iterations", "2", "--out", str(tmp_path / "a" / "b.json")])
    noise.main()
    cases = json.loads((tmp_path / "a" / "b.json").read_text())["cases"]
    assert {name: len(case["runs"]) for name, case in cases.items()} == {
        name: 1 if name == "exact" else 2 for name in noise.CASES
    }


@pytest.mark.parametrize("option", ["--seeds", "--iterations"])
def test_none_is_too_few(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], option: str) -> None:
    """One line, exit code 2."""
    monkeypatch.setattr("sys.argv", ["", option, "0"])
    with pytest.raises(SystemExit) as stopped:
        noise.main()
    assert stopped.value.code == 2
    assert capsys.readouterr().err == f"error: {option}=0 is out of range; it must be at least 1\n"
