"""Do the estimators of sampled regrets, over all trajectories of a game, average to exactly the counterfactual regrets?

Every history that ends a game is one lane, weighted by the probability that outcome sampling plays it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trajectories import Lanes, baseline_at, expected, expected_at, lanes_of, random_table, wrong_values
from tree_values import action_values, exact_regret_and_average, tree_of

from dream.equations import estimators

GAMES = ("kuhn_poker", "leduc_poker")


@functools.partial(jax.jit, static_argnums=(0, 1))
def estimated(
    corrected: Callable, reach: Callable, lanes: Lanes, baseline: jax.Array, ahead: jax.Array | None
) -> tuple[jax.Array, ...]:
    """Returns u(h, a), regrets and both kinds of reach of every step, by the functions given."""
    by_lane = functools.partial(jax.vmap, in_axes=1, out_axes=1)
    steps = (lanes.policy, lanes.sampled, lanes.action, baseline, lanes.rewards, lanes.done)
    values, _ = by_lane(corrected)(*steps, *(() if ahead is None else (ahead,)))
    drawn = jnp.take_along_axis(lanes.sampled, lanes.action[..., None], axis=-1)[..., 0]
    plain = by_lane(reach)(drawn, lanes.own, lanes.done)
    relative = by_lane(reach)(drawn * jnp.sum(lanes.legal, axis=-1), lanes.own, lanes.done)
    return values, estimators.regrets(values, lanes.policy, lanes.legal), plain, relative


def run(
    lanes: Lanes, baseline: np.ndarray, corrected: Callable, reach: Callable, ahead: np.ndarray | None = None
) -> tuple[np.ndarray, ...]:
    """Runs the estimators in float64."""
    with jax.enable_x64(True):
        given = jax.tree.map(jnp.asarray, (lanes, baseline, ahead))
        return jax.device_get(estimated(corrected, reach, *given))


def check(
    name: str, player: int, kind: str,
    corrected: Callable = estimators.corrected_values, reach: Callable = estimators.sampling_reach,
    chance: bool = False,
) -> None:  # fmt: skip
    """Asserts that expected weighted regrets are the counterfactual ones, with both kinds of weights."""
    tree = tree_of(name)
    table = random_table(tree, 3)
    lanes = lanes_of(tree, table, player)
    np.testing.assert_allclose(lanes.chance.sum(), 1.0)
    baseline = baseline_at(kind, tree, table, lanes, player)
    ahead = expected_at(tree, table, lanes, player, wrong_values(tree)) if chance else None
    _, regrets, plain, relative = run(lanes, baseline, corrected, reach, ahead)
    exact = exact_regret_and_average(tree, table, player)[0]
    np.testing.assert_allclose(expected(tree, lanes, regrets, 1 / plain), exact, atol=1e-6)
    choices = np.ones(len(exact))
    np.put(choices, lanes.infoset[lanes.own], (relative / plain)[lanes.own])
    np.testing.assert_allclose(choices[:, None] * expected(tree, lanes, regrets, 1 / relative), exact, atol=1e-6)


@pytest.mark.parametrize("kind", ["none", "wrong", "exact"])
@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("name", GAMES)
def test_expected_regrets_are_the_counterfactual_ones(name: str, player: int, kind: str) -> None:
    """For any baseline, with weights 1 / reach, and up to the number of choices on the way with |A| in them."""
    check(name, player, kind)


@pytest.mark.parametrize("player", [0, 1])
def test_a_baseline_of_chance_moves_no_expectation(player: int) -> None:
    """Leduc's public card, covered by a baseline that is wrong."""
    check("leduc_poker", player, "wrong", chance=True)


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("name", GAMES)
def test_exact_baseline_leaves_no_variance(name: str, player: int) -> None:
    """Every estimate is the exact value: in Kuhn anyway, in Leduc where the baseline covers the public card too."""
    tree = tree_of(name)
    table = random_table(tree, 5)
    lanes = lanes_of(tree, table, player)
    exact = baseline_at("exact", tree, table, lanes, player)
    sign = 1.0 if player == 0 else -1.0
    ahead = expected_at(tree, table, lanes, player, sign * action_values(tree, table))
    functions = (estimators.corrected_values, estimators.sampling_reach)
    covered, sampled = (np.abs(run(lanes, exact, *functions, x)[0] - exact)[lanes.valid].max() for x in (ahead, None))
    assert covered < 1e-12
    assert sampled < 1e-12 if name == "kuhn_poker" else sampled > 1.0


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("name", GAMES)
def test_regrets_read_off_exact_values_need_no_weights(name: str, player: int) -> None:
    """Their expectation is the counterfactual regret times the player's own reach under the fixed sampling policy."""
    tree = tree_of(name)
    table = random_table(tree, 9)
    lanes = lanes_of(tree, table, player)
    q = baseline_at("exact", tree, table, lanes, player)
    rows = estimators.regrets(jnp.asarray(q), jnp.asarray(lanes.policy), jnp.asarray(lanes.legal))
    plain = run(lanes, q, estimators.corrected_values, estimators.sampling_reach)[2]
    reach = np.ones(len(tree.legal))
    np.put(reach, lanes.infoset[lanes.own], plain[lanes.own])
    exact = exact_regret_and_average(tree, table, player)[0]
    found = expected(tree, lanes, np.asarray(rows, float), np.ones_like(plain))
    np.testing.assert_allclose(found, reach[:, None] * exact, atol=1e-5)


