"""The learner's parts put together, on the coin game: what is played, what it is taught, how its networks move."""

from __future__ import annotations

import functools
import itertools
import json
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dream_support import CoinGame, arrays, coin_trees, exact_action_values, nodes

import envs
from dream import algorithms
from dream.algorithms.dueling_dream import DuelingDreamConfig
from dream.algorithms.dueling_dream.games import _actor
from dream.algorithms.dueling_dream.loss import dueling_loss, with_targets
from dream.algorithms.types import Algorithm, Resources
from dream.equations.mirror_descent import mirror_descent_policy
from dream.equations.regret_matching import masked_softmax, soft_regret_matching
from dream.equations.returns import lambda_returns
from dream.equations.reward_shaping import shaping_reward
from dream.networks.layers import POLICY
from dream.rollout.opponents import make_mixture
from envs import Game, InputError, Policy

BASE = {
    "name": "dueling_dream", "episodes_per_iteration": 512, "batch_size": 64, "epochs": 3, "discount": 0.9,
    "unit": "reward",
    "shaping": {"scale": {"start": 0.0, "end": 0.0}, "tie_penalty": 0.0},
}  # fmt: skip
NETWORK = {"name": "dueling", "hidden": [16, 8]}


def _make(game: Game | None = None, **changes: Any) -> Algorithm:
    """Builds the learner, the same one for the same settings, so that it compiles once."""
    return _made(game or CoinGame(), json.dumps({**BASE, **changes}))


@functools.cache
def _made(game: Game, config: str) -> Algorithm:
    return algorithms.make(json.loads(config), NETWORK, game)


def _shaping(scale: float, penalty: float = 0.0, form: str = "potential") -> dict[str, Any]:
    return {"form": form, "scale": {"start": scale, "end": scale}, "tie_penalty": penalty}


def _examples(game: Game | None = None, **changes: Any) -> Any:
    """Returns the examples of the first iteration, which plays uniformly: the same games whatever the rewards."""
    learner = _make(game, **changes).iterate.__self__
    replay = learner.generate(_started(3, **changes))[0].replay
    return jax.device_get(jax.tree.map(lambda x: x[replay.index[: int(replay.count)]], replay.rows))


def _started(seed: int, **changes: Any) -> Any:
    """Returns a learner's first state, which few settings have a part in."""
    starts = {name: changes[name] for name in ("accumulate", "initial_scale") if name in changes}
    return _make(**starts).init(jax.random.key(seed))


@functools.cache
def _moved() -> Any:
    """Returns a state whose target network is not the online one."""
    changes = {"uniform_iterations": 0, "target_update_period": 2, "learning_rate": 0.02}
    return _learned(_make(**changes).iterate.__self__, _started(0))


def _learned(learner: Any, state: Any) -> Any:
    """Returns the next iteration's state, by the two programs that tests call by themselves."""
    return learner.learn(state, learner.generate(state)[0].replay)[0]


@functools.cache
def _five_iterations() -> tuple[list[Any], list[dict[str, float]]]:
    """Returns the states of five iterations, the first one as well, and their metrics; all schedules move."""
    algorithm = _make(
        uniform_iterations=2, temperature={"start": 1.0, "end": 1e-4, "transition_steps": 4}, learning_rate=0.05,
        learning_rate_decay={"start": 1.0, "end": 0.0, "transition_steps": 8}, target_update_period=2, tau=0.25,
    )  # fmt: skip
    states, rows = [algorithm.init(jax.random.key(0))], []
    for _ in range(5):
        state, metrics = algorithm.iterate(states[-1])
        states.append(state)
        rows.append(metrics)
    return states, rows


def test_returns_are_what_the_game_pays() -> None:
    """Without shaping the mean return of every action under uniform play is the exact Q, within 5 standard errors."""
    rows, trees = _examples(), coin_trees(CoinGame())
    uniform = {node.key: node.legal / node.legal.sum() for tree in trees for node in nodes(tree)}
    q, _ = exact_action_values(trees, uniform, 0.9)
    keys = [b"".join(np.asarray(x[n]).tobytes() for x in rows.view) for n in range(len(rows.action))]
    for key, values in q.items():
        here = np.array([k == key for k in keys])
        np.testing.assert_allclose(rows.policy[here], np.tile(uniform[key], (here.sum(), 1)), atol=1e-3)
        for action in np.flatnonzero(np.isfinite(values)):
            own = rows.returns[here & (rows.action == action)]
            assert abs(own.mean() - values[action]) < 5 * own.std() / math.sqrt(len(own)) + 1e-6


