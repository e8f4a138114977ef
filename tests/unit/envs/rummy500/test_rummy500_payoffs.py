"""Rewards by points, against the others' mean or shaped: what is paid alone, and rules that would change nothing."""

from __future__ import annotations

import math
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import yaml

import envs
from envs import Game, InputError
from envs.rummy500 import RummyRules, ShapedRummy500

STEPS = 60


def _rounds(game: Game) -> tuple:
    """Returns all that is seen and allowed along eight rounds of random play, and what they paid."""

    def play(key: jax.Array) -> tuple:
        def step(state: object, key: jax.Array) -> tuple:
            views = [game.view(state, jnp.int32(player)) for player in range(game.num_players)]
            legal = game.legal_actions(state)
            new, rewards, done = game.step(state, jax.random.categorical(key, jnp.where(legal, 0.0, -jnp.inf)))
            return new, (views, legal, done, rewards)

        return jax.lax.scan(step, game.init(key), jax.random.split(key, STEPS))[1]

    *seen, rewards = jax.device_get(jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(2), 8)))
    return seen, rewards


def test_policies_play_under_both_rewards() -> None:
    """Views and legal actions are the same; another hand is another game."""
    against, points = (envs.make("rummy500", max_turns=12, rewards=rewards) for rewards in ("zero_sum", "points"))
    (seen, paid), (seen_there, paid_there) = _rounds(against), _rounds(points)
    jax.tree.map(np.testing.assert_array_equal, seen, seen_there)
    assert not np.array_equal(paid, paid_there)
    policy = envs.make_bot("greedy", against)
    envs.check_plays(policy, points)
    with pytest.raises(envs.InputError, match="with other rules"):
        envs.check_plays(policy, envs.make("rummy500", hand_size=8, rewards="points"))


def test_a_policy_of_a_match_plays_no_single_rounds() -> None:
    """Nor the other way round: a match's view holds the scores; the shaped reward changes nothing that is seen."""
    one, match = envs.make("rummy500", num_players=2), envs.make("rummy500", num_players=2, target=100)
    with pytest.raises(envs.InputError, match="with other rules: target=100, not given; max_rounds=40, not given"):
        envs.check_plays(envs.make_bot("greedy", match), one)
    with pytest.raises(envs.InputError, match="with other rules: target=None, not 100"):
        envs.check_plays(envs.make_bot("greedy", one), match)
    envs.check_plays(envs.make_bot("greedy", envs.make("rummy500", num_players=2, reward="shaped")), one)


def test_the_potential_does_not_depend_on_the_reward() -> None:
    """Points / 100 with the score and with the shaped reward, as in gin rummy."""
    plain, shaped = envs.make("rummy500", num_players=2), envs.make("rummy500", num_players=2, reward="shaped")
    state = plain.init(jax.random.key(0))
    for player in range(2):
        expected = float(plain.scores(state)[player]) / 100
        assert expected < 0
        assert float(plain.potential(state, player)) == pytest.approx(expected)
        assert float(shaped.potential(state, player)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"card_weight": 0.5}, "reward=shaped"),
        ({"point_weight": 0}, "reward=shaped"),
        ({"win_weight": 5.0}, "reward=shaped"),
        ({"every_step": False}, "reward=shaped"),
        ({"win_weight": 5.0, "target": 500}, "reward=shaped"),
        ({"reward": "shaped", "rewards": "points"}, "reward=score"),
    ],
)
def test_rules_that_would_change_nothing_are_refused(given: dict[str, Any], where: str, repo: pathlib.Path) -> None:
    """Beside all defaults, as on the command line; the rule and what it belongs to are named."""
    conf = yaml.safe_load((repo / "conf" / "env" / "rummy500.yaml").read_text())["rules"]
    with pytest.raises(InputError, match=f" is of {where}; set {where}, or leave it out$") as error:
        envs.make("rummy500", **conf | given)
    assert str(error.value).startswith(("rule card_weight=0.5 ", "rule point_weight=0.0 ", "rule win_weight=5.0 ",
                                        "rule every_step=False ", "rule rewards=points "))  # fmt: skip


def test_a_weight_alone_chooses_the_shaped_reward() -> None:
    """Where no reward is named."""
    assert envs.make("rummy500", card_weight=0.5) == ShapedRummy500(RummyRules(), card_weight=0.5)


@pytest.mark.parametrize("name", ["card_weight", "point_weight", "win_weight"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e39, pytest.param(10**400, id="10^400")])
def test_weights_are_finite(name: str, value: float) -> None:
    """Also as the rewards' float32."""
    with pytest.raises(InputError, match=f"^rule {name}=.* is not valid; it must be a finite number$"):
        envs.make("rummy500", **{name: value})
    with pytest.raises(InputError, match=f"^rule {name}="):
        ShapedRummy500(**{name: value})
