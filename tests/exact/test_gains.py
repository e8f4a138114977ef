"""Are gains over a policy those of the performance difference lemma, exactly?"""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from trajectories import random_table
from tree_values import tree_of

import envs
from dream.evaluation.gains import CHANGED, GAIN, play_for_gains
from dream.evaluation.statistics import mean_interval
from dream.game_tree import sequence_form
from dream.game_tree.tabular_policy import table_index, table_policy
from dream.networks.policy import ValuedPolicy
from envs import InputError, Policy
from envs.random_play import uniform

GAMES = 1 << 14


@pytest.mark.parametrize(("name", "share", "playouts"), [("kuhn_poker", 1.0, 1), ("leduc_poker", 0.25, 4)])
def test_mean_gain_is_what_the_player_wins_against_the_policy(name: str, share: float, playouts: int) -> None:
    """Against the exact expectation; the gain's interval is the narrower one where the two often agree."""
    tree = tree_of(name)
    table = random_table(tree, 1)
    other = np.where(np.random.default_rng(2).random(len(table))[:, None] < share, random_table(tree, 13), table)
    mixed = [np.where((tree.owner == seat)[:, None], other, table) for seat in range(2)]
    truth = sum(sequence_form.expected_value(tree, x)[seat] for seat, x in enumerate(mixed)) / 2
    player, policy = (table_policy(table_index(tree), x) for x in (other, table))
    found = play_for_gains(tree.game, player, policy, games=GAMES, seed=4, playouts=playouts)
    scale = tree.game.reward_scale
    gain, plain = (mean_interval(found[each].mean(axis=1) / scale) for each in (GAIN, "points_per_hand"))
    for interval in (gain, plain):
        assert abs(interval.mean - truth) < 2 * (interval.high - interval.mean)
    assert abs(truth) > 2 * (gain.high - gain.mean), "so little to be found that zeros would pass"
    if share < 1:
        assert gain.high - gain.low < 0.8 * (plain.high - plain.low)


def _first(params: None, view: object, legal: np.ndarray) -> np.ndarray:
    return (jnp.arange(legal.shape[0]) == jnp.argmax(legal)).astype(jnp.float32)


def test_a_player_that_does_the_same_gains_exactly_nothing() -> None:
    """Hands differ in what they win; the gain of each is 0, and no decision is changed."""
    found = play_for_gains(envs.make("leduc_poker"), Policy(_first), Policy(_first), games=64)
    assert np.ptp(found["points_per_hand"]) > 0
    assert not found[GAIN].any()
    assert not found[CHANGED].any()


def test_the_policys_own_value_and_bonus_do_not_count() -> None:
    """A policy with a value of nonsense and a bonus gives the same gains as without."""
    tree = tree_of("kuhn_poker")
    policy = table_policy(table_index(tree), random_table(tree, 1))
    valued = ValuedPolicy(policy.apply, policy.params, policy.game, lambda params, view: jnp.float32(9), 5.0)
    player = table_policy(table_index(tree), uniform(tree.legal))
    with_value, without = (play_for_gains(tree.game, player, one, games=64, seed=1) for one in (valued, policy))
    np.testing.assert_array_equal(with_value[GAIN], without[GAIN])
    assert without[CHANGED].any()


def test_other_games_and_numbers_are_refused() -> None:
    """Each with what would be right."""
    kuhn = envs.make("kuhn_poker")
    with pytest.raises(InputError, match="two-player zero-sum game, and rummy500"):
        play_for_gains(envs.make("rummy500", num_players=3), Policy(_first), Policy(_first), games=6)
    with pytest.raises(InputError, match="at least 1"):
        play_for_gains(kuhn, Policy(_first), Policy(_first), games=4, playouts=0)
    for given in ("8", 2.5):
        with pytest.raises(InputError, match=r"^playouts=.* is not valid; it must be a whole number, at least 1$"):
            play_for_gains(kuhn, Policy(_first), Policy(_first), games=4, playouts=given)
    with pytest.raises(InputError, match=r"^'kuhn_poker' is not a game"):
        play_for_gains("kuhn_poker", Policy(_first), Policy(_first), games=4)
    with pytest.raises(InputError, match="multiple of 2"):
        play_for_gains(kuhn, Policy(_first), Policy(_first), games=3)
    wrong = dataclasses.replace(Policy(_first), apply=lambda params, view, legal: jnp.full(legal.shape, jnp.nan))
    for pair, whose in (((wrong, Policy(_first)), "first player"), ((Policy(_first), wrong), "opponent")):
        with pytest.raises(InputError, match=f"the {whose}'s policy gives probabilities that are not finite"):
            play_for_gains(kuhn, *pair, games=4)


def test_a_policy_without_answer_in_playouts_alone_is_refused() -> None:
    """It has none for a pass that is answered by a bet: the player bets first, and bets at nothing."""

    def policy(params: None, view: object, legal: np.ndarray) -> np.ndarray:
        return jnp.where(view.bets == 9, jnp.nan, jnp.array([0.5, 0.5]))

    player = Policy(lambda params, view, legal: jnp.where(jnp.arange(2) == view.seat, 0.0, 1.0))
    with pytest.raises(InputError, match="in playouts the opponent's policy gives probabilities that are not finite"):
        play_for_gains(envs.make("kuhn_poker"), player, Policy(policy), games=64)