def test_shaping_scale_is_in_raw_points() -> None:
    """Potential form, scale 0.5, potential -0.4 and -0.2: every return of the two players is 0.2 and 0.1 more."""
    plain, shaped = _examples(), _examples(CoinGame(flat=True), shaping=_shaping(0.5))
    np.testing.assert_array_equal(plain.action, shaped.action)
    more = np.where(plain.view.seat == 0, 0.2, 0.1)
    np.testing.assert_allclose(shaped.returns - plain.returns, more, atol=1e-6)


def test_literal_shaping_of_a_flat_potential_pays_nothing() -> None:
    """Nothing is shed, the end included."""
    plain, shaped = _examples(), _examples(CoinGame(flat=True), shaping=_shaping(0.5, form="literal"))
    np.testing.assert_allclose(shaped.returns, plain.returns, atol=1e-6)


def test_tie_penalty_is_in_raw_points() -> None:
    """-5 raw, a reward of 1 being 10 points: -0.5 at the end of a tied game, discounted by the moves to it."""
    plain, punished = _examples(), _examples(shaping=_shaping(0.0, -5.0))
    less = plain.returns - punished.returns
    left = np.round(np.log(np.maximum(less, 1e-9) / 0.5) / math.log(0.9))
    drawn = less > 1e-6
    assert 0.02 < drawn.mean() < 0.5
    np.testing.assert_allclose(less[drawn], 0.5 * 0.9 ** left[drawn], rtol=1e-4)
    assert set(left[drawn]) == {0, 1, 2}


def test_first_iterations_play_uniformly_then_by_temperature() -> None:
    """Entropy log(legal actions) and temperature inf for `uniform_iterations`; then the schedule, counted from 0."""
    _, rows = _five_iterations()
    assert [m["temperature"] for m in rows] == pytest.approx([math.inf, math.inf, 0.50005, 0.250075, 1e-4], rel=1e-3)
    for metrics in rows[:2]:
        assert metrics["entropy/first"] == pytest.approx(math.log(3), abs=1e-3)
        assert metrics["entropy/last"] == pytest.approx(math.log(2), abs=1e-3)
    assert rows[4]["entropy/first"] < 0.5


def test_target_network_moves_every_so_often() -> None:
    """Every second iteration by a quarter of the way; else it stays; at first both are the same network."""
    states, _ = _five_iterations()
    for a, b in zip(arrays(states[0].params), arrays(states[0].target), strict=True):
        np.testing.assert_array_equal(a, b)
    for before, after in itertools.pairwise(states):
        moves = int(after.iteration) % 2 == 0
        for old, new, params in zip(*(arrays(x) for x in (before.target, after.target, after.params)), strict=True):
            expected = old + 0.25 * (params - old) if moves else old
            np.testing.assert_allclose(new, expected, atol=1e-6)
            assert moves or np.array_equal(new, old)
            assert not np.array_equal(params, new)


@pytest.mark.parametrize("actor", ["target", "online"])
def test_the_actor_plays_and_is_kept(actor: str) -> None:
    """In self-play and in the policy that is measured; the target network moves slower, so the two differ."""
    cold = {"start": 0.05, "end": 0.05, "transition_steps": 1}
    algorithm = _make(actor=actor, uniform_iterations=0, temperature=cold)
    learner, state = algorithm.iterate.__self__, _moved()
    replay = learner.generate(state)[0].replay
    row = jax.tree.map(lambda x: x[replay.index[0]], replay.rows)
    legal = jnp.unpackbits(row.legal, count=3).astype(bool)
    kept = algorithm.policies(state)["current"]
    temperature, x = kept.params["temperature"], learner.parts.network.inputs.of_view(row.view)
    chances = {
        name: np.asarray(soft_regret_matching(learner.parts.network.apply_inputs(params, x)[0], legal, temperature))
        for name, params in (("target", state.target), ("online", state.params))
    }
    assert np.abs(chances["target"] - chances["online"]).max() > 2e-3
    np.testing.assert_allclose(kept(row.view, legal), chances[actor], atol=1e-6)
    np.testing.assert_allclose(row.policy, chances[actor], atol=1e-3)


