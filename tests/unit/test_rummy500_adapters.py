"""Rummy 500 through Gymnasium and PettingZoo."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import envs
from envs.errors import InputError
from envs.random_play import random_policy

RANDOM = random_policy()


@pytest.fixture(scope="module")
def seat_env() -> Any:
    """Seat 1 of three against random players."""
    pytest.importorskip("gymnasium")
    from envs.adapters.gymnasium import make_env

    return make_env(envs.make("rummy500"), RANDOM, seat=1)


@pytest.fixture(scope="module")
def game_env() -> Any:
    """Three agents."""
    pytest.importorskip("pettingzoo")
    from envs.adapters.pettingzoo import make_env

    return make_env(envs.make("rummy500"))


def test_gymnasium_check_env(seat_env: Any) -> None:
    """Gymnasium's own test."""
    from gymnasium.utils.env_checker import check_env

    check_env(seat_env, skip_render_check=True)


def test_gymnasium_episodes(seat_env: Any) -> None:
    """Legal play ends in time with the game's reward; an episode told by its seed."""
    first = []
    for _ in range(2):
        observation, info = seat_env.reset(seed=3)
        rng, total, done, steps = np.random.default_rng(0), 0.0, False, 0
        while not done:
            assert observation in seat_env.observation_space
            action = int(rng.choice(np.flatnonzero(info["action_mask"])))
            observation, reward, done, _, info = seat_env.step(action)
            total, steps = total + reward, steps + 1
        assert not info["action_mask"].any()
        first.append((total, steps))
    assert first[0] == first[1]
    assert first[0][0] > envs.make("rummy500").worst_reward


def test_gymnasium_illegal_action_ends_the_episode(seat_env: Any) -> None:
    """With the worst reward, told in info."""
    _, info = seat_env.reset(seed=0)
    illegal = int(np.flatnonzero(info["action_mask"] == 0)[0])
    _, reward, done, _, info = seat_env.step(illegal)
    assert (reward, done, info["illegal_action"]) == (pytest.approx(-3.96), True, illegal)
    with pytest.raises(InputError, match="call reset"):
        seat_env.step(0)


def test_gymnasium_wrong_arguments() -> None:
    """Seats, opponents and worst reward are checked before anything is imported."""
    from envs.adapters.gymnasium import make_env

    game = envs.make("rummy500")
    for arguments, message in (((RANDOM, 3), "seat=3"), (([RANDOM], 0), "1 opponents")):
        with pytest.raises(InputError, match=message):
            make_env(game, *arguments)
    with pytest.raises(InputError, match="pass worst_reward"):
        make_env(envs.make("kuhn_poker"), RANDOM)


# The dictionary with the mask is PettingZoo's own custom for such games, though its test remarks on it.
@pytest.mark.filterwarnings("ignore:Observation")
@pytest.mark.filterwarnings("ignore:The observation")
def test_pettingzoo_api_test(game_env: Any) -> None:
    """PettingZoo's own test."""
    from pettingzoo.test import api_test

    api_test(game_env, num_cycles=300)


def test_pettingzoo_rewards_and_errors(game_env: Any) -> None:
    """The last rewards are zero-sum; an illegal action is named and changes nothing."""
    game_env.reset(seed=1)
    with pytest.raises(InputError, match="illegal action 5 of player_"):
        game_env.step(5)
    rng = np.random.default_rng(0)
    while not all(game_env.terminations.values()):
        legal = np.flatnonzero(game_env.observe(game_env.agent_selection)["action_mask"])
        game_env.step(int(rng.choice(legal)))
    rewards = list(game_env.rewards.values())
    assert sum(rewards) == pytest.approx(0, abs=1e-5)
    assert any(rewards)
