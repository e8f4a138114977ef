"""What learners compute, written out once more in NumPy: targets, weights, schedules, losses, each part by itself."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dream_support import CoinGame
from tree_values import tree_of

import envs
from dream import algorithms
from dream.algorithms import average_policy, rnad
from dream.algorithms.average_policy import AverageConfig, AveragePolicy
from dream.algorithms.deep.regret_fit import PlayerNetwork
from dream.algorithms.deep.regret_networks import Row
from dream.algorithms.deep.state import DeepState
from dream.algorithms.mmd import MmdConfig, _regulariser
from dream.algorithms.ppo.loss import Example, make_loss
from dream.algorithms.ppo.regularisation import NewPolicy, entropy_bonus
from dream.algorithms.ppo.settings import PpoConfig
from dream.algorithms.types import Resources
from dream.buffers import reservoir
from dream.equations import schedules
from dream.equations.schedules import Schedule
from dream.networks import Network, make_network
from envs import Game

KUHN = envs.make("kuhn_poker")
NETWORK = {"name": "dueling", "hidden": [4]}
RESOURCES = Resources(find_tree=lambda game: tree_of(game.name))


def _learner(name: str, game: Game = KUHN, **settings: Any) -> Any:
    return algorithms.make({"name": name, **settings}, NETWORK, game, RESOURCES).iterate.__self__


def _constant(network: Network, outputs: list[float]) -> Any:
    """Returns parameters whose first output is the same whatever the network reads, and whose value is 0."""
    params = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), jax.eval_shape(network.init, jax.random.key(0)))
    params["advantages"]["b"][:] = outputs
    return jax.tree.map(jnp.asarray, params)


def _logs(logits: np.ndarray, legal: np.ndarray) -> np.ndarray:
    """Returns the logarithm of the softmax over legal actions; 0 elsewhere."""
    weights = np.where(legal, np.exp(logits.astype(np.float64)), 0.0)
    return np.log(np.where(legal, weights / weights.sum(axis=-1, keepdims=True), 1.0))


def test_vr_dcfr_plus_adds_to_discounted_positive_regrets() -> None:
    """D max(R, 0) + r with D = (t - 1)^2 / ((t - 1)^2 + 1.5) in iterations t = 1, 2 and 4; r alone before any fit."""
    game = CoinGame()
    fit = _learner("vr_dcfr_plus", game).regret_fit
    view = jax.tree.map(lambda x: jnp.asarray(x)[None], game.view(game.init(jax.random.key(0)), 0))
    sampled = np.array([[0.5, -1.0, 0.0]], np.float32)
    rows = Row(view, jnp.packbits(np.array([[1, 1, 0]], bool), axis=-1), jnp.asarray(sampled), jnp.ones(1))
    own = PlayerNetwork(_constant(fit.network, [3.0, -2.0, 5.0]), jnp.bool_(True), jnp.float32(2.0), ())
    for iteration, discount in ((0, 0.0), (1, 1 / 2.5), (3, 9 / 10.5)):
        target = fit._cumulative(own, rows, jnp.int32(iteration)).target
        np.testing.assert_allclose(target, sampled + discount * np.array([[2.0 * 3.0, 0.0, 0.0]]), rtol=1e-5)
    unfitted = fit._cumulative(own._replace(fitted=jnp.bool_(False)), rows, jnp.int32(3))
    np.testing.assert_array_equal(unfitted.target, sampled)


@pytest.mark.parametrize("power", [12.0, 100.0])
def test_vr_dcfr_plus_forgets_nothing_by_a_large_power(power: float) -> None:
    """Its powers of t are soon more than a float32 holds."""
    target = _learner("vr_dcfr_plus", discount_power=power).recipe.cumulative_target
    factors = [float(target(jnp.ones(()), jnp.int32(t))) for t in (0, 1, 3, 100, 10_000)]
    np.testing.assert_allclose(factors, [0.0, 0.4, 1.0, 1.0, 1.0], atol=1e-5)


@pytest.mark.parametrize("reinitialise", [False, True])
def test_a_player_without_samples_is_not_fitted(reinitialise: bool) -> None:
    """Its policy stays uniform, and the scale of its targets is that of the first samples; later it stays as it is."""
    game, settings = CoinGame(), {"steps": 1, "batch_size": 2, "reinitialise": reinitialise}
    fit = _learner("vr_dcfr_plus", game, fit=settings, memory={"capacity": 4}).regret_fit
    view = jax.tree.map(lambda x: jnp.asarray(x)[None], game.view(game.init(jax.random.key(0)), 0))
    legal = jnp.packbits(np.array([[1, 1, 0]], bool), axis=-1)
    rows = Row(view, legal, jnp.array([[2.0, -2.0, 0.0]]), jnp.ones(1))
    params = fit.network.init(jax.random.key(1))
    buffer = fit.empty(jax.tree.map(lambda x: x[0], rows))
    own = PlayerNetwork(params, jnp.bool_(False), jnp.float32(1.0), buffer)
    for came in (False, True):
        own, _ = fit(own, rows, jnp.array([came]), jnp.int32(0), jnp.int32(0), jax.random.key(2))
        assert bool(own.fitted) == came
    np.testing.assert_allclose(own.scale, 2.0, rtol=1e-6)
    again, _ = fit(own, rows, jnp.array([False]), jnp.int32(0), jnp.int32(0), jax.random.key(3))
    chex.assert_trees_all_equal((again.params, again.fitted, again.scale), (own.params, own.fitted, own.scale))


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_the_exact_average_weighs_iterations(power: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Always passing in iteration 0 and always betting in iteration 2 are mixed 1 : 3^power, by own reach."""
    learner, tree = _learner("vr_dcfr_plus", average={"power": power}), tree_of("kuhn_poker")
    monkeypatch.setattr(type(learner), "_table", lambda self, networks: networks)
    plans = np.zeros(tree.legal.shape)
    for iteration, action in ((0, 0), (2, 1)):
        always = np.zeros(tree.legal.shape, np.float32)
        always[:, action] = 1.0
        for player in range(2):
            state = DeepState(always, (), None, plans, None, None, jnp.int32(iteration))
            plans = learner._with_average(state, player, None).plans
    later = np.asarray(tree.depth) > 0  # player 0 decides again after it passed alone
    np.testing.assert_allclose(plans[~later], np.tile([1.0, 3.0**power], (9, 1)))
    np.testing.assert_allclose(plans[later], np.tile([1.0, 0.0], (3, 1)))