@pytest.mark.parametrize("actor", ["target", "online"])
@pytest.mark.parametrize("baseline", ["value", "policy"])
def test_targets_by_the_networks_of_the_iterations_start(baseline: str, actor: str) -> None:
    """Untaken actions keep the target network's advantages; or all are measured from the mean under the policy.

    What the target network said as it played is what it says of the rows; where another played, it is asked.
    """
    learner = _make(baseline=baseline, actor=actor, uniform_iterations=0).iterate.__self__
    state = _moved()
    replay = learner.generate(state)[0].replay
    rows = jax.tree.map(lambda x: x[replay.index[:50]], replay.rows)
    batch = with_targets(learner.parts, state.params, state.target, rows)
    guess, value = (np.asarray(x) for x in learner.parts.network.apply_inputs(state.target, batch.inputs))
    latest = np.asarray(learner.parts.network.apply_inputs(state.params, batch.inputs)[1])
    if baseline == "value":
        expected = np.where(batch.taken, (rows.returns - latest)[:, None], guess)
    else:
        q = np.where(batch.taken, rows.returns[:, None], value[:, None] + guess)
        expected = q - np.sum(np.where(batch.legal, rows.policy * q, 0.0), axis=1, keepdims=True)
    np.testing.assert_allclose(batch.targets, np.where(batch.legal, expected, 0.0), atol=1e-5)


@pytest.mark.parametrize(("game", "kept"), [("gin_rummy", True), ("rummy500", False)])
def test_advantages_are_kept_where_they_are_few(game: str, kept: bool) -> None:
    """Not 5.5 GB of them, those of 8,192 games of rummy 500."""
    learner = algorithms.make({"name": "dueling_dream"}, {"name": "dueling"}, envs.make(game)).iterate.__self__
    assert learner.parts.keeps_advantages == kept


@pytest.mark.parametrize(("unit", "steps"), [("minibatches", 3), ("passes", None)])
def test_counters(unit: str, steps: int | None) -> None:
    """Episodes, decisions, steps and rows through networks; of three passes each decision three times."""
    _, metrics = (algorithm := _make(epoch_unit=unit, num_envs=100)).iterate(algorithm.init(jax.random.key(2)))
    assert metrics["episodes"] == 512
    assert 512 < metrics["decisions"] == metrics["nodes"] < 3 * 512
    assert metrics["transitions"] == metrics["decisions"] + 512, "each deal is one"
    assert metrics["self_play/length"] == pytest.approx(metrics["decisions"] / 512)
    assert metrics["gradient_steps"] == (steps or 3 * math.ceil(metrics["decisions"] / 64))
    fitted = 2 * (64 * steps if steps else 3 * metrics["decisions"])  # by the network and that of the start
    assert metrics["network_rows"] == metrics["decisions"] + fitted
    assert all(isinstance(value, float) for value in metrics.values())
    assert {
        "seconds_generate",
        "seconds_fit",
        "gradient_norm",
        "target_drift",
        "value_explained_variance",
    } < metrics.keys()


def test_learning_rate_decays_with_the_iteration() -> None:
    """The factor of its schedule, at the iterations done before."""
    rates = [metrics["learning_rate"] for metrics in _five_iterations()[1]]
    assert rates == pytest.approx([0.05, 0.04375, 0.0375, 0.03125, 0.025])


def test_an_iteration_is_a_function_of_its_state() -> None:
    """Twice from one state is bit for bit the same; the next iteration plays other games; another seed differs."""
    algorithm = _make(epoch_unit="minibatches", num_envs=100)
    start = algorithm.init(jax.random.key(5))
    (one, metrics), (two, again) = algorithm.iterate(start), algorithm.iterate(start)
    for a, b in zip(arrays(one), arrays(two), strict=True):
        np.testing.assert_array_equal(a, b)
    same = [name for name in metrics if not name.startswith("seconds")]
    assert {name: metrics[name] for name in same} == {name: again[name] for name in same}
    following = algorithm.iterate(one)[1]
    assert following["training_return_mean"] != metrics["training_return_mean"]
    other = algorithm.iterate(algorithm.init(jax.random.key(6)))[1]
    assert other["training_return_mean"] != metrics["training_return_mean"]


