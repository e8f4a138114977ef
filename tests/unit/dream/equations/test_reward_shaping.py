"""Reward shaping: what the potential form pays in all, what the literal form changes, whom a draw costs what."""

from __future__ import annotations

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from dream_support import CoinGame, Node, coin_trees, random_table, trajectories

import envs
from dream import algorithms
from dream.equations import schedules
from dream.equations.reward_shaping import (
    ShapingConfig,
    check_tie_penalty,
    check_win_bonus,
    shaping_at,
    shaping_reward,
    tie_penalty,
    training_rewards,
    win_bonus,
)
from envs import InputError

DISCOUNT, SCALE = 0.9, 0.5


def _shaped(potentials: np.ndarray, form: str, scale: float = SCALE, discount: float = DISCOUNT) -> np.ndarray:
    """Returns the shaping of each transition of one game with potentials float[T + 1, ...]."""
    done = np.arange(len(potentials) - 1) == len(potentials) - 2
    done = done.reshape(-1, *[1] * (potentials.ndim - 1))
    return np.asarray(
        shaping_reward(potentials[:-1], potentials[1:], done, scale=jnp.float32(scale), discount=discount, form=form)
    )


@pytest.mark.parametrize("length", [1, 2, 7, 80])
def test_potential_form_telescopes(length: int) -> None:
    """From any step on the discounted sum is -scale * Phi(s), whatever follows, the last potential included."""
    potentials = np.random.default_rng(length).normal(size=(length + 1, 2)).astype(np.float32)
    shaped = _shaped(potentials, "potential")
    for t in range(length):
        total = sum(DISCOUNT ** (u - t) * shaped[u] for u in range(t, length))
        np.testing.assert_allclose(total, -SCALE * potentials[t], rtol=1e-4, atol=1e-5)


def test_literal_form_pays_the_whole_change() -> None:
    """Undiscounted, scale * (last - first potential); one step pays what it changes."""
    potentials = np.array([-0.6, -0.5, -0.55, 0.0], np.float32)
    shaped = _shaped(potentials, "literal")
    np.testing.assert_allclose(shaped, [0.05, -0.025, 0.275], atol=1e-7)
    assert shaped.sum() == pytest.approx(SCALE * 0.6)


def test_document_scale() -> None:
    """Ten deadwood points shed pay 5 raw points: 0.05 in units of reward."""
    for form in ("literal", "potential"):
        paid = shaping_reward(-0.40, -0.30, False, scale=jnp.float32(0.5), discount=1.0, form=form)
        assert paid == pytest.approx(0.05)


def _plans(trees: list[Node]) -> list[dict[bytes, int]]:
    """Returns every way player 0 can play: information set -> action."""
    sets = {node.key: np.flatnonzero(node.legal) for node in _decisions(trees) if node.player == 0}
    return [dict(zip(sets, actions, strict=True)) for actions in itertools.product(*sets.values())]


def _decisions(trees: list[Node]) -> list[Node]:
    table = random_table(trees, 0)
    return [node for _, path in trajectories(trees, table) for node, _ in path]


def _worth(trees: list[Node], plan: dict[bytes, int], opponent: dict, form: str | None, scale: float) -> float:
    """Returns what player 0 expects of a plan: its discounted rewards and shaping, by enumeration."""
    table = {key: np.eye(3)[plan[key]] if key in plan else chances for key, chances in opponent.items()}
    total = 0.0
    for chance, path in trajectories(trees, table):
        for t, (node, action) in enumerate(path):
            rewards, child, after = node.children[action]
            paid = rewards[0]
            if form is not None:
                before, later, over = node.potentials[0], after[0], child is None
                paid = paid + (
                    scale * (later - before)
                    if form == "literal"
                    else shaping_reward(before, later, over, scale=np.float32(scale), discount=DISCOUNT, form=form)
                )
            total += chance * DISCOUNT**t * float(paid)
    return total


def test_potential_form_keeps_optimal_play() -> None:
    """In the coin game every plan of player 0 gains the same by it, -scale * E[Phi(s0)], so the best ones stay best."""
    trees = coin_trees(CoinGame())
    opponent, plans = random_table(trees, 4), _plans(trees)[::97]
    assert len(plans) > 4
    plain = np.array([_worth(trees, plan, opponent, None, 0.0) for plan in plans])
    shaped = np.array([_worth(trees, plan, opponent, "potential", 3.0) for plan in plans])
    literal = np.array([_worth(trees, plan, opponent, "literal", 3.0) for plan in plans])
    start = np.mean([tree.potentials[0] for tree in trees])
    np.testing.assert_allclose(shaped - plain, -3.0 * start, atol=1e-5)
    assert np.ptp(literal - plain) > 0.1


def test_literal_form_can_change_optimal_play() -> None:
    """A player with 60 deadwood points may end the hand and win 20, or first shed 50 points and then lose 5.

    Rightly it wins 0.20 at once. The literal form at scale 1 pays 0.50 more for the shedding, so losing looks better.
    """
    win, lose_rewards = 0.20, (0.0, -0.05)
    for form, right in (("potential", True), ("literal", False)):
        one = _shaped(np.array([-0.6, -0.6], np.float32), form, scale=1.0)
        two = _shaped(np.array([-0.6, -0.1, -0.1], np.float32), form, scale=1.0)
        wins = win + one[0]
        loses = lose_rewards[0] + two[0] + DISCOUNT * (lose_rewards[1] + two[1])
        assert (wins > loses) == right