def test_the_fitted_average_weighs_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decision of reach 0.5 weighs 0.5 in iteration 0 and 4.5 in iteration 2, by (t + 1)^2; batches have mean 1."""
    batches = []

    def fit(loss: Any, optimizer: Any, params: Any, state: Any, batch: Any, **rest: Any) -> tuple[Any, Any, Any]:
        batches.append(batch)
        return params, state, {"loss": 0.0}

    monkeypatch.setattr(average_policy, "fit", fit)
    average = AveragePolicy(AverageConfig(capacity=4, batch_size=32, power=2.0), KUHN, make_network(NETWORK, KUHN))
    row = average_policy.Played((), jnp.zeros(1, jnp.uint8), jnp.zeros(2, jnp.float16), jnp.float32(0.5))
    kept = average_policy.Average((), (), reservoir.empty(row, 4))
    for iteration, policy in ((0, [1.0, 0.0]), (2, [0.0, 1.0])):
        rows = jax.tree.map(lambda x: x[None], row._replace(policy=jnp.array(policy, jnp.float16)))
        kept, _ = average.update(
            kept, rows, jnp.ones(1, bool), jnp.int32(iteration), jax.random.key(2), decay=jnp.float32(1.0)
        )
    np.testing.assert_allclose(kept.buffer.rows.weight, [0.5, 4.5, 0.0, 0.0])
    np.testing.assert_array_equal(kept.buffer.rows.policy[:2], np.eye(2))
    drawn = batches[-1](0)
    np.testing.assert_allclose(drawn.weight, np.where(drawn.policy[:, 1] == 1, 4.5, 0.5) / 2.5, rtol=1e-5)
    assert len(np.unique(drawn.weight)) == 2


def test_rnad_goes_from_the_last_anchor_to_the_new_one() -> None:
    """The penalty paid is sum pi (log pi - a log rho_m - (1 - a) log rho_(m-1)), a = min(2 n / period, 1)."""
    learner = _learner("rnad", episodes_per_iteration=2, batch_games=2, period=8, eta=0.5)
    logits = {"params": [0.3, -0.4], "anchor": [1.5, 0.0], "last_anchor": [-1.0, 1.0]}
    networks = {name: _constant(learner.network, values) for name, values in logits.items()}
    key, done = jax.random.key(0), jnp.ones((1, 2), bool)
    start = rnad.RnadState(
        optimizer_state=learner.optimizer.init(networks["params"]), target=networks["params"], **networks,
        key=key, iteration=jnp.int32(0),
    )  # fmt: skip
    played = rnad.Played(
        jnp.zeros((1, 2, learner.network.inputs.size)), jnp.ones((1, 2, 2), bool), jnp.zeros((1, 2), jnp.int32),
        jnp.array([[0, 1]], jnp.int32), jnp.full((1, 2), 0.5), jnp.zeros((1, 2, 2)), done, done,
    )  # fmt: skip
    own, new, last = (_logs(np.array(x), np.ones(2, bool)) for x in logits.values())
    for iteration, share in ((0, 0.0), (2, 0.5), (4, 1.0), (7, 1.0), (8 + 1, 0.25)):
        _, metrics, _ = learner.learn(start._replace(iteration=jnp.int32(iteration)), played)
        paid = np.sum(np.exp(own) * (own - share * new - (1.0 - share) * last))
        assert metrics["regularisation"] == pytest.approx(paid, rel=1e-4), iteration


@pytest.mark.parametrize("falls", [True, False])
def test_mmd_steps_fall_with_the_strength(falls: bool) -> None:
    """In the second iteration alpha is 3/4 of the first one's; the weight of KL(pi, pi_then) is 4/3 of it, or stays."""
    decay = Schedule(1.0, 0.5, 2)
    config = MmdConfig(entropy_weight=0.3, kl_weight=0.6, entropy_decay=decay, step_falls=falls)
    logs, ratio = np.log(np.array([[0.8, 0.2]], np.float32)), np.array([0.8 / 0.5], np.float32)
    new = NewPolicy(jnp.zeros((1, 1)), jnp.ones((1, 2), bool), jnp.asarray(logs), jnp.log(ratio))
    attraction, proximity = np.sum(np.exp(logs) * logs), np.mean(ratio * np.log(ratio) - (ratio - 1.0))
    for iteration, factor in ((0, 1.0), (1, 0.75)):
        at = functools.partial(schedules.at, iteration=jnp.int32(iteration))
        penalty, metrics = _regulariser(config, None).penalty((), at, new)
        alpha, beta = 0.3 * factor, 0.6 / factor if falls else 0.6
        assert (metrics["entropy_weight"], metrics["kl_weight"]) == pytest.approx((alpha, beta))
        assert penalty == pytest.approx(alpha * attraction + beta * proximity, rel=1e-5)


