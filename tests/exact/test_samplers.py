"""Do whole samplers - games played, rows and weights made of them - estimate the counterfactual regrets on average?

Random games: errors are held against their own standard errors.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trajectories import baseline_at, expected_at, lanes_of, random_table
from tree_values import action_values, exact_regret_and_average, tree_of

from dream.algorithms.deep.average import plans_with
from dream.algorithms.deep.samplers import (
    CorrectionConfig,
    ExternalSampler,
    OutcomeSampler,
    Sampled,
    WeightConfig,
    _explained,
)
from dream.game_tree.tabular_policy import row_of, table_index
from dream.game_tree.tree import Tree

GAMES, BATCHES = 4096, 12
POWER_ITERATION = 2
"""Samples are of iteration 3: with power 1 they count three times."""
IN_FULL, BY_REACH = CorrectionConfig(), WeightConfig()


def _table(tree: Tree, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).uniform(0.2, 1.0, tree.legal.shape) * tree.legal
    return (rows / rows.sum(axis=1, keepdims=True)).astype(np.float32)


def _outcome(
    tree: Tree,
    table: np.ndarray,
    player: int,
    *,
    weights: WeightConfig,
    values: str,
    strategy_weights: WeightConfig = BY_REACH,
    correction: CorrectionConfig = IN_FULL,
) -> list[Sampled]:
    """Samples by self-play, the policy and the value of histories read off tables."""
    sampler = OutcomeSampler(tree.game, GAMES, GAMES, 0.5, weights, strategy_weights, correction)
    q = jnp.asarray(action_values(tree, table), jnp.float32)
    known = jax.tree.map(jnp.asarray, (table_index(tree), table, q, _history_by_sets(tree)))
    return [jax.device_get(_sampled(sampler, values, known, player, jax.random.key(n))) for n in range(BATCHES)]


@functools.partial(jax.jit, static_argnums=(0, 1))
def _sampled(sampler: OutcomeSampler, values: str, known: tuple[Any, ...], player: int, key: jax.Array) -> Sampled:
    """Samples for a player, by what is known of the tree: where sets are, the policy, values, histories of sets."""
    index, rows, q, histories = known

    def policy(view: Any, allowed: jax.Array, decider: jax.Array) -> jax.Array:
        return rows[row_of(index, view)[0]]

    def q_values(views: Any, allowed: jax.Array) -> jax.Array:
        # In Kuhn the two cards and the bets are the history; sets of both players know them.
        first, second = (row_of(index, jax.tree.map(lambda x, n=n: x[n], views)) for n in range(2))
        acting = jnp.where(first[1], first[0], second[0])
        other = jax.tree.map(lambda x: x[jnp.where(first[1], 1, 0)], views).card
        exact = q[histories[acting, other.astype(jnp.int32)]]
        return jnp.where(allowed, exact, 0.0) if values == "exact" else jnp.where(allowed, 1.5 - exact, 0.0)

    return sampler(policy, None if values == "none" else q_values, player, jnp.int32(POWER_ITERATION), key)


def _history_by_sets(tree: Tree) -> np.ndarray:
    """Returns the history of an acting player's set and the other's card: int32[I, 3] (Kuhn)."""
    root = np.arange(tree.num_histories)
    for low, high in zip(tree.levels[1:-1], tree.levels[2:], strict=True):
        root[low:high] = root[tree.parent[low:high]]
    deals, _ = tree.game.initial_outcomes()
    found = np.zeros((tree.num_infosets, 3), np.int32)
    for history in np.flatnonzero(tree.infoset >= 0):
        cards = np.asarray(deals.hands)[root[history]]
        found[tree.infoset[history], cards[1 - tree.player[history]]] = history
    return found


def _errors(tree: Tree, samples: list[Sampled], player: int, exact: np.ndarray, factor: float) -> np.ndarray:
    """Returns errors of the mean regrets in standard errors, over the player's sets: sums over games of w r."""
    index = jax.tree.map(jnp.asarray, table_index(tree))
    find = jax.jit(jax.vmap(lambda view: row_of(index, view)[0]))
    total = np.zeros((len(samples), *tree.legal.shape))
    for n, sampled in enumerate(samples):
        rows = sampled.regrets
        weighted = np.where(sampled.own[:, None], rows.weight[:, None] * rows.target, 0.0)
        np.add.at(total[n], np.asarray(find(rows.view)), weighted)
    mean, error = total.mean(axis=0) / factor, total.std(axis=0, ddof=1) / np.sqrt(len(samples)) / factor
    own = tree.legal & (tree.owner == player)[:, None]
    return ((mean - exact) / np.maximum(error, 1e-6))[own]


