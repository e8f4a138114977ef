"""The simba network: its size, its forward pass written out, the value by phase, and PPO's auxiliary loss on it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dream_support import CoinGame
from phased_support import PhasedCoin
from simba_reference import simba_forward

from dream.algorithms import ppo
from dream.config import settings
from dream.networks import make_network
from dream.rollout.opponents import make_mixture
from envs import Game, make

MDP = make("gin_rummy_mdp")
SMALL = {"name": "simba", "width": 24, "blocks": 2}
LAYERS = {
    **{"Dense_0": (342, 1024), "Dense_1": (1024, 1024), "Dense_2": (1024, 1024)},
    **{"Dense_3": (1024, 1024), "Dense_4": (1024, 1024), "Dense_5": (1024, 16)},
    **{"value_draw": (1024, 1), "value_discard": (1024, 1), "value_knock": (1024, 1), "opp_dw_pred": (1024, 1)},
}


def _params(network: Any, seed: int = 0) -> Any:
    """Returns parameters none of which is zero."""
    params = jax.jit(network.init)(jax.random.key(seed))
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda x: x + 0.1 * rng.standard_normal(x.shape, np.float32), jax.device_get(params))


def test_parameters_of_the_document() -> None:
    """Exactly 4,576,276, under the document's names, kernels [in, out], all float32."""
    params = jax.eval_shape(make_network({"name": "simba"}, MDP).init, jax.random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == 4_576_276
    assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {np.dtype("float32")}
    expected = {name: {"kernel": shape, "bias": shape[1:]} for name, shape in LAYERS.items()}
    expected |= {f"LayerNorm_{n}": {"scale": (1024,), "bias": (1024,)} for n in range(3)}
    assert {name: {part: x.shape for part, x in layer.items()} for name, layer in params.items()} == expected


def test_heads_are_the_network_written_out() -> None:
    """Every head, on random weights and observations, against NumPy; a batch or one at a time."""
    network = make_network({**SMALL, "width": 64}, MDP)
    params = _params(network)
    batch = np.random.default_rng(3).random((7, 342), np.float32)
    reported, expected = jax.jit(network.heads)(params, batch), simba_forward(params, batch)
    assert set(reported) == set(expected)
    for name, x in expected.items():
        np.testing.assert_allclose(reported[name], x, rtol=1e-4, atol=1e-4, err_msg=name)
        assert np.ptp(x) > 0.01
    np.testing.assert_allclose(jax.jit(network.apply)(params, batch[0])[0], expected["logits"][0], rtol=1e-4, atol=1e-4)


def test_the_value_is_that_of_the_phase() -> None:
    """The observation's one-hot chooses; a state that is over has value 0."""
    network = make_network(SMALL, MDP)
    params = _params(network)
    x = np.tile(np.random.default_rng(4).random(342, np.float32), (4, 1))
    x[:, 157:161] = np.eye(4)
    heads, (logits, value) = jax.jit(lambda p, x: (network.heads(p, x), network.apply(p, x)))(params, x)
    np.testing.assert_array_equal(logits, heads["logits"])
    for n, name in enumerate(("value_draw", "value_discard", "value_knock")):
        assert value[n] == heads[name][n] != 0
    assert value[3] == 0


def test_a_game_that_shows_no_phase_has_one_value(game: Game) -> None:
    """And no auxiliary head where there is nothing to predict; an event log is read slot by slot."""
    for one in (CoinGame(), game):
        network = make_network(SMALL, one)
        params = jax.eval_shape(network.init, jax.random.key(0))
        assert {"value"} == {name for name in params if not name.startswith(("Dense", "LayerNorm"))}
        assert network.inputs.carries_log == (one.event_log is not None)
        assert network.auxiliary_prediction is None
    params = _params(network)
    x = np.random.default_rng(5).random(4887, np.float32)
    weights, bias = network.first_layer(params)
    read = jax.jit(network.rest)(params, x @ weights + bias)
    for ours, whole in zip(read, jax.jit(network.apply)(params, x), strict=True):
        np.testing.assert_allclose(ours, whole, rtol=1e-4, atol=1e-4)


def test_bfloat16_rounds_but_not_much() -> None:
    """It computes in another precision; parameters and gradients stay float32."""
    networks = [make_network({**SMALL, "dtype": dtype}, MDP) for dtype in ("float32", "bfloat16")]
    params = _params(networks[0])
    x = np.random.default_rng(6).random((9, 342), np.float32)
    whole, rounded = (jax.jit(network.apply)(params, x)[0] for network in networks)
    assert whole.dtype == rounded.dtype == jnp.float32
    assert 1e-5 < float(jnp.mean(jnp.abs(whole - rounded)) / jnp.mean(jnp.abs(whole))) < 0.05
    gradient = jax.eval_shape(jax.grad(lambda p: jnp.sum(networks[1].apply(p, x)[0])), params)
    assert {leaf.dtype for leaf in jax.tree.leaves(gradient)} == {np.dtype("float32")}


@pytest.fixture(scope="module")
def trained() -> tuple[Any, Any, list[dict[str, float]]]:
    """PPO on the phased coin game: parameters before and after, and each iteration's metrics."""
    game, reported = PhasedCoin(), []
    given = {"episodes_per_iteration": 128, "batch_size": 64, "learning_rate": 3e-3, "auxiliary_weight": 2.0}
    config = settings.read(ppo.PpoConfig, given, "algo")
    algorithm = ppo.make_against(config, SMALL, game, make_mixture(("self",), None, game))
    first = state = algorithm.init(jax.random.key(2))
    for _ in range(8):
        state, metrics = algorithm.iterate(state)
        reported.append(metrics)
    return first.params, state.params, reported


def test_ppo_learns_what_the_player_cannot_see(trained: Any) -> None:
    """The auxiliary loss falls below what a constant reaches, 1/4, as player 0 sees the coin and player 1 cannot."""
    losses = [metrics["loss_auxiliary"] for metrics in trained[2]]
    assert losses[-1] < 0.2 < losses[0]


def test_the_auxiliary_loss_has_its_weight(trained: Any) -> None:
    """Loss = policy + 0.5 value - 0.01 entropy + weight * auxiliary."""
    for reported in trained[2]:
        parts = (
            reported["loss_policy"]
            + 0.5 * reported["loss_value"]
            - 0.01 * reported["entropy"]
            + 2.0 * reported["loss_auxiliary"]
        )
        assert reported["loss"] == pytest.approx(parts, abs=1e-5)


def test_every_parameter_is_trained(trained: Any) -> None:
    """The heads of all phases and the auxiliary one among them."""
    before, after, _ = trained
    for name, layer in before.items():
        for part, x in layer.items():
            assert not np.array_equal(x, after[name][part]), f"{name} {part}"
