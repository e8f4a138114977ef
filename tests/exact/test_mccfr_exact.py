"""Does Monte Carlo CFR estimate, over all its draws, exactly what CFR computes? And what variance do baselines leave?

A traversal is a function of its uniform draws. Where every probability is a multiple of 1/n the middles of n equal
cells stand for all draws, so the mean over their grid is the exact expectation.
"""

from __future__ import annotations

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tree_values import action_values, exact_regret_and_average, history_values, tree_of

import envs
from dream import algorithms
from dream.algorithms.tabular.mccfr import ExternalConfig, MccfrState, OutcomeConfig, learn, scheme_of
from dream.equations.regret_matching import regret_matching
from dream.game_tree.sampling import Visits, sampling_tree, traverse
from dream.game_tree.tree import Tree
from envs import InputError

Config = ExternalConfig | OutcomeConfig
SAMPLERS = {"external": (ExternalConfig, {}), "outcome": (OutcomeConfig, {"exploration": 0.5})}
BASELINES = ("none", "average", "history", "exact")
CELLS = 8
"""Policies are multiples of 1/4; with exploration 0.5 among two actions, what is drawn from are multiples of 1/8."""
LEDUC_DRAWS = 12
"""The deal, eight actions, and the public card after the second, third and fourth of them, if it falls then."""
CARDS = 30 * 4**3


def quarters(tree: Tree, seed: int) -> np.ndarray:
    """Returns random regrets whose policy holds multiples of 1/4, zeros and ones among them: float64[I, A]."""
    rng, regrets = np.random.default_rng(seed), np.zeros(tree.legal.shape)
    for i, legal in enumerate(tree.legal):
        np.add.at(regrets[i], rng.choice(np.flatnonzero(legal), 4), 1.0)
    return regrets


def pure(tree: Tree, seed: int) -> np.ndarray:
    """Returns regrets of a random policy without randomness."""
    rng = np.random.default_rng(seed)
    return np.eye(tree.game.num_actions)[[rng.choice(np.flatnonzero(legal)) for legal in tree.legal]]


def policy_of(tree: Tree, regrets: np.ndarray) -> np.ndarray:
    """Returns the table that regrets stand for."""
    with jax.enable_x64(True):
        return np.asarray(regret_matching(jnp.asarray(regrets), tree.legal))


def baseline_of(tree: Tree, kind: str, table: np.ndarray, seed: int) -> tuple[str, np.ndarray]:
    """Returns the setting and a baseline: "exact" is by history and right, the others are wrong by several payoffs."""
    rng = np.random.default_rng(seed + 100)
    if kind == "average":
        return kind, rng.normal(0.5, 3.0, tree.legal.shape) * tree.legal
    if kind == "history":
        return kind, np.append(rng.normal(0.5, 3.0, tree.num_histories), 0.0)
    if kind == "exact":
        return "history", np.append(history_values(tree, table), 0.0)
    return kind, np.zeros(1)


def sampled(
    tree: Tree,
    config: Config,
    regrets: np.ndarray,
    baseline: np.ndarray,
    player: int,
    draws: np.ndarray,
    updates: int = 0,
) -> tuple[MccfrState, list[Visits]]:
    """Returns the state after one player's batch of traversals, begun without an average, and what they met."""
    zeros = np.zeros_like(regrets)
    with jax.enable_x64(True):
        state = MccfrState(regrets, zeros, baseline, np.zeros(3, np.int64), np.int64(updates), None, np.int32(0))
        state, levels = _run(config, sampling_tree(tree), jax.tree.map(jnp.asarray, state), player, jnp.asarray(draws))
        return jax.device_get((state, levels))


@functools.partial(jax.jit, static_argnums=(0, 3))
def _run(config: Config, tree: object, state: MccfrState, player: int, draws: jax.Array) -> tuple:
    levels = traverse(scheme_of(config), tree, state.regrets, state.baseline, player, draws)
    return learn(config, tree, state, levels, player), levels


def kuhn_grid(cells: int = CELLS) -> np.ndarray:
    """Returns all draws of a traversal of Kuhn poker: the deal and three actions, float64[4, lanes]."""
    axes = [(np.arange(n) + 0.5) / n for n in (6, cells, cells, cells)]
    return np.stack([x.reshape(-1) for x in np.meshgrid(*axes, indexing="ij")])