@pytest.mark.parametrize("values", ["none", "exact", "wrong"])
@pytest.mark.parametrize("player", [0, 1])
def test_outcome_sampling(values: str, player: int) -> None:
    """Weights t / (product of xi |A|): two actions at each of a player's earlier decisions, of which Kuhn has one."""
    tree = tree_of("kuhn_poker")
    table = _table(tree, 1)
    samples = _outcome(tree, table, player, weights=WeightConfig(), values=values)
    exact = exact_regret_and_average(tree, table, player)[0] / np.where(tree.depth > 0, 2.0, 1.0)[:, None]
    errors = _errors(tree, samples, player, exact, GAMES * (POWER_ITERATION + 1.0))
    assert np.abs(errors).max() < 5
    counters = samples[0].counters
    assert counters.episodes == GAMES
    assert counters.decisions == samples[0].own.sum() < counters.nodes
    if values == "exact":
        assert samples[0].metrics["sampling/baseline_explained_variance"] > 0.999


@pytest.mark.parametrize("correction", [IN_FULL, CorrectionConfig(0.5, 2.0), CorrectionConfig(0.0, 0.0)])
def test_what_is_reported_of_the_baseline_is_of_the_estimates_in_use(correction: CorrectionConfig) -> None:
    """Values of histories are corrected as regrets are: a wrong baseline, two decisions, by the formulas."""
    tree = tree_of("kuhn_poker")
    sampler = OutcomeSampler(tree.game, 4, 4, 0.5, WeightConfig(), correction=correction)
    policy, baseline = jnp.array([[[0.3, 0.7]], [[0.6, 0.4]]]), jnp.array([[[1.0, -2.0]], [[0.5, 3.0]]])
    drawn, action = jnp.array([[[0.4, 0.6]], [[0.6, 0.4]]]), jnp.array([[1], [0]])
    rewards, done = jnp.array([[0.0], [2.0]]), jnp.array([[False], [True]])
    values, value = sampler._estimated((policy, drawn, action, baseline, rewards, done))
    trace, clip = (1.0, np.inf) if correction.is_full else (correction.trace, correction.clip)
    bound = np.inf if correction.is_full else 1.0
    last = 2.0 - 0.5
    second = 0.6 * 0.5 + 0.4 * 3.0 + trace * min(1.0, bound) * last * (clip > 0)
    first = 0.3 * 1.0 - 0.7 * 2.0 + trace * min(0.7 / 0.6, bound) * (second + 2.0) * (clip > 0)
    expected = [[1.0, -2.0 + min(1 / 0.6, clip) * (second + 2.0)], [0.5 + min(1 / 0.6, clip) * last, 3.0]]
    np.testing.assert_allclose(values[:, 0], expected, rtol=1e-5)
    np.testing.assert_allclose(value[:, 0], [first, second], rtol=1e-5)


def test_a_perfect_baseline_explains_all_where_chance_is_enumerated() -> None:
    """Leduc, all trajectories: nothing of the estimates varies then; by sampled chance the public card does."""
    tree = tree_of("leduc_poker")
    table = random_table(tree, 5)
    lanes = lanes_of(tree, table, 0)
    numbers = lanes.policy, lanes.sampled, baseline_at("exact", tree, table, lanes, 0), lanes.rewards
    policy, drawn, baseline, rewards = (jnp.asarray(x, jnp.float32) for x in numbers)
    steps = policy, drawn, jnp.asarray(lanes.action), baseline, rewards, jnp.asarray(lanes.done)
    ahead = jnp.asarray(expected_at(tree, table, lanes, 0, action_values(tree, table)), jnp.float32)
    sampler = OutcomeSampler(tree.game, 4, 4, 0.5, WeightConfig())
    for given, least, most in ((steps, 0.0, 0.9), ((*steps, ahead), 0.9999, 1.0)):
        _, value = sampler._estimated(given)
        assert least <= _explained(given, jnp.asarray(lanes.valid), value) <= most


