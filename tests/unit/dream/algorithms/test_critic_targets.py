"""What a critic of histories teaches dueling DREAM and MMD, on the coin game: exact advantages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from dream_support import CoinGame, coin_trees, exact_action_values, nodes

import envs
from dream import algorithms
from dream.algorithms.dueling_dream.loss import with_targets
from dream.algorithms.types import Resources
from dream.networks.layers import POLICY
from envs import InputError, uniform_policy

NETWORK = {"name": "dueling", "hidden": [16, 8]}
SELF_PLAY = {
    "episodes_per_iteration": 512, "batch_size": 64, "epochs": 3, "discount": 1.0, "gae_lambda": 0.0,
    "shaping": {"scale": {"start": 0.0, "end": 0.0}, "tie_penalty": 0.0}, "advantage": "expected_sarsa",
    "critic": {"steps": 300, "batch_size": 128, "learning_rate": 5e-3, "capacity": 4000},
}  # fmt: skip
DUELING_DREAM = {**SELF_PLAY, "name": "dueling_dream", "unit": "reward", "accumulate": "mirror_descent"}
MMD = {**SELF_PLAY, "name": "mmd", "objective": "mirror_step", "advantage_unit": "reward", "correction_clip": 0.0}
EXPLORED = {
    "critic": {"steps": 1, "batch_size": 16}, "gae_lambda": 1.0, "correction_clip": 1e6,
    "episodes_per_iteration": 20_000, "exploration": 0.6,
}  # fmt: skip


class Explored(NamedTuple):
    """What is learned from explored games, by decision: information set, policy, weight, advantages."""

    keys: np.ndarray
    policies: np.ndarray
    weights: np.ndarray
    advantages: np.ndarray


def _rows(learner: Any, state: Any) -> Any:
    """Returns the examples of the games that one iteration plays."""
    replay = learner.generate(*learner.play_arguments(state))[0].replay
    return jax.device_get(jax.tree.map(lambda x: x[replay.index[: int(replay.count)]], replay.rows))


def _keys(rows: Any) -> np.ndarray:
    """Returns the information set of each row, as text."""
    return np.array([b"".join(np.asarray(x[n]).tobytes() for x in rows.view).hex() for n in range(len(rows.action))])


def test_targets_of_dueling_dream_are_exact_under_uniform_play() -> None:
    """Their mean in each information set is Q - V, of actions taken or not, and the value's is V."""
    algorithm = algorithms.make(
        {**DUELING_DREAM, "uniform_iterations": 9}, {"name": "dueling", "hidden": [32, 32]}, CoinGame()
    )
    learner, state = algorithm.iterate.__self__, algorithm.init(jax.random.key(0))
    for _ in range(3):
        state, metrics = algorithm.iterate(state)
        assert metrics["gradient_steps"] == 300 + DUELING_DREAM["epochs"]
    rows, trees = _rows(learner, state), coin_trees(CoinGame())
    batch = with_targets(learner.parts, state.params, state.target, rows)
    np.testing.assert_array_equal(batch.targets, rows.advantages)
    uniform = {node.key: node.legal / node.legal.sum() for tree in trees for node in nodes(tree)}
    q, _ = exact_action_values(trees, uniform, 1.0)
    keys = _keys(rows)
    for key, values in q.items():
        here = keys == key.hex()
        exact = np.where(np.isfinite(values), values - np.nansum(uniform[key] * values), 0.0)
        np.testing.assert_allclose(rows.advantages[here].mean(axis=0), exact, atol=0.1)
        assert rows.value_target[here].mean() == pytest.approx(np.nansum(uniform[key] * values), abs=0.1)
    assert max(np.nanmax(values) - np.nanmin(values) for values in q.values()) > 0.5


def _explored_by_dueling_dream() -> Explored:
    settings = {**DUELING_DREAM, **EXPLORED, "uniform_iterations": 0, "correct_exploration": True}
    algorithm = algorithms.make(settings, NETWORK, CoinGame())
    state = algorithm.init(jax.random.key(2))
    head = jax.tree.map(lambda x: 1000.0 * x, state.params[POLICY])
    rows = _rows(algorithm.iterate.__self__, state._replace(target=state.target | {POLICY: head}))
    return Explored(_keys(rows), rows.policy, rows.weight, rows.advantages)


def _explored_by_mmd() -> Explored:
    algorithm = algorithms.make({**MMD, **EXPLORED}, NETWORK, CoinGame())
    state = algorithm.init(jax.random.key(2))
    head = jax.tree.map(lambda x: 20.0 * x, state.params["advantages"])
    rows = _rows(algorithm.iterate.__self__, state._replace(params=state.params | {"advantages": head}))
    return Explored(_keys(rows), rows.played.policy, rows.played.weight, rows.played.advantages)