@pytest.mark.parametrize("unit", ["batch", "reward"])
@pytest.mark.parametrize("value_loss", ["absolute", "relative"])
def test_ppo_loss_written_out(unit: str, value_loss: str) -> None:
    """Policy loss, one row clipped, plus weighted losses of value and auxiliary head, minus weighted entropy."""
    config = PpoConfig(
        clip_epsilon=0.2, value_weight=2.0, auxiliary_weight=0.7, keep_inputs=True, advantage_unit=unit,
        value_loss=value_loss,
    )  # fmt: skip
    legal = np.array([[1, 1, 1], [1, 0, 1], [0, 1, 1]], bool)
    logits = np.array([[0.5, -0.2, 0.1], [0.3, 9.0, -0.6], [-5.0, 0.8, 0.4]], np.float32)
    value, predicted = np.array([0.2, -0.4, 1.0], np.float32), np.array([0.1, 0.9, 0.5], np.float32)
    returns, auxiliary = np.array([1.0, -2.0, 0.5], np.float32), np.array([0.0, 0.5, 1.0], np.float32)
    action, advantage = np.array([0, 2, 1]), np.array([2.0, -1.0, 0.3], np.float32)
    ratio = np.array([1.5, 1.1, 0.9])  # the first is beyond the clip, and its advantage positive
    logs = _logs(logits, legal)
    behaviour = np.exp(logs[np.arange(3), action]) / ratio
    outputs = jnp.asarray(logits), jnp.asarray(value)
    network = SimpleNamespace(auxiliary_prediction=lambda params, x: (outputs, jnp.asarray(predicted)))
    penalty = entropy_bonus(0.3, schedules.constant(1.0)).penalty
    examples = Example(
        jnp.zeros((3, 1)), jnp.packbits(legal, axis=-1), jnp.asarray(action, jnp.int16),
        jnp.asarray(behaviour, jnp.float32), jnp.asarray(advantage), jnp.asarray(returns), jnp.asarray(auxiliary),
    )  # fmt: skip
    at = functools.partial(schedules.at, iteration=jnp.int32(0))
    loss = make_loss(config, network, 3, lambda new: penalty((), at, new))
    total, metrics = loss((), examples)

    if unit == "batch":
        advantage = (advantage - advantage.mean()) / advantage.std()
    policy = -np.mean([1.2, 1.1, 0.9] * advantage)
    squares = np.mean((value - returns) ** 2) / (returns.var() if value_loss == "relative" else 1.0)
    guess, entropy = np.mean((predicted - auxiliary) ** 2), -np.mean(np.sum(np.exp(logs) * logs, axis=1))
    assert metrics["loss_policy"] == pytest.approx(policy, rel=1e-4)
    assert metrics["loss_value"] == pytest.approx(squares, rel=1e-4)
    assert metrics["loss_auxiliary"] == pytest.approx(guess, rel=1e-4)
    assert metrics["entropy"] == pytest.approx(entropy, rel=1e-4)
    assert metrics["clipped"] == pytest.approx(1 / 3)
    assert total == pytest.approx(policy + 2.0 * squares + 0.7 * guess - 0.3 * entropy, rel=1e-4)