def _batch(legal: np.ndarray) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    size = len(legal)
    taken = np.eye(3, dtype=bool)[[int(np.flatnonzero(row)[0]) for row in legal]]
    targets = np.where(legal, rng.normal(size=(size, 3)), 0.0)
    played = legal / legal.sum(axis=1, keepdims=True)
    inputs, returns, counts = rng.random((size, 17)), rng.normal(size=size), rng.random(size)
    return tuple(map(jnp.asarray, (inputs, legal, taken, targets, returns, played, counts)))


def test_loss_written_out() -> None:
    """Squared errors over legal actions + value_weight * that of the value; untaken actions and rows may count less."""
    legal = np.array([[1, 1, 0], [0, 1, 1], [1, 1, 1], [0, 0, 1]], bool)
    batch = _batch(legal)
    for untaken, value_weight, corrected in ((1.0, 0.5, False), (0.25, 2.0, True)):
        changes = {"untaken_weight": untaken, "value_weight": value_weight, "correct_exploration": corrected}
        learner = _make(**changes).iterate.__self__
        params = jax.jit(learner.parts.network.init)(jax.random.key(0))
        total, metrics = dueling_loss(learner.parts, params, batch)
        advantages, values = (np.asarray(x) for x in learner.parts.network.apply_inputs(params, batch[0]))
        _, _, taken, targets, returns, _, counts = (np.asarray(x) for x in batch)
        counts = counts if corrected else np.ones_like(counts)
        weights = np.where(legal, np.where(taken, 1.0, untaken), 0.0)
        advantage_loss = np.sum(counts[:, None] * weights * (advantages - targets) ** 2) / weights.sum()
        value_loss = np.mean(counts * (values - returns) ** 2)
        assert metrics["loss_advantage"] == pytest.approx(advantage_loss, rel=1e-4)
        assert metrics["loss_value"] == pytest.approx(value_loss, rel=1e-4)
        assert total == pytest.approx(advantage_loss + value_weight * value_loss, rel=1e-4)


@pytest.mark.parametrize("explorers", ["all", "one"])
def test_explored_games_are_corrected(explorers: str) -> None:
    """By ratios of mean 1, at most 2 for each action, and of one player's actions alone where one explores."""
    changes = {"exploration": 0.5, "explorers": explorers, "accumulate": "mirror_descent", "initial_scale": 8.0}
    rows = _examples(uniform_iterations=0, correct_exploration=True, **changes)
    assert not np.allclose(rows.weight, 1.0)
    assert rows.weight.max() <= (1 / 0.5) ** 3
    if explorers == "one":  # of three decisions at most, by players 0, 1, 0: one of the two products is 1
        assert np.all(np.isclose(rows.weight, 1.0) | np.isclose(rows.own_reach, 1.0))
    for ratios in (rows.weight, rows.own_reach, rows.weight * rows.own_reach):
        assert abs(ratios.mean() - 1.0) < 5 * ratios.std() / math.sqrt(len(ratios)) + 0.1
    plain = _examples(uniform_iterations=0, **changes)
    np.testing.assert_array_equal(plain.weight, 1.0)
    np.testing.assert_array_equal(plain.own_reach, rows.own_reach)  # the average's weights, whatever the fit has
    np.testing.assert_array_equal(plain.action, rows.action)
    assert not np.allclose(plain.returns, rows.returns)


@pytest.mark.parametrize("corrected", [True, False])
def test_the_value_is_that_of_play_without_exploration(corrected: bool) -> None:
    """Where exploration is corrected, its targets have the policy's value as mean; else that of what was played."""
    learner = _make(
        exploration=0.6, correct_exploration=corrected, accumulate="mirror_descent", discount=1.0, uniform_iterations=0,
        episodes_per_iteration=20_000,
    ).iterate.__self__  # fmt: skip
    state = _started(2, accumulate="mirror_descent")
    sharp = state.target | {POLICY: jax.tree.map(lambda x: 1000.0 * x, state.params[POLICY])}
    replay = learner.generate(state._replace(target=sharp))[0].replay
    rows = jax.device_get(jax.tree.map(lambda x: x[replay.index[: int(replay.count)]], replay.rows))
    keys = [b"".join(np.asarray(x[n]).tobytes() for x in rows.view) for n in range(len(rows.action))]
    policy = {key: rows.policy[keys.index(key)].astype(np.float64) for key in set(keys)}
    trees = coin_trees(CoinGame())
    mixed = {node.key: 0.4 * policy[node.key] + 0.6 * node.legal / node.legal.sum() for t in trees for node in nodes(t)}
    played = policy if corrected else mixed
    q, apart = exact_action_values(trees, played, 1.0)[0], []
    for key, values in q.items():
        here = np.array([k == key for k in keys])
        weights, targets = rows.weight[here].astype(np.float64), rows.value_target[here].astype(np.float64)
        mean, exact = np.sum(weights * targets) / weights.sum(), np.nansum(played[key] * values)
        error = np.sqrt(np.sum(weights**2 * (targets - mean) ** 2)) / weights.sum()
        assert abs(mean - exact) < 5 * error + 2e-3
        apart.append(abs(np.nansum(mixed[key] * values) - np.nansum(policy[key] * values)) / error)
    assert max(apart) > 20, "the other value would be seen"