@pytest.mark.parametrize("player", range(2))
@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_expectation_is_what_cfr_computes(sampler: str, baseline: str, player: int) -> None:
    """E over all trajectories of Kuhn: regret of the own sets, realisation plan of the opponent's; any baseline."""
    tree, grid = tree_of("kuhn_poker"), kuhn_grid()
    make, extra = SAMPLERS[sampler]
    for seed in range(4):
        regrets = quarters(tree, seed)
        table = policy_of(tree, regrets)
        kind, values = baseline_of(tree, baseline, table, seed)
        config = make(batch=grid.shape[1], baseline=kind, **extra)
        state, _ = sampled(tree, config, regrets, values, player, grid)
        regret, average = exact_regret_and_average(tree, table, player)
        np.testing.assert_allclose(state.regrets - regrets, regret, atol=1e-12)
        np.testing.assert_allclose(state.weights, average, atol=1e-12)


@pytest.mark.parametrize(("exploration", "cells", "player"), [(0.25, 16, 0), (1.0, 4, 0), (1.0, 4, 1)])
def test_any_exploration_is_unbiased(exploration: float, cells: int, player: int) -> None:
    """With little of it and when nothing but it decides; without baseline."""
    tree, grid = tree_of("kuhn_poker"), kuhn_grid(cells)
    regrets = quarters(tree, 7)
    config = OutcomeConfig(batch=grid.shape[1], exploration=exploration)
    state, _ = sampled(tree, config, regrets, np.zeros(1), player, grid)
    regret, average = exact_regret_and_average(tree, policy_of(tree, regrets), player)
    np.testing.assert_allclose(state.regrets - regrets, regret, atol=1e-12)
    np.testing.assert_allclose(state.weights, average, atol=1e-12)


@pytest.mark.parametrize(
    ("baseline", "player"), [("none", 0), ("history", 0), ("history", 1), ("exact", 0), ("exact", 1)]
)
def test_expectation_over_all_cards_of_leduc(baseline: str, player: int) -> None:
    """External sampling against an opponent without randomness: 30 deals, 4 public cards at each of three levels."""
    tree, cards = tree_of("leduc_poker"), (30, 4, 4, 4)
    grid = np.stack(np.meshgrid(*[(np.arange(n) + 0.5) / n for n in cards], indexing="ij")).reshape(4, -1)
    assert grid.shape[1] == CARDS
    draws = np.full((LEDUC_DRAWS, CARDS), 0.5)
    draws[[0, 3, 5, 7]] = grid
    for seed in range(2):
        regrets = pure(tree, seed)
        table = policy_of(tree, regrets)
        kind, values = baseline_of(tree, baseline, table, seed)
        state, _ = sampled(tree, ExternalConfig(batch=CARDS, baseline=kind), regrets, values, player, draws)
        regret, average = exact_regret_and_average(tree, table, player)
        np.testing.assert_allclose(state.regrets - regrets, regret, atol=1e-12)
        np.testing.assert_allclose(state.weights, average, atol=1e-12)


