"""A learner's policy says what its player expects, where its returns were those of the game."""

from __future__ import annotations

import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from dream import algorithms
from dream.evaluation.gains import GAIN, play_for_gains
from dream.networks.policy import ValuedPolicy
from dream.search import SearchSettings, make_search
from dream.search.playouts import play_on
from dream.storage.checkpoint_writer import CheckpointWriter
from dream.storage.policies import find, game_of, policy_of
from envs import InputError, Policy

GAME = envs.make("kuhn_poker")


def _policy(shaping: dict[str, Any]) -> tuple[ValuedPolicy, float]:
    """A fresh PPO learner's policy, and what the learner itself says of a king at the start."""
    none = {"start": 0.0, "end": 0.0, "transition_steps": 1, "form": "linear"}
    config = {"name": "ppo", "episodes_per_iteration": 4, "batch_size": 8,
              "shaping": {"scale": none, "tie_penalty": 0.0} | shaping}  # fmt: skip
    learner = algorithms.make(config, {"name": "dueling", "hidden": [8]}, GAME)
    state = learner.init(jax.random.key(0))
    return learner.policies(state)["current"], float(learner.value(state)(_view()))


def _view() -> Any:
    return GAME.view(GAME.from_deck(jnp.array([2, 0, 1])), 0)


def test_the_policys_value_is_the_learners() -> None:
    """With a bonus for wins, which the policy names."""
    policy, expected = _policy({"win_bonus": 1.5})
    assert isinstance(policy, ValuedPolicy)
    assert float(policy.value(policy.params, _view())) == pytest.approx(expected)
    assert policy.win_bonus == 1.5 / GAME.reward_scale
    assert policy.game == GAME


def test_shaped_returns_are_no_value() -> None:
    """A penalty for ties is in all of them."""
    policy, _ = _policy({"tie_penalty": -1.0})
    assert policy.value is None


def test_no_value_while_rewards_are_shaped() -> None:
    """There is one from the first iteration without shaping on, the eleventh; none where nobody knows the number."""
    scale = {"start": 1.0, "end": 0.0, "transition_steps": 10, "form": "linear"}
    config = {"name": "ppo", "episodes_per_iteration": 4, "batch_size": 8, "shaping": {"scale": scale}}
    learner = algorithms.make(config, {"name": "dueling", "hidden": [8]}, envs.make("mini_gin_rummy"))
    state = learner.init(jax.random.key(0))
    for iteration, known in ((0, False), (10, False), (11, True)):
        policy = learner.policies(state._replace(iteration=jnp.int32(iteration)))["current"]
        assert (policy.value is not None) == known
    traced = jax.eval_shape(lambda state: learner.policies(state)["current"], state._replace(iteration=jnp.int32(11)))
    assert traced.value is None


def test_a_bonus_that_comes_later_is_counted_once_it_was_trained_for() -> None:
    """The value is of games without it until then; where nobody knows the iteration there is no value."""
    config = {"name": "ppo", "episodes_per_iteration": 4, "batch_size": 8,
              "shaping": {"win_bonus": 1.5, "win_bonus_after": 3}}  # fmt: skip
    learner = algorithms.make(config, {"name": "dueling", "hidden": [8]}, GAME)
    state = learner.init(jax.random.key(0))
    for iteration, bonus in ((0, 0.0), (3, 0.0), (4, 1.5)):
        policy = learner.policies(state._replace(iteration=jnp.int32(iteration)))["current"]
        assert policy.value is not None
        assert policy.win_bonus == bonus / GAME.reward_scale
    assert jax.eval_shape(lambda state: learner.policies(state)["current"], state).value is None


def test_no_value_of_what_another_game_pays() -> None:
    """Where rules of payoffs alone differ the policy plays the same, and playouts are not cut by its value."""
    other = envs.make("gin_rummy", gin_bonus=100)
    reference = "gin_rummy/points"
    trained = find(reference)
    assert policy_of(trained, game_of(trained)).value is not None
    policy = policy_of(trained, other)
    assert (policy.value, policy.game) == (None, other)
    searching = make_search(policy_of(trained, game_of(trained)), other, SearchSettings(worlds=8))
    assert searching.params.policy.value is None
    with pytest.raises(InputError, match="other rules: knock_limit=10, not 0"):
        make_search(policy_of(trained, game_of(trained)), envs.make("gin_rummy", knock_limit=0))


def test_no_value_of_a_shaped_reward(tmp_path: pathlib.Path) -> None:
    """Trained on rummy 500's shaped reward, whose weights the game with scores alone does not have."""
    rules = {"num_players": 2, "max_turns": 10}
    shaped = envs.make("rummy500", **rules, reward="shaped")
    config = {
        "env": {"name": "rummy500", "rules": {**rules, "reward": "shaped"}},
        "algo": {"name": "ppo", "episodes_per_iteration": 4},
        "network": {"name": "dueling", "hidden": [4]},
    }
    learner = algorithms.make(config["algo"], config["network"], shaped)
    writer = CheckpointWriter(tmp_path, keep=1)
    writer.save(1, learner.init(jax.random.key(0)), {"config": config, "game": shaped.identity})
    writer.close()
    trained = find(tmp_path)
    assert policy_of(trained, shaped).value is not None
    assert policy_of(trained, envs.make("rummy500", **rules)).value is None


def test_no_value_where_an_assistant_decides_some() -> None:
    """The value is not fitted at its decisions, at which a search would leave the game: it plays to the end instead."""
    config = {"name": "ppo", "assistant": "exact_endgame", "opponents": ["random"]}
    for settings, known in ((config, False), (config | {"assistant": None}, True)):
        learner = algorithms.make(settings, {"name": "dueling", "hidden": [4]}, envs.make("gin_rummy_openspiel"))
        policy = learner.policies(jax.eval_shape(learner.init, jax.random.key(0)))["current"]
        assert (policy.value is not None) == known


def test_the_end_pays_the_bonus_too() -> None:
    """A king and a jack that both pass: the king wins a chip and the bonus, and the jack loses both."""
    policy, _ = _policy({"win_bonus": 1.5})
    passes = ValuedPolicy(lambda params, view, legal: jnp.array([1.0, 0.0]), (), GAME, None, policy.win_bonus)
    start = GAME.from_deck(jnp.array([2, 0, 1]))
    won = [play_on(GAME, passes, start, jnp.int32(0), jnp.int32(seat), jax.random.key(0), 9) for seat in (0, 1)]
    np.testing.assert_allclose(won, [2.5, -2.5])


def _of_legal(params: Any, view: Any, legal: Any) -> Any:
    """Each legal action alike; no numbers once the game is over, as there is none."""
    return jnp.where(jnp.any(legal), legal / jnp.maximum(jnp.sum(legal), 1), jnp.nan)


def test_a_policy_without_answer_after_the_end_is_played_on_by() -> None:
    """Nobody acts there; to the end of the game, by a search, and for gains over it."""
    policy, start = Policy(_of_legal), GAME.from_deck(jnp.array([2, 0, 1]))
    assert abs(play_on(GAME, policy, start, jnp.int32(1), jnp.int32(0), jax.random.key(0), 9)) in (1, 2)
    player = make_search(policy, GAME, SearchSettings(worlds=32, pulls=16, particles=8))
    assert float(jnp.max(jax.jit(player)(_view(), jnp.array([True, True])))) == 1
    gained = play_for_gains(GAME, Policy(lambda params, view, legal: jnp.array([0.0, 1.0])), policy, games=16)[GAIN]
    assert np.isfinite(gained).all()
    assert gained.any()