def test_the_explorer_is_drawn_apart_from_the_seat() -> None:
    """Against an opponent the learner's seat explores in half of the games, not in all."""
    mixture = make_mixture(("random",), None, CoinGame())
    learner = _make(exploration=0.5, explorers="one").iterate.__self__
    params = jax.jit(learner.parts.network.init)(jax.random.key(0))
    start = _actor(learner.parts, params, jnp.float32(1.0), mixture).start
    carry = jax.jit(jax.vmap(start))(jax.random.split(jax.random.key(1), 1000))
    assert 0.4 < np.mean(carry.explorer == carry.seating.seat) < 0.6


def test_the_average_is_fitted_to_what_played() -> None:
    """After iterations of a fixed policy the average's network plays it; without a reservoir there is no average."""
    assert set(_make().policies(_make().init(jax.random.key(0)))) == {"current"}
    fitted = {"capacity": 10_000, "steps": 200, "batch_size": 256, "learning_rate": 0.01}
    algorithm = _make(average=fitted, learning_rate=1e-9, uniform_iterations=0, unit="points", initial_scale=3.0)
    state = algorithm.init(jax.random.key(0))
    for _ in range(3):
        state, metrics = algorithm.iterate(state)
    assert metrics["loss_average"] > 0
    policies = algorithm.policies(state)
    for tree in coin_trees(CoinGame()):
        for node in nodes(tree):
            played, average = (np.asarray(policies[name](node.view, node.legal)) for name in ("current", "average"))
            np.testing.assert_allclose(average, played, atol=0.05)
    assert np.ptp(np.asarray(policies["current"](tree.view, tree.legal))) > 0.05


def test_only_the_learners_decisions_are_learned_from() -> None:
    """Against a player that always takes the last legal action: of a seat each, or of both where it plays itself."""
    last = Policy(lambda _, view, legal: jax.nn.one_hot(legal.shape[-1] - 1 - jnp.argmax(legal[::-1]), 3))
    resources = Resources(find_player=lambda name, game: last)

    def played(shares: list[float]) -> tuple[Any, dict[str, Any]]:
        config = {**BASE, "opponents": ["self", "fixed"], "shares": shares, "uniform_iterations": 0}
        learner = algorithms.make(config, NETWORK, CoinGame(), resources).iterate.__self__
        state = learner.init(jax.random.key(3))
        (replay, _), _, counters = learner.generate(*learner.play_arguments(state))
        return jax.tree.map(lambda x: x[replay.index[: int(replay.count)]], replay.rows), counters

    rows, counters = played([0.0, 1.0])
    assert counters.decisions == len(rows.action) < counters.nodes
    firsts = rows.view.moves[:, 0]  # 0: not moved yet, else 1 + the action
    assert set(np.unique(firsts[rows.view.seat == 1])) == {3}
    assert set(np.unique(rows.action[(rows.view.seat == 0) & (firsts == 0)])) == {0, 1, 2}
    rows, counters = played([1.0, 0.0])
    assert counters.decisions == len(rows.action) == counters.nodes
    with pytest.raises(InputError, match=r"algo\.opponents has past_self, which"):
        algorithms.make({**BASE, "opponents": ["past_self"]}, NETWORK, CoinGame())


