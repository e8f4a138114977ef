"""What the deep regret minimisers are made of: states that resume, counters, settings that do not fit."""

from __future__ import annotations

import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dream_support import CoinGame, arrays

import envs
from dream import algorithms
from dream.algorithms.deep import history_values
from dream.algorithms.deep.samplers import OutcomeSampler, WeightConfig
from dream.algorithms.types import Algorithm
from dream.config.compose import compose_config
from dream.equations import schedules
from dream.equations.reward_shaping import ShapingConfig
from dream.rollout import self_play
from dream.storage.checkpoint import find
from dream.storage.checkpoint_writer import CheckpointWriter
from dream.training.metrics import COUNTERS
from envs import InputError

DEEP = ("deep_cfr", "sd_cfr", "os_sd_cfr", "dream", "escher", "vr_dcfr_plus")
RESERVOIR = "algo.memory.kind=reservoir"


def _learner(algo: str, *overrides: str) -> Algorithm:
    node = compose_config("config", [f"algo={algo}", "env=kuhn_poker", "preset=tiny", *overrides]).node
    return algorithms.make(node.algo, node.network, envs.make("kuhn_poker"))


def _iterated(learner: Algorithm, state: Any, times: int) -> Any:
    for _ in range(times):
        state, _ = learner.iterate(state)
    return state


@pytest.mark.parametrize(
    ("algo", "overrides"),
    [("deep_cfr", (RESERVOIR,)), ("dream", ()), ("vr_dcfr_plus", ("algo.average.source=network",))],
)
def test_stopped_and_resumed_equals_never_stopped(
    tmp_path: pathlib.Path, algo: str, overrides: tuple[str, ...]
) -> None:
    """Networks, memories, averages and values agree bit for bit after a checkpoint in between."""
    learner = _learner(algo, *overrides)
    halfway = _iterated(learner, learner.init(jax.random.key(7)), 2)
    writer = CheckpointWriter(tmp_path, 1)
    writer.save(2, halfway, {"config": {}, "game": {"name": "kuhn_poker", "version": "1"}})
    writer.close()
    resumed = find(tmp_path).restore(_learner(algo, *overrides).init(jax.random.key(7)))
    for one, other in zip(
        arrays(_iterated(learner, halfway, 2)._replace(key=None)),
        arrays(_iterated(learner, resumed, 2)._replace(key=None)),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("algo", DEEP)
def test_counters(algo: str) -> None:
    """Both players' games, decisions of the updated player among all nodes, every gradient step of every fit."""
    learner = _learner(algo)
    state, metrics = learner.iterate(learner.init(jax.random.key(0)))
    assert {name: metrics[name] > 0 for name in COUNTERS} == dict.fromkeys(COUNTERS, True)
    assert metrics["episodes"] == 2 * 16
    assert metrics["decisions"] < metrics["nodes"] <= metrics["transitions"]
    assert metrics["gradient_steps"] == 2 * 2 + (2 if state.values is not None else 0)
    _, second = learner.iterate(state)
    fits = 2 * 2 if state.average is not None else 0
    assert second["gradient_steps"] == metrics["gradient_steps"] + fits, (
        "the average's own steps count when it is fitted"
    )


@pytest.mark.parametrize("algo", DEEP)
def test_first_policy_is_uniform(algo: str) -> None:
    """Before the first fit there are no regrets, and no legal action is preferred."""
    learner, game = _learner(algo), envs.make("kuhn_poker")
    state = learner.init(jax.random.key(0))
    hand = game.init(jax.random.key(1))
    policy = learner.policies(state)["current"]
    np.testing.assert_allclose(policy(game.view(hand, 0), game.legal_actions(hand)), [0.5, 0.5])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"memory": {"kind": "infoset_sums"}},
            "algo.memory.kind=infoset_sums needs an enumerable game, which coin is not",
        ),
        ({"average": {"source": "exact_mixture"}}, "algo.average.source=exact_mixture needs an enumerable game"),
        ({"traversals": 4, "num_envs": 8}, "algo.num_envs=8 is more than"),
    ],
)
def test_settings_that_do_not_fit(settings: dict[str, Any], message: str) -> None:
    """One clear line each."""
    with pytest.raises(InputError, match=message):
        algorithms.make({"name": "dream", **settings}, {"hidden": [8]}, CoinGame())


def test_more_than_two_players_are_refused() -> None:
    """By name and number."""
    with pytest.raises(
        InputError, match="algo=escher needs a two-player zero-sum game, and rummy500 has 3 players; use ppo"
    ):
        algorithms.make({"name": "escher"}, {"hidden": [8]}, envs.make("rummy500", num_players=3))


@pytest.mark.parametrize("name", ["dream", "escher", "os_sd_cfr", "vr_dcfr_plus"])
def test_games_that_are_not_zero_sum_are_refused(name: str) -> None:
    """Player 1's rewards would be taken for the negative of player 0's."""
    with pytest.raises(InputError, match="rummy500 is not zero-sum with these rules"):
        algorithms.make({"name": name}, {"hidden": [8]}, envs.make("rummy500", num_players=2, rewards="points"))