def _flipped(policy: jax.Array, sampled: jax.Array, action: jax.Array, baseline: jax.Array, *rest: jax.Array) -> tuple:
    """The baseline's sign is wrong where it is taken off."""
    values, value = estimators.corrected_values(policy, sampled, action, baseline, *rest)
    taken = jax.nn.one_hot(action, policy.shape[-1], dtype=bool)
    return jnp.where(taken, values + 2 * baseline / sampled, values), value


def _on_policy(policy: jax.Array, sampled: jax.Array, *rest: jax.Array) -> tuple:
    """Divides by the policy instead of what the action was drawn from."""
    return estimators.corrected_values(policy, jnp.maximum(policy, 1e-3), *rest)


def _one_late(factors: jax.Array, own: jax.Array, done: jax.Array) -> jax.Array:
    """The decision's own factor is in its weight."""
    return estimators.sampling_reach(factors, own, done) * jnp.where(own, factors, 1.0)


def _stale(factors: jax.Array, own: jax.Array, done: jax.Array) -> jax.Array:
    """The newest of the earlier decisions is left out."""
    reach = estimators.sampling_reach(factors, own, done)
    return jnp.concatenate([reach[:2], reach[:-2]])


def _everybody(factors: jax.Array, own: jax.Array, done: jax.Array) -> jax.Array:
    """The opponent's decisions are counted too."""
    return estimators.sampling_reach(factors, jnp.ones_like(own), done)


@pytest.mark.parametrize(
    "fault",
    [
        {"corrected": _flipped},
        {"corrected": _on_policy},
        {"reach": _one_late},
        {"reach": _stale},
        {"reach": _everybody},
    ],
    ids=["sign", "wrong denominator", "off by one", "stale reach", "opponent's reach"],
)
def test_planted_faults_are_found(fault: dict[str, Callable]) -> None:
    """Each of them breaks the exact expectation."""
    with pytest.raises(AssertionError):
        check("leduc_poker", 1, "wrong", **fault)


def test_a_missing_mask_is_found() -> None:
    """Regrets of illegal actions would be their value's absence, not 0."""
    values, policy = jnp.array([1.0, -2.0, 4.0]), jnp.array([0.5, 0.5, 0.0])
    legal = jnp.array([True, True, False])
    np.testing.assert_allclose(estimators.regrets(values, policy, legal), [1.5, -1.5, 0.0])
    assert estimators.regrets(values, policy, jnp.ones(3, bool))[2] != 0.0


def test_games_in_one_lane_do_not_touch() -> None:
    """Values and reach start anew after a game's end."""
    one = jnp.array([[0.5, 0.5], [0.25, 0.75]])
    action, rewards, done = jnp.array([1, 0]), jnp.array([0.0, 2.0]), jnp.array([False, True])
    own, zeros = jnp.array([True, True]), jnp.zeros((2, 2))
    single = estimators.corrected_values(one, one, action, zeros, rewards, done)[0]

    def twice(x: jax.Array) -> jax.Array:
        return jnp.concatenate([x, x])

    double = estimators.corrected_values(*map(twice, (one, one, action, zeros, rewards, done)))[0]
    np.testing.assert_allclose(double, twice(single))
    reach = estimators.sampling_reach(twice(jnp.array([0.5, 0.25])), twice(own), twice(done))
    np.testing.assert_allclose(reach, [1.0, 0.5, 1.0, 0.5])
    np.testing.assert_allclose(single, [[0.0, 4.0], [8.0, 0.0]])