def test_illegal_actions_teach_nothing() -> None:
    """Where an action is illegal everywhere its weights have no gradient."""
    learner = _make().iterate.__self__
    params = jax.jit(learner.parts.network.init)(jax.random.key(0))
    legal = np.array([[1, 1, 0]] * 4, bool)
    gradient = jax.grad(lambda p: dueling_loss(learner.parts, p, _batch(legal))[0])(params)["advantages"]
    for leaf in gradient.values():
        assert np.all(leaf[..., 2] == 0)
        assert np.any(np.reshape(leaf, (-1, 3)), axis=0).tolist() == [True, True, False]


def test_current_policy() -> None:
    """A distribution over legal actions: uniform until the warm-up is over, at `play_temperature` where that is set."""
    game, algorithm = CoinGame(), _make(uniform_iterations=1)
    state = _started(0)
    deal = game.init(jax.random.key(0))
    view, legal = game.view(deal, 0), jnp.array([True, False, True])
    np.testing.assert_allclose(algorithm.policies(state)["current"](view, legal), [0.5, 0, 0.5])
    sharp, (states, _) = _make(play_temperature=1e-4), _five_iterations()
    chances = np.asarray(sharp.policies(states[-1])["current"](view, legal))
    assert chances.sum() == pytest.approx(1)
    assert chances[1] == 0
    assert chances.max() > 0.999