def test_tie_penalty_falls_on_both_players_of_a_tie_alone() -> None:
    """Not where someone won, not on the way, not on a step that pays nothing."""
    rewards = np.array([[0, 0], [0.3, -0.3], [0, 0], [-0.1, 0.1]], np.float32)
    done = np.array([True, True, False, False])
    np.testing.assert_array_equal(tie_penalty(rewards, done, -0.05), np.float32([[-0.05] * 2, [0, 0], [0, 0], [0, 0]]))
    np.testing.assert_array_equal(tie_penalty(rewards[0], np.True_, -0.05), np.float32([-0.05, -0.05]))


def test_a_tie_is_that_nobody_earned_more_than_every_other() -> None:
    """Of three players, and where rewards are not zero-sum."""
    rewards = np.float32([[0.5, 0.5, -1], [0, 0, 0], [0.1, 0, 0], [0.3, 0.3, 0.3], [-0.2, 0.4, 0.1]])
    paid = tie_penalty(rewards, np.ones(5, bool), -1.0)
    np.testing.assert_array_equal(paid, np.float32([[-1] * 3, [-1] * 3, [0] * 3, [-1] * 3, [0] * 3]))


def test_win_bonus_goes_to_whom_the_end_pays() -> None:
    """From the loser to the winner at the end alone; a draw and steps on the way pay nothing."""
    rewards = np.array([[0, 0], [0.3, -0.3], [0, 0], [-0.1, 0.1]], np.float32)
    done = np.array([True, True, False, False])[:, None]
    np.testing.assert_array_equal(win_bonus(rewards, done, 2.0), np.float32([[0, 0], [2, -2], [0, 0], [0, 0]]))


def test_training_rewards_are_the_games_own_with_all_that_is_added() -> None:
    """Penalty and bonus in raw points, a reward of 1 being 10 of them; a win costs nobody the penalty."""
    rewards = np.array([[0, 0], [0, 0], [0.3, -0.3]], np.float32)
    done, potentials = np.array([False, True, True]), np.zeros((3, 2, 2))
    config = ShapingConfig(scale=schedules.constant(1.0), tie_penalty=-5.0, win_bonus=20.0)
    rewarded = training_rewards(shaping_at(config, 0), rewards, potentials, done, unit=10.0, discount=1.0)
    np.testing.assert_allclose(rewarded, [[0, 0], [-0.5, -0.5], [2.3, -2.3]], rtol=1e-6)


def test_a_bonus_may_come_later() -> None:
    """From the iteration on that is given, counted from 0; the schedule of the scale is its own."""
    config = ShapingConfig(scale=schedules.constant(1.0), win_bonus=20.0, win_bonus_after=3)
    assert [float(shaping_at(config, n).win_bonus) for n in (0, 2, 3, 9)] == [0, 0, 20, 20]
    assert float(shaping_at(config, 2).scale) == 1


def test_who_has_won_is_read_off_all_that_was_paid() -> None:
    """Where a game pays on the way: its last step takes from the winner, or evens the game out."""
    rewards = np.array([[0.5, -0.5], [-0.1, 0.1], [0.2, -0.2], [-0.2, 0.2]], np.float32)
    paid = np.array([[0.5, -0.5], [0.4, -0.4], [0.2, -0.2], [0, 0]], np.float32)
    done, potentials = np.array([False, True, False, True]), np.zeros((4, 2, 2))
    config = ShapingConfig(scale=schedules.constant(0.0), tie_penalty=-5.0, win_bonus=20.0)
    rewarded = training_rewards(shaping_at(config, 0), rewards, potentials, done, paid=paid, unit=10.0, discount=1.0)
    np.testing.assert_allclose(rewarded, [[0.5, -0.5], [1.9, -1.9], [0.2, -0.2], [-0.7, -0.3]], rtol=1e-5)


@pytest.mark.parametrize("rules", [{"num_players": 3}, {"num_players": 2, "rewards": "points"}])
def test_a_bonus_for_wins_needs_rewards_that_tell_the_winner(rules: dict) -> None:
    """With three players second place can earn something, and points are earned by both."""
    config = ShapingConfig(win_bonus=50.0)
    check_win_bonus(config, envs.make("rummy500", num_players=2))
    check_win_bonus(ShapingConfig(), envs.make("rummy500", **rules))
    with pytest.raises(InputError, match=r"algo\.shaping\.win_bonus=50 is for two-player zero-sum games"):
        check_win_bonus(config, envs.make("rummy500", **rules))


def test_a_penalty_in_points_is_refused_where_rewards_are_none() -> None:
    """Categorical and shaped rewards; it costs nothing to ask for none, and points not zero-sum are points."""
    config = ShapingConfig()
    for game in (envs.make("gin_rummy_mdp", reward="categorical"), envs.make("rummy500", reward="shaped")):
        with pytest.raises(InputError, match=rf"tie_penalty=-5 is in points; the rewards of {game.name} .* must be 0"):
            check_tie_penalty(config, game)
        check_tie_penalty(ShapingConfig(tie_penalty=0.0), game)
    for name, rules in (("gin_rummy_mdp", {}), ("rummy500", {"rewards": "points"}), ("leduc_poker", {})):
        check_tie_penalty(config, envs.make(name, **rules))


@pytest.mark.parametrize("algo", ["dueling_dream", "ppo"])
def test_learners_refuse_such_a_penalty(algo: str) -> None:
    """Before anything is played."""
    game = envs.make("gin_rummy_mdp", reward="categorical")
    settings = {"name": algo, "shaping": {"tie_penalty": -5.0}}
    with pytest.raises(InputError, match=r"algo\.shaping\.tie_penalty=-5 is in points"):
        algorithms.make(settings, {"name": "dueling"}, game)