@pytest.mark.parametrize("explored", [_explored_by_dueling_dream, _explored_by_mmd])
def test_explored_games_give_the_advantages_of_the_policy(explored: Callable[[], Explored]) -> None:
    """A poor critic, lambda 1, no bound: means weighted as in the loss are the exact Q - V of the policy."""
    keys, policies, all_weights, advantages = explored()
    policy = {bytes.fromhex(key): policies[keys == key][0].astype(np.float64) for key in np.unique(keys)}
    q, _ = exact_action_values(coin_trees(CoinGame()), policy, 1.0)
    assert policy.keys() == q.keys()
    assert max(pi.max() for pi in policy.values()) > 0.7
    assert np.ptp(all_weights) > 1
    for key, values in q.items():
        here = keys == key.hex()
        weights, samples = all_weights[here, None].astype(np.float64), advantages[here].astype(np.float64)
        mean = np.sum(weights * samples, axis=0) / weights.sum()
        error = np.sqrt(np.sum(weights**2 * (samples - mean) ** 2, axis=0)) / weights.sum()
        # The critic's V is off by the same for all actions.
        mean, error = (x + sign * np.sum(policy[key] * x) for x, sign in ((mean, -1.0), (error, 1.0)))
        mean *= np.isfinite(values)
        exact = np.where(np.isfinite(values), values - np.nansum(policy[key] * values), 0.0)
        assert np.all(np.abs(mean - exact) < 5 * error + 2e-3), (key, mean, exact, error)


def test_explored_values_are_the_policys() -> None:
    """With a fitted critic the value's targets have the mean V of the policy, not of what was drawn."""
    algorithm = algorithms.make({**MMD, "exploration": 0.6, "learning_rate": 1e-9}, NETWORK, CoinGame())
    learner, state = algorithm.iterate.__self__, algorithm.init(jax.random.key(2))
    head = jax.tree.map(lambda x: 20.0 * x, state.params["advantages"])
    state = state._replace(params=state.params | {"advantages": head})
    for _ in range(3):
        state, _ = algorithm.iterate(state)
    rows = _rows(learner, state)
    keys, trees = _keys(rows), coin_trees(CoinGame())
    policy = {bytes.fromhex(key): rows.played.policy[keys == key][0].astype(np.float64) for key in np.unique(keys)}
    mixed = {node.key: 0.4 * policy[node.key] + 0.6 * node.legal / node.legal.sum() for t in trees for node in nodes(t)}
    q, drawn_apart = exact_action_values(trees, policy, 1.0)[0], []
    for key, values in q.items():
        here = keys == key.hex()
        weights = rows.played.weight[here].astype(np.float64)
        found, exact = np.sum(weights * rows.returns[here]) / weights.sum(), np.nansum(policy[key] * values)
        drawn_apart.append(abs(np.nansum(mixed[key] * values) - exact))
        assert found == pytest.approx(exact, abs=0.1)
    assert max(drawn_apart) > 0.25, "returns of explored actions would be seen"


def test_optimism_adds_the_lead_over_the_slow_copy() -> None:
    """A + m (A - A_slow) of all actions, to both players, A_slow by the average of the critic's parameters."""
    still = {**SELF_PLAY["critic"], "steps": 1, "learning_rate": 1e-12}
    plain, optimistic = (
        algorithms.make({**MMD, "critic": still, **more}, NETWORK, CoinGame())
        for more in ({}, {"optimism": 3.0, "slow_tau": 0.25})
    )
    state, other = (plain.init(jax.random.key(n)) for n in (0, 1))
    values = state.values

    def advantages(algorithm: Any, values: Any) -> np.ndarray:
        rows = _rows(algorithm.iterate.__self__, state._replace(values=values))
        return rows.played.advantages

    moved = jax.tree.map(lambda old, new: 0.75 * old + 0.25 * new, other.values.params, values.params)
    here, slow = advantages(plain, values), advantages(plain, values._replace(params=moved))
    found = advantages(optimistic, values._replace(slow=other.values.params))
    assert np.abs(here - slow).max() > 0.01
    np.testing.assert_allclose(found, here + 3.0 * (here - slow), atol=1e-5)
    np.testing.assert_allclose(advantages(optimistic, values._replace(slow=values.params)), here, atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shaping": {"scale": {"start": 0.5, "end": 0.5}, "tie_penalty": 0.0}}, r"algo\.shaping\.scale must be 0"),
        ({"shaping": {"tie_penalty": -1.0, "scale": {"start": 0.0, "end": 0.0}}}, "tie_penalty must be 0"),
        ({"critic": {"chance": "exact"}}, r"algo\.critic\.chance must be sampled"),
        ({"opponents": ["random"]}, r"algo\.opponents must be \[self\]"),
        ({"discount": 0.99}, r"algo\.discount must be 1, as its targets have none; is 0\.99"),
    ],
)
def test_a_critic_needs_zero_sum_self_play(changes: dict[str, Any], message: str) -> None:
    """Anything else is refused in one line."""
    with pytest.raises(InputError, match=message):
        algorithms.make(
            {**DUELING_DREAM, **changes}, NETWORK, CoinGame(), Resources(find_player=lambda *_: uniform_policy())
        )


def test_a_critic_needs_a_zero_sum_game() -> None:
    """It reads player 0's rewards alone."""
    game = envs.make("rummy500", num_players=2, rewards="points")
    with pytest.raises(InputError, match="rummy500 is not zero-sum with these rules"):
        algorithms.make(DUELING_DREAM, NETWORK, game)