def test_nfsp_bootstraps_from_the_own_next_decision() -> None:
    """A player's move leads to what it sees and may do at its own next decision of the same game, or nowhere."""
    game = CoinGame(tagged=True)  # each game has a number, and rows of one game are found by it
    learner = _learner("nfsp", game, episodes_per_iteration=16, num_envs=3, discount=0.5)
    state, *_ = learner.generate(learner.init(jax.random.key(0)))
    buffer = jax.device_get(state.best_response.buffer)
    moves = jax.tree.map(lambda x: x[: int(buffer.seen)], buffer.rows)
    count = (moves.view.moves > 0).sum(axis=1)
    place = {(int(tag), int(n)): row for row, (tag, n) in enumerate(zip(moves.view.tag, count, strict=True))}
    assert len(place) == len(count), "a number was drawn twice"
    follows = 0
    for (tag, n), row in place.items():
        later = place.get((tag, n + 2))  # the two players take turns
        assert moves.discount[row] == (0.0 if later is None else 0.5)
        if later is not None:
            follows += 1
            ahead = moves._replace(view=moves.next_view, legal=moves.next_legal)
            for name in ("view", "legal"):
                jax.tree.map(
                    lambda got, own, row=row, later=later: np.testing.assert_array_equal(got[row], own[later]),
                    getattr(ahead, name), getattr(moves, name),
                )  # fmt: skip
    assert follows > 3