WRONG = [
    ({"num_envs": 1000}, "algo.num_envs=1000 is more than algo.episodes_per_iteration=512"),
    (
        {"temperature": {"start": 0.0, "end": 0.1, "transition_steps": 4}},
        "algo.temperature.start=0.0 must be more than 0",
    ),
    (
        {"temperature": {"start": 1.0, "end": -1.0, "transition_steps": 4}},
        "algo.temperature.end=-1.0 must be more than 0",
    ),
    ({"temperature": 2.0}, "algo.temperature=2.0 must hold start, end, transition_steps, form"),
    ({"epoch_unit": "epochs"}, "known: minibatches, passes"),
    ({"actor": "slow"}, "known: online, target"),
    ({"baseline": "q"}, "known: policy, value"),
    ({"shaping": {"form": "potentail"}}, "did you mean 'potential'"),
    ({"name": "draem"}, "unknown algorithm 'draem'; did you mean 'dream'"),
    ({"name": None}, "must be a configuration node or a dict with a `name`"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG)
def test_wrong_settings(changes: dict[str, Any], message: str) -> None:
    """One line that says what would be right."""
    with pytest.raises(InputError) as error:
        _make(**changes)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_points_are_the_unit_of_the_document() -> None:
    """By default returns are in points, of which a reward of 1 is ten: that is what 10 bounds and 2 to 0.1 divide."""
    rewards, points = (_examples(unit=unit).returns for unit in ("reward", "points"))
    np.testing.assert_allclose(points, 10 * rewards, rtol=1e-5)
    assert DuelingDreamConfig().unit == "points"


def _spread_of_shaping(form: str) -> float:
    """Returns the standard deviation, over random futures of one state, of what shaping adds to its full return."""
    rng, futures, most = np.random.default_rng(0), 200, 7
    lengths = rng.integers(2, most + 1, futures)
    phi = rng.uniform(-1.0, 0.0, (futures, most + 1)).astype(np.float32)
    phi[:, 0] = -0.4

    def paid(phi: jax.Array, length: jax.Array, values: jax.Array) -> jax.Array:
        """What is after the end of the game changes nothing before it."""
        done = jnp.arange(most) == length - 1
        rewards = shaping_reward(phi[:-1], phi[1:], done, scale=0.5, discount=0.99, form=form)[:, None]
        players = jnp.zeros(most, jnp.int32)
        return lambda_returns(rewards, done, players, values, discount=0.99, gae_lambda=1.0)[0]

    values = rng.normal(size=(futures, most)).astype(np.float32)
    return float(np.std(jax.jit(jax.vmap(paid))(phi, lengths, values)))


def test_shaping_reaches_the_targets() -> None:
    """With full returns the potential form pays the same whatever follows; the literal form, the default, does not."""
    assert DuelingDreamConfig().gae_lambda == 1.0
    assert DuelingDreamConfig().shaping.form == "literal"
    assert _spread_of_shaping("potential") < 1e-6
    assert _spread_of_shaping("literal") > 0.01


MIRROR = {
    "accumulate": "mirror_descent",
    "mirror": {"eta": {"start": 2.0, "end": 2.0}, "alpha": {"start": 0.1, "end": 0.1}},
}


def test_policy_head_is_fitted_to_a_step_of_mirror_descent() -> None:
    """After a long fit the head's policy is near the step from the policy that played, which it was not before."""
    steps = {**MIRROR, "mirror": {"eta": {"start": 10.0, "end": 10.0}, "alpha": {"start": 0.02, "end": 0.02}}}
    learner = _make(**steps, uniform_iterations=0, epochs=400, learning_rate=5e-3, batch_size=256).iterate.__self__
    state = _started(0, accumulate="mirror_descent")
    replay = learner.generate(state)[0].replay
    after, metrics, _ = learner.learn(state, replay)
    rows = jax.tree.map(lambda x: x[replay.index[:200]], replay.rows)
    legal = jnp.unpackbits(rows.legal, axis=-1, count=3).astype(bool)
    inputs = jax.vmap(learner.parts.network.inputs.of_view)(rows.view)
    advantages, _, logits = learner.parts.network.apply_inputs(after.params, inputs)
    goal = mirror_descent_policy(rows.policy, advantages, legal, eta=10.0, alpha=0.02)
    moved, missed = (np.abs(goal - x).sum(axis=1).mean() for x in (rows.policy, masked_softmax(logits, legal)))
    assert missed < 0.5 * moved
    assert metrics["loss_policy"] >= 0
    assert (metrics["eta"], metrics["alpha"]) == pytest.approx((10.0, 0.02))


def test_the_policy_head_plays() -> None:
    """Uniform in the first iterations, then the softmax of the third output, in self-play and in what is kept."""
    algorithm = _make(**MIRROR, uniform_iterations=1)
    learner, state = algorithm.iterate.__self__, _started(0, accumulate="mirror_descent")
    assert float(algorithm.policies(state)["current"].params["temperature"]) > 1e30
    generated, metrics, _ = learner.generate(state)
    assert metrics["temperature"] == math.inf
    state = learner.learn(state, generated.replay)[0]
    policy = algorithm.policies(state)["current"]
    replay = learner.generate(state)[0].replay
    row = jax.tree.map(lambda x: x[replay.index[0]], replay.rows)
    legal = jnp.unpackbits(row.legal, count=3).astype(bool)
    logits = learner.parts.network.apply_inputs(state.target, learner.parts.network.inputs.of_view(row.view))[2]
    np.testing.assert_allclose(policy(row.view, legal), masked_softmax(logits, legal), atol=1e-6)
    np.testing.assert_allclose(row.policy, masked_softmax(logits, legal), atol=1e-3)


def test_accumulating_needs_a_network_with_a_policy_head() -> None:
    """Another network is refused, and so is a negative step."""
    with pytest.raises(InputError, match="it must be network=dueling"):
        algorithms.make({**BASE, **MIRROR}, {"name": "simba", "width": 8, "blocks": 1}, CoinGame())
    wrong = {**MIRROR, "mirror": {"eta": {"start": 1.0, "end": -1.0}}}
    with pytest.raises(InputError, match=r"algo\.mirror\.eta"):
        algorithms.make({**BASE, **wrong}, NETWORK, CoinGame())


def test_advantages_start_near_zero() -> None:
    """A hundredth of what the layer would start with, the value as it is; `initial_scale: 1` leaves them alone."""
    small, whole = (_make(initial_scale=scale).init(jax.random.key(0)).params for scale in (0.01, 1.0))
    np.testing.assert_allclose(small["advantages"]["w"], 0.01 * whole["advantages"]["w"], rtol=1e-5)
    np.testing.assert_array_equal(small["value"]["w"], whole["value"]["w"])


@pytest.mark.parametrize("network", [NETWORK, {"name": "simba", "width": 8, "blocks": 1}, {"name": "card_planes"}])
def test_nothing_compiles_twice(network: dict[str, Any]) -> None:
    """The state as initialised has the types of the next one, weak or not: one program serves all iterations."""
    algorithm = algorithms.make({**BASE, "episodes_per_iteration": 8, "batch_size": 8}, network, CoinGame())
    state = algorithm.init(jax.random.key(0))
    after, _ = algorithm.iterate(state)
    for old, new in zip(jax.tree.leaves(state), jax.tree.leaves(after), strict=True):
        assert jax.typeof(old) == jax.typeof(new)
