"""The variants of CFR by their formulas, written out in NumPy for a game of one move each."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dream import algorithms
from dream.algorithms.tabular.cfr import CfrConfig, CfrState, _discounted, run_updates_without_tree

PAYOFF = np.array([[2.0, -1.0, 0.5], [-1.5, 1.0, 0.0], [0.3, -0.4, -1.0]])
"""What player 0 gets, by its action and player 1's."""
Factors = tuple[float, float]
VARIANTS: dict[str, tuple[list[Factors], bool, int]] = {
    "cfr": ([(1, 1), (1, 1)], False, 0),
    "linear_cfr": ([(1 / 2, 1 / 2), (2 / 3, 2 / 3)], False, 1),
    "dcfr": ([(1 / 2, 1 / 2), (2**1.5 / (2**1.5 + 1), 1 / 2)], False, 2),
    "pcfr_plus": ([(1, 1), (1, 1)], True, 2),
}
"""Factors of positive and negative regrets before iterations 2 and 3, whether PCFR+, the average's power of t."""


class _Player(SimpleNamespace):
    """OwnSequences of a player with one decision; `pays[a, b]`: to it, for its action a and the other's b."""

    def realisation(self, policy: np.ndarray) -> np.ndarray:
        return np.append(1.0, policy)

    def terminal_values(self, opponent: np.ndarray) -> np.ndarray:
        return np.append(0.0, self.pays @ opponent[1:])

    def sweep(self, policy: np.ndarray, terminal: np.ndarray) -> tuple[float, np.ndarray]:
        return float(policy @ terminal[1:]), terminal[1:]

    def total(self, entries: np.ndarray) -> np.ndarray:
        return np.full(3, entries.sum())

    def legal_only(self, entries: np.ndarray) -> np.ndarray:
        return entries

    def normalised(self, weights: np.ndarray) -> np.ndarray:
        return weights / weights.sum() if weights.sum() > 0 else np.full(3, 1 / 3)


FORM: Any = SimpleNamespace(players=(_Player(pays=PAYOFF), _Player(pays=-PAYOFF.T)), halves=lambda x: (x[:3], x[3:]))


def _config(name: str) -> CfrConfig:
    return algorithms.read_settings({"name": name})[1]


@pytest.mark.parametrize("name", VARIANTS)
def test_three_updates_written_out(name: str) -> None:
    """Regrets and average policies of both players after t = 1, 2 and 3; player 1 answers player 0's newest policy."""
    discounts, predictive_plus, power = VARIANTS[name]
    regrets, weights, last = np.zeros((3, 2, 3))

    def policy(player: int) -> np.ndarray:
        matched = np.maximum(regrets[player] + last[player] * predictive_plus, 0.0)
        return matched / matched.sum() if matched.sum() > 0 else np.full(3, 1 / 3)

    state = CfrState(*np.zeros((3, 6)), np.int64(0), np.int32(0))
    for t, (positive, negative) in enumerate([(1.0, 1.0), *discounts], start=1):
        state = run_updates_without_tree(_config(name), FORM, state, 1)
        for player in range(2):
            own, other = policy(player), policy(1 - player)
            q = PAYOFF @ other if player == 0 else -other @ PAYOFF
            last[player] = q - own @ q
            weights[player] += t**power * own
            before = regrets[player]
            after = positive * np.maximum(before, 0.0) + negative * np.minimum(before, 0.0) + last[player]
            regrets[player] = np.maximum(after, 0.0) if predictive_plus else after
        np.testing.assert_allclose(state.regrets, regrets.ravel(), atol=1e-12)
        np.testing.assert_allclose(state.weights, weights.ravel(), atol=1e-12)
        np.testing.assert_allclose(state.last, last.ravel(), atol=1e-12)
    assert int(state.updates) == 3


@pytest.mark.parametrize("name", VARIANTS)
def test_discounts(name: str) -> None:
    """Before iterations 2 and 3 those of their papers, by the sign of the regret; nothing comes of nothing before 1."""
    np.testing.assert_array_equal(_discounted(_config(name), np.zeros(2), 1.0), 0.0)
    for t, (positive, negative) in enumerate(VARIANTS[name][0], start=2):
        discounted = _discounted(_config(name), np.array([4.0, -4.0]), float(t))
        np.testing.assert_allclose(discounted, [4.0 * positive, -4.0 * negative])