def test_outcome_sampling_needs_no_tree() -> None:
    """On a game that cannot be enumerated the average is a network, and an iteration runs."""
    config = {"name": "dream", "traversals": 8, "fit": {"steps": 1}, "memory": {"capacity": 64}}
    config |= {"average": {"every": 1, "capacity": 64, "fit": {"steps": 1}}, "values": {"steps": 1, "capacity": 64}}
    game = CoinGame()
    learner = algorithms.make(config, {"hidden": [8]}, game)
    state, metrics = learner.iterate(learner.init(jax.random.key(0)))
    hand = game.init(jax.random.key(1))
    chances = learner.policies(state)["average"](game.view(hand, 0), game.legal_actions(hand))
    np.testing.assert_allclose(np.sum(chances), 1.0, rtol=1e-6)
    assert 0 < metrics["sampling/effective_sample_size"] <= 1


def test_shaped_rewards_are_zero_sum() -> None:
    """Half the difference of what the players are paid: a win bonus counts whole, one's own shedding half."""
    game = envs.make("mini_gin_rummy")
    shaping = ShapingConfig(form="literal", scale=schedules.constant(2.0), tie_penalty=0.0, win_bonus=3.0)
    shaped = OutcomeSampler(game, 64, 64, 0.5, WeightConfig(), shaping=shaping)
    actor = self_play.Actor(
        lambda key: (),
        lambda carry, view, legal, player, key: (game.num_actions - 1 - jnp.argmax(legal[::-1]), carry, ()),
    )
    played = jax.jit(lambda key: self_play.play(game, actor, key, games=64, num_envs=64))(jax.random.key(0))
    d = jax.tree.map(lambda x: x[played.valid], played.decisions)
    own, change = d.rewards[:, 0], d.potentials[:, 1] - d.potentials[:, 0]
    expected = own + 2.0 * (change[:, 0] - change[:, 1]) / 2 + 3.0 / game.reward_scale * jnp.sign(own) * d.done
    assert np.any(np.asarray(own) != 0)
    np.testing.assert_allclose(shaped._rewards(d, jnp.int32(0)), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["algo.shaping.tie_penalty=-5"], "algo.shaping.tie_penalty=-5.0 is not zero-sum"),
        (["algo.weights.power=12"], "algo.weights.power=12.0 is out of range"),
        (["algo.average.power=12"], "algo.average.power=12.0 is out of range"),
        (["algo.shaping.win_bonus=2", "algo.values.chance=exact"], "cannot be combined with algo.values.chance=exact"),
        (["algo=escher", "algo.values.chance=exact"], "no effect with algo.correction.clip=0"),
        (["algo=deep_cfr", "algo.weights.clip=5"], "algo.weights.importance and algo.weights.clip have no effect"),
        (
            ["algo=sd_cfr", "algo.average.importance=true"],
            "algo.average.importance and algo.average.clip have no effect",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(overrides: list[str], message: str) -> None:
    """Regrets need zero-sum games; outcomes that chance did not make have no potentials; what is not used is named."""
    with pytest.raises(InputError, match=message):
        _learner("dream", *overrides)


@pytest.mark.parametrize("sync_every", [1, 5])
def test_the_loss_of_a_baseline_is_the_mean_over_its_fit(monkeypatch: pytest.MonkeyPatch, sync_every: int) -> None:
    """Of all periods between copies of the target network, not of the last one, whose loss is the least."""

    def fitted(
        loss: Any, optimizer: Any, params: Any, optimizer_state: Any, batch: Any, *, steps: int, **_: Any
    ) -> Any:
        losses = params - jnp.arange(steps)
        return params - steps, optimizer_state, {"baseline_loss": jnp.mean(losses), "gradient_norm": jnp.float32(0)}

    monkeypatch.setattr(history_values, "fit", fitted)
    monkeypatch.setattr(history_values, "_batches", lambda *_: None)
    config = history_values.HistoryValueConfig(steps=20, sync_every=sync_every)
    state = history_values.ValueState(jnp.float32(100), (), None)
    state, metrics = history_values.learn(None, config, state, None, jax.random.key(0))
    assert state.params == 80
    assert metrics["baseline_loss"] == pytest.approx(100 - np.arange(20).mean())


@pytest.mark.parametrize("kind", ["reservoir", "infoset_sums"])
def test_types_stay_with_double_precision(kind: str) -> None:
    """Under jax_enable_x64 an iteration keeps the types of the state, so that what is stored can be loaded."""
    game, fit = envs.make("kuhn_poker"), {"steps": 1, "batch_size": 8}
    memory = {"kind": kind} if kind == "infoset_sums" else {"kind": kind, "capacity": 64}
    config = {"name": "dream", "traversals": 2, "fit": fit, "values": fit, "memory": memory}
    learner = algorithms.make(config, {"name": "dueling", "hidden": [4]}, game)

    def kinds(state: Any) -> list[str]:
        return [f"{jax.tree_util.keystr(path)} {x.dtype}" for path, x in jax.tree_util.tree_leaves_with_path(state)]

    single = kinds(learner.init(jax.random.key(0)))
    with jax.enable_x64(True):
        state = learner.init(jax.random.key(0))
        assert kinds(state) == single
        state, _ = learner.iterate(state)
        assert kinds(state) == single
        view = game.view(game.init(jax.random.key(0)), 0)
        assert learner.policies(state)["current"](view, np.ones(2, bool)).dtype == np.float32