@pytest.mark.parametrize("player", [0, 1])
def test_external_sampling(player: int) -> None:
    """No weights but t; every own decision of a traversal counts."""
    tree = tree_of("kuhn_poker")
    table = _table(tree, 2)
    sampler = ExternalSampler(tree, GAMES, WeightConfig(importance=False))
    found = [sampler(table, player, jnp.int32(POWER_ITERATION), jax.random.key(n)) for n in range(BATCHES)]
    samples = [jax.device_get(x) for x in found]
    exact = exact_regret_and_average(tree, table, player)[0]
    errors = _errors(tree, samples, player, exact, GAMES * (POWER_ITERATION + 1.0))
    assert np.abs(errors).max() < 5


def test_clipped_weights() -> None:
    """No sample counts more than clip times t, and some would."""
    tree = tree_of("kuhn_poker")
    table = _table(tree, 3)
    free, clipped = (
        _outcome(tree, table, 0, weights=WeightConfig(clip=clip), values="none")[0] for clip in (None, 1.05)
    )
    t = POWER_ITERATION + 1.0
    assert free.regrets.weight[free.own].max() > 1.15 * t
    np.testing.assert_allclose(
        clipped.regrets.weight[clipped.own], np.minimum(free.regrets.weight[free.own], 1.05 * t), rtol=1e-6
    )


def _met(tree: Tree, table: np.ndarray, **settings: Any) -> np.ndarray:
    """Returns the mean weight of player 1's policy at its sets, over its own reach of them: float64[sets]."""
    samples = _outcome(tree, table, 0, values="none", **settings)
    index = jax.tree.map(jnp.asarray, table_index(tree))
    find = jax.jit(jax.vmap(lambda view: row_of(index, view)[0]))
    total = np.zeros(tree.num_infosets)
    for sampled in samples:
        rows = sampled.strategy
        np.add.at(total, np.asarray(find(rows.view)), np.where(sampled.others, rows.weight, 0.0))
    plan = plans_with(np.zeros(tree.legal.shape), tree, 1, table, 1.0).sum(axis=1)
    own = tree.owner == 1
    return total[own] / plan[own] / (len(samples) * GAMES)


@pytest.mark.parametrize(
    ("average", "agrees"),
    [
        (WeightConfig(), True),
        (WeightConfig(power=2.0), True),
        (WeightConfig(clip=0.9), False),
        (WeightConfig(importance=False), False),
    ],
)
def test_an_iteration_counts_in_the_average_by_its_own_reach(average: WeightConfig, agrees: bool) -> None:
    """Whoever explores and however the regrets' weights are cut; only the average's own settings may lean it."""
    tree = tree_of("kuhn_poker")
    met = [_met(tree, _table(tree, seed), weights=WeightConfig(clip=0.5), strategy_weights=average) for seed in (5, 6)]
    assert (np.abs(met[0] / met[1] - 1).max() < 0.05) == agrees


def test_moves_lead_to_what_came_after() -> None:
    """A move's next view, policy and player are the next decision's; a last move pays and leads nowhere."""
    tree = tree_of("leduc_poker")
    index, rows = jax.tree.map(jnp.asarray, table_index(tree)), jnp.asarray(_table(tree, 4))
    sampler = OutcomeSampler(tree.game, 64, 64, 0.5, WeightConfig())

    def policy(view: Any, legal: jax.Array, player: jax.Array) -> jax.Array:
        return rows[row_of(index, view)[0]]

    def values(views: Any, legal: jax.Array) -> jax.Array:
        return jnp.zeros(3)

    sampled = jax.jit(lambda key: sampler(policy, values, jnp.int32(0), jnp.int32(0), key))(jax.random.key(0))
    moves, moved, met = jax.device_get(
        jax.tree.map(lambda x: x.reshape(-1, 64, *x.shape[1:]), (sampled.moves, sampled.moved, sampled.strategy))
    )
    going, last = moved & ~moves.done, moved & moves.done
    assert not np.any(moves.reward[going])
    assert np.any(moves.reward[last])
    np.testing.assert_array_equal(last.sum(axis=0), 1)
    after = np.roll(going, 1, axis=0)  # a lane's next row
    assert np.all(moved[after])
    for following, own in (
        *zip(moves.next_views, moves.views, strict=True),
        (moves.next_legal, moves.legal),
        (moves.next_player, met.view.seat),
        (moves.next_policy, met.target),
    ):
        np.testing.assert_array_equal(following[going], own[after])
    seen = jax.tree.map(lambda x: x[after], met.view)
    np.testing.assert_allclose(met.target[after], rows[jax.vmap(lambda view: row_of(index, view)[0])(seen)])
    turned = going & (moves.views.public[..., 0] == 255) & (moves.next_views.public[..., 0] != 255)
    assert turned.any(), "no move led through the public card"
