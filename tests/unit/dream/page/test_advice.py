"""Advice: against exact values on small games, and what a belief may weigh."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import envs
from dream.networks.policy import ValuedPolicy
from dream.page.advice import Adviser, belief_summary, rows
from dream.page.compiled import CompiledGame, Player
from envs import InputError


def _kuhn(trained: bool = False) -> tuple[CompiledGame, Adviser]:
    game = envs.make("kuhn_poker")
    random = envs.make_bot("random", game)
    if trained:  # as policies of PPO are that counted a win as five chips more
        random = ValuedPolicy(random.apply, random.params, game, value=lambda params, view: jnp.float32(9), win_bonus=5)
    return CompiledGame(game), Adviser(game, Player("random", random), random)


@pytest.mark.parametrize("trained", [False, True])
def test_expected_points_of_kuhn_poker(trained: bool) -> None:
    """Of a king that may pass or bet, against a random player: 0.75 and 1.5 chips, by hand.

    A bet is called for 2 or folded for 1. A pass is met by a pass, for 1, or a bet; the king then folds, losing 1, or
    calls for 2, so the bet brings 0.5. The mean is 0.75; it is the same whatever the other holds, and whatever a player
    was trained to count a win as.
    """
    compiled, adviser = _kuhn(trained)
    position = compiled.look(compiled.game.from_deck(np.array([2, 0, 1])))
    points = np.concatenate([adviser.values(position.views[0], [0, 1], 0, seed) for seed in range(60)])
    means, errors = points.mean(axis=0), points.std(axis=0) / np.sqrt(len(points))
    assert np.all(np.abs(means - [0.75, 1.5]) < 4 * errors)
    found = rows([0, 1], np.array([0.5, 0.5]), points)
    assert [row["id"] for row in found] == [1, 0]
    assert found[0]["low"] < 1.5 < found[0]["high"]
    assert found[1]["worse"] == pytest.approx(means[1] - means[0], abs=0.01)
    assert found[0]["worse"] == 0


def test_a_belief_follows_the_others_play() -> None:
    """Against a random player both hidden cards are equally likely; the own card is known."""
    compiled, adviser = _kuhn()
    position = compiled.look(compiled.game.from_deck(np.array([1, 2, 0])))
    shown = belief_summary(compiled.game, position.views[0], 0, adviser.belief(position.views[0], 0, 3))
    (other,) = shown["others"]
    assert shown["own"] == [False, True, False]
    assert sum(other["chances"]) == pytest.approx(1)
    assert other["chances"][1] == 0
    assert other["chances"][2] == pytest.approx(0.5, abs=0.12)
    assert shown["weighted"]


def test_a_game_that_cannot_deal_anew_says_so() -> None:
    """In one line."""
    game = envs.make("mini_gin_rummy", preset="3x4")
    random = envs.make_bot("random", game)
    compiled, adviser = CompiledGame(game), Adviser(game, Player("random", random), random)
    position = compiled.deal(0)
    with pytest.raises(InputError, match="cannot deal anew"):
        adviser.values(position.views[0], [1], 0, 0)


def test_openspiels_gin_has_points_and_beliefs() -> None:
    """At the first decision: values of both actions, and a belief that is not weighted by moves, which a view lacks."""
    game = envs.make("gin_rummy_openspiel", num_ranks=5, num_suits=4, hand_size=4)
    random = envs.make_bot("random", game)
    compiled, adviser = CompiledGame(game), Adviser(game, Player("random", random), random)
    position = compiled.deal(3)
    assert adviser.values(position.views[0], [52, 54], 0, 0).shape == (16, 2)
    shown = belief_summary(game, position.views[0], 0, adviser.belief(position.views[0], 0, 1))
    assert not shown["weighted"]
    assert sum(shown["others"][0]["chances"]) == pytest.approx(4, abs=0.05)
    assert set(shown) >= {"danger", "outs", "knock_next"}