def own_samples(levels: list[Visits]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the set int[n] and the regret samples float64[n, A] of every own history met."""
    sets, samples = [], []
    for met in levels:
        value = np.sum(met.policy * met.values, axis=2, keepdims=True)
        rows = np.where(met.legal, met.weight[:, :, None] * (met.values - value), 0.0)
        sets.append(met.infoset[met.own])
        samples.append(rows[met.own])
    return np.concatenate(sets), np.concatenate(samples)


def test_average_weighs_later_updates_more() -> None:
    """The policy of update t enters with t^power: 9 times as much in the third with power 2."""
    tree, draws = tree_of("kuhn_poker"), np.random.default_rng(0).random((4, 5))
    regrets, config = quarters(tree, 2), ExternalConfig(batch=5, average_power=2.0)
    first, third = (sampled(tree, config, regrets, np.zeros(1), 0, draws, updates)[0] for updates in (0, 2))
    assert first.weights.any()
    np.testing.assert_allclose(third.weights, 9 * first.weights)
    np.testing.assert_allclose(third.regrets, first.regrets)


def chance_to_meet(tree: Tree, played: np.ndarray) -> np.ndarray:
    """Returns the probability that a game in which everybody plays a table meets each information set: float64[I]."""
    reach = tree.chance.copy()
    for low, high in itertools.pairwise(tree.levels[1:]):
        up = tree.parent[low:high]
        reach[low:high] *= reach[up] / tree.chance[up] * played[tree.infoset[up], tree.action[low:high]]
    playing = tree.infoset >= 0
    return np.bincount(tree.infoset[playing], reach[playing])


@pytest.mark.parametrize("baseline", ["none", "history"])
def test_outcome_sampling_of_leduc_within_standard_errors(baseline: str) -> None:
    """Random draws and policies: the errors of all regrets to be met often are, in standard errors, those of chance."""
    tree, batches = tree_of("leduc_poker"), 100
    rng, regrets = np.random.default_rng(3), np.random.default_rng(5).uniform(0.2, 1.0, tree.legal.shape) * tree.legal
    table, count = policy_of(tree, regrets), CARDS * batches
    kind, values = baseline_of(tree, baseline, table, 0)
    config = OutcomeConfig(batch=CARDS, baseline=kind, exploration=0.5)
    mean, square = np.zeros_like(table), np.zeros_like(table)
    for _ in range(batches):
        _, levels = sampled(tree, config, regrets, values / 3, 0, rng.random((LEDUC_DRAWS, CARDS)))
        sets, rows = own_samples(levels)
        np.add.at(mean, sets, rows / count)
        np.add.at(square, sets, rows**2 / count)
    explored = np.where(tree.owner[:, None] == 0, 0.5 * tree.uniform() + 0.5 * table, table)
    often = tree.legal & (tree.owner[:, None] == 0) & (count * chance_to_meet(tree, explored) > 200)[:, None]
    error = np.sqrt((square - mean**2) / count)[often]
    errors = (mean - exact_regret_and_average(tree, table, 0)[0])[often] / error
    assert len(errors) > 500
    assert np.abs(errors).max() < 4.5
    assert 0.9 < np.sqrt(np.mean(errors**2)) < 1.1


@pytest.mark.parametrize(
    ("sampler", "name"), [("external", "kuhn_poker"), ("external", "leduc_poker"), ("outcome", "leduc_poker")]
)
def test_exact_baseline_by_history_leaves_no_variance_in_values(sampler: str, name: str) -> None:
    """Every estimate at every history met is the exact value, chance's later cards included."""
    tree = tree_of(name)
    make, extra = SAMPLERS[sampler]
    regrets = quarters(tree, 1)
    table = policy_of(tree, regrets)
    kind, values = baseline_of(tree, "exact", table, 0)
    q = action_values(tree, table)
    draws = np.random.default_rng(0).random((LEDUC_DRAWS if name == "leduc_poker" else 4, CARDS))
    for player, sign in enumerate((1.0, -1.0)):
        _, levels = sampled(tree, make(batch=CARDS, baseline=kind, **extra), regrets, values, player, draws)
        for met in levels:
            np.testing.assert_allclose(met.values, np.where(met.legal, sign * q[met.history], 0.0), atol=1e-12)


def total_variance(tree: Tree, config: Config, regrets: np.ndarray, baseline: np.ndarray, draws: np.ndarray) -> float:
    """Returns the variance of one traversal's regrets, summed over sets and actions and both players."""
    total = 0.0
    for player in range(2):
        _, levels = sampled(tree, config, regrets, baseline, player, draws)
        _, rows = own_samples(levels)
        mean = exact_regret_and_average(tree, policy_of(tree, regrets), player)[0]
        total += np.sum(rows**2) / draws.shape[1] - np.sum(mean**2)
    return total


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_better_baselines_leave_less_variance(sampler: str) -> None:
    """Exactly, on Kuhn: none > exact means by information set > exact values by history; a wrong one is worse."""
    tree, grid = tree_of("kuhn_poker"), kuhn_grid()
    make, extra = SAMPLERS[sampler]
    regrets = quarters(tree, 3)
    table = policy_of(tree, regrets)
    q, playing = action_values(tree, table), np.flatnonzero(tree.infoset >= 0)
    sign = 1.0 - 2.0 * tree.player[playing, None]
    mean = np.zeros_like(table)
    np.add.at(mean, tree.infoset[playing], sign * q[playing])
    mean /= np.bincount(tree.infoset[playing])[:, None]
    baselines = {
        "none": ("none", np.zeros(1)),
        "wrong": baseline_of(tree, "average", table, 0),
        "average": ("average", mean),
        "history": baseline_of(tree, "exact", table, 0),
    }
    left = {
        name: total_variance(tree, make(batch=grid.shape[1], baseline=kind, **extra), regrets, values, grid)
        for name, (kind, values) in baselines.items()
    }
    assert left["history"] < left["average"] < left["none"] < left["wrong"]


@pytest.mark.parametrize(("sampler", "kind"), [("external", "history"), ("outcome", "average")])
def test_baseline_moves_as_by_one_step_a_sample(sampler: str, kind: str) -> None:
    """Samples, n of them, move it by 1 - (1 - rate)^n of the way to their mean; what was not followed stays."""
    tree, rng = tree_of("kuhn_poker"), np.random.default_rng(0)
    make, extra = SAMPLERS[sampler]
    before = rng.normal(size=tree.legal.shape if kind == "average" else tree.num_histories + 1)
    config = make(batch=5, baseline=kind, baseline_rate=0.3, **extra)
    for player in range(2):
        state, levels = sampled(tree, config, quarters(tree, 2), before, player, rng.random((4, 5)))
        seen: dict[tuple[int, ...], list[float]] = {}
        for met in levels:
            for lane, place, action in zip(*np.nonzero(met.followed), strict=True):
                own, below = met.own[lane, place], met.below[lane, place, action]
                if kind == "average":
                    seen.setdefault((met.infoset[lane, place], action), []).append(below if own else -below)
                else:
                    seen.setdefault((met.child[lane, place, action],), []).append(below if player == 0 else -below)
        expected = before.copy()
        for place, samples in seen.items():
            expected[place] += (1 - 0.7 ** len(samples)) * (np.mean(samples) - before[place])
        np.testing.assert_allclose(state.baseline, expected, atol=1e-12)
        assert max(map(len, seen.values())) > 1


VR_PLUS = {"name": "outcome_mccfr", "batch": 8, "baseline": "average", "plus": True, "average_power": 1.0}


@pytest.mark.parametrize(
    ("setting", "low", "high"),
    [({"name": "external_mccfr", "batch": 8}, (2, 5, 9), (3, 7, 12)), (VR_PLUS, (2, 4, 6), (3, 6, 8))],
)
def test_counters_count_what_was_met(setting: dict, low: tuple[int, ...], high: tuple[int, ...]) -> None:
    """Own decisions, everybody's, all histories: between what the shortest and the longest games of Kuhn have."""
    algorithm = algorithms.make({**setting, "trajectories": 48}, {}, envs.make("kuhn_poker"))
    state, metrics = algorithm.iterate(algorithm.init(jax.random.key(0)))
    counted = metrics["decisions"], metrics["nodes"], metrics["transitions"]
    assert (int(state.updates), int(state.iteration), metrics["episodes"]) == (6, 1, 96)
    assert counted == tuple(state.counts.tolist())
    assert all(48 * least <= n <= 48 * most for least, n, most in zip(low, counted, high, strict=True))
    assert counted[1] < counted[2]


def test_iterations_split_anywhere() -> None:
    """The draws hang on the update alone: one iteration of six updates is three of two, bit for bit."""
    game, states = envs.make("kuhn_poker"), []
    for trajectories, iterations in ((48, 1), (16, 3)):
        algorithm = algorithms.make({**VR_PLUS, "trajectories": trajectories}, {}, game)
        state = algorithm.init(jax.random.key(4))
        for _ in range(iterations):
            state, _ = algorithm.iterate(state)
        states.append(state)
    for name in ("regrets", "weights", "baseline", "counts", "updates"):
        np.testing.assert_array_equal(getattr(states[0], name), getattr(states[1], name))
    assert states[0].regrets.min() == 0.0


def test_batch_must_divide_the_trajectories() -> None:
    """One clear line otherwise."""
    with pytest.raises(InputError, match=r"algo\.trajectories=100 .* multiple of algo\.batch=64"):
        algorithms.make({"name": "external_mccfr", "trajectories": 100}, {}, envs.make("kuhn_poker"))
