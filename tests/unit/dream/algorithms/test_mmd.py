"""Is deep MMD's loss the equation, is its minimum the exact step, and does the tabular solver find equilibria?"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tree_values import tree_of

import envs
from dream import algorithms
from dream.algorithms import ppo
from dream.algorithms.mmd import MmdConfig, _regulariser, kl_divergence, sampled_kl
from dream.algorithms.ppo import clipped_loss
from dream.algorithms.ppo.loss import Example, Played, make_loss
from dream.algorithms.ppo.regularisation import NewPolicy, entropy_bonus
from dream.algorithms.types import Resources
from dream.equations import schedules
from dream.equations.mirror_descent import magnetic_step
from dream.equations.regret_matching import masked_log_softmax
from dream.game_tree.sequence_form import nash_conv
from dream.game_tree.tabular_policy import tabulate
from dream.networks import make_network
from dream.storage.policies import chosen_policy
from envs import InputError

START = functools.partial(schedules.at, iteration=jnp.int32(0))
"""What schedules are at in the first iteration."""
RESOURCES = Resources(find_tree=lambda game: tree_of(game.name))
OLD = np.array([0.5, 0.25, 0.25, 0.0])
LEGAL = np.array([True, True, True, False])
TAKEN = np.array([0, 0, 1, 2])
"""Four rows that hold each action as often as OLD plays it."""


def test_the_sampled_divergence_is_unbiased() -> None:
    """Its mean over actions of the old policy is KL(new, old); elementwise it is never negative."""
    logs = np.asarray(masked_log_softmax(jnp.array([0.3, -1.0, 0.8, 5.0]), LEGAL))
    samples = np.asarray(sampled_kl(logs[TAKEN] - np.log(OLD[TAKEN])))
    exact = float(kl_divergence(logs, np.log(np.where(LEGAL, OLD, 1.0)), LEGAL))
    assert samples.mean() == pytest.approx(exact, rel=1e-5)
    assert (samples >= 0).all()


@pytest.mark.parametrize("magnet", ["uniform", "moving_average"])
def test_the_least_loss_is_the_exact_step(magnet: str) -> None:
    """Gradient descent on the loss of one information set ends at `magnetic_step` with eta = 1 / beta."""
    config = MmdConfig(entropy_weight=0.3, kl_weight=0.5, magnet=magnet)
    game = envs.make("leduc_poker")
    network = make_network({"name": "dueling", "hidden": [4]}, game)
    regulariser = _regulariser(config, network)
    carried = regulariser.init(network.init(jax.random.key(0)))
    inputs = jnp.ones((4, network.inputs.size))
    actions = game.num_actions
    legal = np.zeros((4, actions), bool)
    legal[:, :3] = True
    values = np.array([1.0, -0.5, 0.2])

    def loss(logits: jax.Array) -> jax.Array:
        logs = masked_log_softmax(jnp.broadcast_to(logits, (4, actions)), legal)
        log_ratio = jnp.take_along_axis(logs, TAKEN[:, None], axis=1)[:, 0] - np.log(OLD[TAKEN])
        penalty, _ = regulariser.penalty(carried, START, NewPolicy(inputs, legal, logs, log_ratio))
        return jnp.mean(clipped_loss(jnp.exp(log_ratio), values[TAKEN], 1e9)) + penalty

    descend = jax.jit(lambda x: jax.lax.fori_loop(0, 3000, lambda n, x: x - 0.3 * jax.grad(loss)(x), x))
    found = np.exp(np.asarray(masked_log_softmax(descend(jnp.zeros(actions)), legal[0])))[:3]
    rho = np.zeros(3)
    if magnet == "moving_average":
        rho = np.asarray(network.apply_inputs(carried, inputs[0])[0])[:3]
    exact = magnetic_step(np.log(OLD[:3]), values, rho, np.ones(3, bool), step=1 / 0.5, strength=0.3)
    np.testing.assert_allclose(found, np.exp(np.asarray(exact)), atol=2e-4)


def test_the_magnet_moves_and_the_strength_falls() -> None:
    """The moving average goes magnet_tau of the way in each iteration; the first strength is 1, later less."""
    settings = {
        "name": "mmd", "episodes_per_iteration": 8, "batch_size": 16, "epochs": 1, "magnet": "moving_average",
        "magnet_tau": 0.25,
        "entropy_decay": {"start": 1.0, "end": 0.5, "transition_steps": 3, "form": "inverse_sqrt"},
    }  # fmt: skip
    learner = algorithms.make(settings, {"name": "dueling", "hidden": [8]}, envs.make("kuhn_poker"))
    before = learner.init(jax.random.key(0))
    after, first = learner.iterate(before)
    for old, new, magnet in zip(
        *(jax.tree.leaves(x) for x in (before.params, after.params, after.magnet)), strict=True
    ):
        np.testing.assert_allclose(magnet, 0.75 * np.asarray(old) + 0.25 * np.asarray(new), atol=1e-6)
    _, second = learner.iterate(after)
    assert first["entropy_weight"] == pytest.approx(0.05)
    assert second["entropy_weight"] == pytest.approx(0.05 / np.sqrt(2.0))


@pytest.mark.parametrize("magnet", ["uniform", "moving_average"])
def test_the_fitted_step_is_of_the_mean_advantages(magnet: str) -> None:
    """Of two weighted histories of one information set, `mirror_step` is least at the step with the mean advantages."""
    config = MmdConfig(entropy_weight=0.3, kl_weight=0.5, magnet=magnet, objective="mirror_step")
    game = envs.make("leduc_poker")
    network = make_network({"name": "dueling", "hidden": [4]}, game)
    regulariser = _regulariser(config, network)
    carried = regulariser.init(network.init(jax.random.key(0)))
    inputs, actions = jnp.ones((2, network.inputs.size)), game.num_actions
    legal = np.zeros((2, actions), bool)
    legal[:, :3] = True
    old, values, weight = (np.zeros((2, actions), np.float32), np.zeros((2, actions), np.float32), np.array([0.5, 2.0]))
    old[:, :3], values[:, :3] = OLD[:3], [[1.0, -0.5, 0.2], [-0.3, 0.9, 0.4]]

    def loss(logits: jax.Array) -> jax.Array:
        logs = masked_log_softmax(jnp.broadcast_to(logits, (2, actions)), legal)
        new = NewPolicy(inputs, legal, logs, jnp.zeros(2), Played(old, values, weight))
        return regulariser.penalty(carried, START, new)[0]

    descend = jax.jit(lambda x: jax.lax.fori_loop(0, 1000, lambda n, x: x - 0.3 * jax.grad(loss)(x), x))
    found = np.exp(np.asarray(masked_log_softmax(descend(jnp.zeros(actions)), legal[0])))[:3]
    rho = np.zeros(3)
    if magnet == "moving_average":
        rho = np.asarray(network.apply_inputs(carried, inputs[0])[0])[:3]
    mean = weight @ values[:, :3] / weight.sum()
    exact = magnetic_step(np.log(OLD[:3]), mean, rho, np.ones(3, bool), step=1 / 0.5, strength=0.3)
    np.testing.assert_allclose(found, np.exp(np.asarray(exact)), atol=2e-4)


@pytest.mark.parametrize(
    ("name", "objective"), [("ppo", "all_actions"), ("mmd", "all_actions"), ("mmd", "mirror_step")]
)
def test_a_weight_of_two_counts_as_two_rows(name: str, objective: str) -> None:
    """In every term of the loss: of the policy, the value, the entropy or the two KLs."""
    game = envs.make("kuhn_poker")
    network = make_network({"name": "dueling", "hidden": [8]}, game)
    chosen = {"objective": objective, "advantage": "expected_sarsa", "advantage_unit": "reward", "entropy_weight": 0.3}
    if name == "ppo":
        config, regulariser = ppo.PpoConfig(**chosen), entropy_bonus(0.3, schedules.constant(1.0))
    else:
        config = MmdConfig(**chosen, kl_weight=0.5)
        regulariser = _regulariser(config, network)
    params, states = network.init(jax.random.key(0)), jax.vmap(game.init)(jax.random.split(jax.random.key(1), 3))
    view = jax.vmap(game.view)(states, states.current_player)
    legal = jnp.packbits(jax.vmap(game.legal_actions)(states), axis=-1)
    old = jnp.array([[0.9, 0.1], [0.3, 0.7], [0.5, 0.5]])
    advantages = jnp.array([[1.0, -1.0], [-0.5, 0.5], [0.2, -0.2]])
    returns = jnp.array([1.0, -2.0, 0.5])

    def total(rows: list[int], weight: list[float]) -> float:
        at = np.array(rows)
        played = Played(old[at], advantages[at], jnp.array(weight))
        batch = Example(
            jax.tree.map(lambda x: x[at], view), legal[at], jnp.zeros(len(at), jnp.int16), old[at, 0],
            advantages[at, 0], returns[at], (), played,
        )  # fmt: skip
        penalty = functools.partial(regulariser.penalty, (), START)
        return float(make_loss(config, network, game.num_actions, penalty)(params, batch)[0])

    assert total([0, 1, 2], [2.0, 0.0, 1.0]) == pytest.approx(total([0, 0, 2], [1.0, 1.0, 1.0]), rel=1e-5)
    assert total([0, 1, 2], [2.0, 0.0, 1.0]) != pytest.approx(total([0, 1, 2], [1.0, 1.0, 1.0]), rel=1e-2)


CRITIC = {
    "name": "mmd", "episodes_per_iteration": 8, "batch_size": 16, "epochs": 1, "advantage": "expected_sarsa",
    "advantage_unit": "reward", "objective": "mirror_step", "critic": {"steps": 2, "batch_size": 16},
}  # fmt: skip


def test_the_average_follows_the_parameters() -> None:
    """It goes average_tau of the way in each iteration, is what commands choose, and changes no iterate."""
    game, node = envs.make("kuhn_poker"), {"name": "dueling", "hidden": [8]}
    learner, plain = (algorithms.make(CRITIC | more, node, game) for more in ({"average_tau": 0.25}, {}))
    before = learner.init(jax.random.key(0))
    after, _ = learner.iterate(before)
    for old, new, mean in zip(
        *(jax.tree.leaves(x) for x in (before.average, after.params, after.average)), strict=True
    ):
        np.testing.assert_allclose(mean, 0.75 * np.asarray(old) + 0.25 * np.asarray(new), atol=1e-6)
    policies = learner.policies(after)
    assert chosen_policy(policies) is policies["average"]
    jax.tree.map(np.testing.assert_array_equal, policies["average"].params["network"], after.average)
    alone, _ = plain.iterate(plain.init(jax.random.key(0)))
    jax.tree.map(np.testing.assert_array_equal, alone.params, after.params)
    assert list(plain.policies(alone)) == ["current"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "ppo"}, r"algo\.objective"),
        ({"advantage": "gae"}, "algo.advantage=gae must be expected_sarsa"),
        ({"advantage_unit": "batch"}, "algo.advantage_unit=batch must be reward"),
        ({"kl_weight": 0.0}, "algo.kl_weight=0 must be more than 0"),
        ({"objective": "sampled", "exploration": 0.5}, r"algo\.exploration=0\.5 needs an objective over all actions"),
        ({"objective": "sampled", "optimism": 1.0}, r"algo\.optimism=1\.0 needs an objective over all actions"),
        ({"optimism": 1.0, "slow_tau": 1.0}, r"algo\.slow_tau=1\.0"),
        ({"optimism": 1.0, "critic": {"reinitialise": True}}, r"algo\.critic\.reinitialise must be false"),
        ({"average_tau": 0.0}, r"algo\.average_tau"),
        ({"discount": 0.9}, r"algo\.discount must be 1.*is 0\.9"),
        (
            {"step_falls": True, "entropy_decay": {"start": 1.0, "end": 0.0}},
            "a factor that goes from 1 to 0",
        ),
    ],
)
def test_settings_that_do_not_go_together(changes: dict[str, Any], message: str) -> None:
    """Each is refused in one line that names what would be right."""
    with pytest.raises(InputError, match=message):
        algorithms.make(CRITIC | changes, {"name": "dueling", "hidden": [8]}, envs.make("kuhn_poker"))


def _solved(game: str, updates: int, **settings: float | None) -> float:
    """Returns the exploitability of the solver's last policy."""
    solver = algorithms.make({"name": "tabular_mmd", "updates": updates, **settings}, {}, envs.make(game), RESOURCES)
    state, _ = solver.iterate(solver.init(jax.random.key(0)))
    return nash_conv(tree_of(game), tabulate(tree_of(game), solver.policies(state)["current"])) / 2


def test_the_last_policy_of_the_solver_goes_to_an_equilibrium() -> None:
    """Kuhn, 1,000 updates: a falling strength 0.0050, a magnet that follows the policy below 1e-5."""
    assert _solved("kuhn_poker", 1000) < 0.006
    assert _solved("kuhn_poker", 1000, learning_rate=4.0, halving=None, magnet_tau=0.05) < 1e-5


def test_at_a_fixed_strength_steps_end_at_one_policy() -> None:
    """The regularised equilibrium does not depend on the step, and its exploitability falls with the strength."""
    fixed = {"halving": None, "magnet_weight": 0.2}
    slow, fast = (_solved("kuhn_poker", 3000, learning_rate=step, **fixed) for step in (0.5, 2.0))
    assert slow == pytest.approx(fast, abs=1e-6)
    assert _solved("kuhn_poker", 3000, halving=None, magnet_weight=0.05) < slow / 2
