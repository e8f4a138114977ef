"""Traced estimates over all trajectories of a game: exact on average at one end, elsewhere biased as computed."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trajectories import Lanes, baseline_at, expected, expected_at, lanes_of, random_table, traced_regrets, wrong_values
from tree_values import action_values, exact_regret_and_average, tree_of

from dream.equations import estimators
from dream.game_tree.tree import Tree

UNIFORM = 1.0
"""The exploration at which own actions are sampled uniformly."""
SETTINGS = [(1.0, None), (1.0, 1.5), (0.9, 11.0), (0.5, None), (0.0, 2.0), (0.7, 0.0), (0.0, 0.0)]


def estimated(
    lanes: Lanes, baseline: np.ndarray, trace: float, clip: float | None, ahead: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Returns (regrets, own sampling reach) of every step of every trajectory, in float64."""

    def one(*lane: jax.Array) -> jax.Array:
        return estimators.traced_values(*lane[:6], trace, clip, *lane[6:])[0]

    with jax.enable_x64(True):
        steps = (lanes.policy, lanes.sampled, lanes.action, baseline, lanes.rewards, lanes.done)
        given = [jnp.asarray(x) for x in (*steps, *(() if ahead is None else (ahead,)))]
        values = jax.vmap(one, in_axes=1, out_axes=1)(*given)
        regrets = estimators.regrets(values, lanes.policy, lanes.legal)
        drawn = np.take_along_axis(lanes.sampled, lanes.action[..., None], axis=-1)[..., 0]
        reach = jax.vmap(estimators.sampling_reach, in_axes=1, out_axes=1)(jnp.asarray(drawn), lanes.own, lanes.done)
        return np.asarray(regrets), np.asarray(reach)


def mean_regrets(
    tree: Tree, table: np.ndarray, player: int, baseline: np.ndarray, trace: float, clip: float | None,
    exploration: float, *, chance: bool = False,
) -> np.ndarray:  # fmt: skip
    """Returns the expectation over all trajectories of the weighted regrets: float64[I, A]."""
    lanes = lanes_of(tree, table, player, exploration)
    np.testing.assert_allclose(lanes.chance.sum(), 1.0)
    ahead = expected_at(tree, table, lanes, player, wrong_values(tree)) if chance else None
    regrets, reach = estimated(lanes, baseline[lanes.history], trace, clip, ahead)
    return expected(tree, lanes, regrets, 1 / reach)


@pytest.mark.parametrize("exploration", [0.5, UNIFORM])
@pytest.mark.parametrize(("trace", "clip"), SETTINGS)
@pytest.mark.parametrize("player", [0, 1])
def test_the_bias_is_what_the_recursion_says(player: int, trace: float, clip: float | None, exploration: float) -> None:
    """With a baseline that is wrong by several payoffs, for every trajectory of Kuhn poker."""
    tree = tree_of("kuhn_poker")
    table, baseline = random_table(tree, 3), wrong_values(tree)
    found = mean_regrets(tree, table, player, baseline, trace, clip, exploration)
    by_history = traced_regrets(tree, table, player, baseline, trace, clip, exploration)
    np.testing.assert_allclose(found, by_history, atol=1e-10)
    bias = np.abs(by_history - exact_regret_and_average(tree, table, player)[0]).max()
    assert bias < 1e-6 if (trace, clip) == (1.0, None) else bias > 0.01


@pytest.mark.parametrize(("trace", "clip"), [(0.9, 11.0), (0.3, 1.2)])
def test_the_public_card_changes_nothing(trace: float, clip: float) -> None:
    """On Leduc, with the baseline alone and with chance enumerated in it, both wrong."""
    tree = tree_of("leduc_poker")
    table, baseline = random_table(tree, 4), wrong_values(tree)
    by_history = traced_regrets(tree, table, 1, baseline, trace, clip)
    for chance in (False, True):
        found = mean_regrets(tree, table, 1, baseline, trace, clip, 0.5, chance=chance)
        np.testing.assert_allclose(found, by_history, atol=1e-9)


@pytest.mark.parametrize(("trace", "clip"), SETTINGS)
def test_an_exact_value_leaves_no_bias(trace: float, clip: float | None) -> None:
    """Whatever is cut short is 0 on average."""
    tree = tree_of("leduc_poker")
    table = random_table(tree, 5)
    exact = action_values(tree, table)[: tree.num_histories]
    found = mean_regrets(tree, table, 0, exact, trace, clip, UNIFORM)
    np.testing.assert_allclose(found, exact_regret_and_average(tree, table, 0)[0], atol=1e-6)


def test_the_bias_in_closed_form() -> None:
    """Last decisions of Kuhn, own actions uniform over two: clip 1 leaves half of the value's error, clip 0 all."""
    tree = tree_of("kuhn_poker")
    table, player = random_table(tree, 6), 0
    exact = action_values(tree, table)[: tree.num_histories]
    wrong, truth = wrong_values(tree), exact_regret_and_average(tree, table, player)[0]
    last = tree.legal & ((tree.owner == player) & (tree.depth > 0))[:, None]
    off = traced_regrets(tree, table, player, wrong - exact, 0.0, 0.0)  # regrets of the error alone
    for clip, left in ((0.0, 1.0), (0.5, 0.75), (1.0, 0.5), (2.0, 0.0)):
        found = mean_regrets(tree, table, player, wrong, 0.7, clip, UNIFORM)
        np.testing.assert_allclose((found - truth)[last], left * off[last], atol=1e-7)


def test_the_ends_are_the_estimators_of_dream_and_escher() -> None:
    """Trace 1 without a clip is the unbiased correction, step by step; clip 0 is the value as it stands."""
    tree = tree_of("leduc_poker")
    table = random_table(tree, 7)
    lanes = lanes_of(tree, table, 1)
    baseline = baseline_at("wrong", tree, table, lanes, 1)
    full, none = (estimated(lanes, baseline, *setting)[0] for setting in ((1.0, None), (0.4, 0.0)))
    with jax.enable_x64(True):
        steps = (lanes.policy, lanes.sampled, lanes.action, baseline, lanes.rewards, lanes.done)
        given = map(jnp.asarray, steps)
        u, _ = jax.vmap(estimators.corrected_values, in_axes=1, out_axes=1)(*given)
        dream, escher = (estimators.regrets(jnp.asarray(x), lanes.policy, lanes.legal) for x in (u, baseline))
    np.testing.assert_allclose(full, dream, atol=1e-9)
    np.testing.assert_array_equal(none, escher)


def test_a_clip_bounds_the_variance() -> None:
    """The second moment of regrets falls with the clip, on the same trajectories."""
    tree = tree_of("leduc_poker")
    table = random_table(tree, 8)
    lanes = lanes_of(tree, table, 0, 0.1)
    baseline = np.zeros(lanes.legal.shape)
    moments = []
    for clip in (None, 5.0, 2.0):
        regrets, _ = estimated(lanes, baseline, 1.0, clip)
        square = np.where(lanes.own, np.sum(regrets**2, axis=-1), 0.0)
        moments.append(np.sum(lanes.chance * square))
    assert moments[0] > 2 * moments[1] > 2 * moments[2]
