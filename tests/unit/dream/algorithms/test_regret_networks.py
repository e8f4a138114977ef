"""How networks become regrets and policies: heads, masks, fallbacks, weights, fresh starts."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from dream.algorithms.deep.regret_networks import (
    FitConfig,
    Row,
    batches_of,
    combined,
    fit_network,
    regret_loss,
    strategy_loss,
    typical_size,
)
from dream.buffers import reservoir
from dream.equations.regret_matching import masked_softmax, regret_matching
from dream.networks import make_network

GAME = envs.make("kuhn_poker")
NETWORK = make_network({"hidden": [8]}, GAME)
LEGAL = jnp.array([True, False, True, True])


@pytest.mark.parametrize(
    ("regrets", "expected"),
    [
        ([-3.0, 9.0, -1.0, -2.0], {"argmax": [0, 0, 1, 0], "uniform": [1 / 3, 0, 1 / 3, 1 / 3]}),
        ([-3.0, 9.0, 1.0, 3.0], {"argmax": [0, 0, 0.25, 0.75], "uniform": [0, 0, 0.25, 0.75]}),
    ],
)
@pytest.mark.parametrize("fallback", ["argmax", "uniform"])
def test_fallback_looks_at_legal_actions_before_clipping(
    regrets: list[float], expected: dict[str, list[float]], fallback: str
) -> None:
    """The greatest regret is the greatest though all are negative, and an illegal action's does not count."""
    found = regret_matching(jnp.array(regrets), LEGAL, fallback)
    np.testing.assert_allclose(found, expected[fallback], rtol=1e-6)


def test_dueling_head_is_centred_on_legal_actions() -> None:
    """Value + advantage - mean of the legal advantages; 0 where illegal."""
    outputs = jnp.array([1.0, 100.0, 2.0, 6.0]), jnp.array(10.0)
    np.testing.assert_allclose(combined("dueling", outputs, LEGAL), [8.0, 0.0, 9.0, 13.0])
    np.testing.assert_allclose(combined("plain", outputs, LEGAL), [1.0, 0.0, 2.0, 6.0])


@pytest.mark.parametrize("head", ["dueling", "plain"])
def test_illegal_actions_are_not_fitted(head: str) -> None:
    """No gradient reaches their outputs, whatever a target holds there."""

    def loss(advantages: jax.Array) -> jax.Array:
        target = jnp.array([1.0, 5.0, -1.0, 0.5])
        return regret_loss(head, (advantages, jnp.array(0.3)), LEGAL, target, jnp.float32(1.0))

    gradient = jax.grad(loss)(jnp.array([0.5, 0.7, 0.1, -0.2]))
    assert gradient[1] == 0.0
    assert np.all(np.asarray(gradient)[np.asarray(LEGAL)] != 0.0)


def test_strategy_ignores_illegal_logits() -> None:
    """They take no share and no gradient."""
    logits = jnp.array([0.0, 50.0, 0.0, jnp.log(2.0)])
    np.testing.assert_allclose(masked_softmax(logits, LEGAL), [0.25, 0.0, 0.25, 0.5], rtol=1e-6)
    target = jnp.array([0.25, 0.0, 0.25, 0.5])
    gradient = jax.grad(lambda x: strategy_loss((x, jnp.float32(0)), LEGAL, target))(logits)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-6)


def _memory(targets: list[float], weights: list[float], capacity: int = 16) -> reservoir.ReservoirBuffer:
    """Returns a memory whose rows are all of one information set."""
    state = GAME.init(jax.random.key(0))
    count = len(targets)
    view = jax.tree.map(lambda x: jnp.broadcast_to(x, (count, *x.shape)), GAME.view(state, 0))
    legal = jnp.broadcast_to(jnp.packbits(GAME.legal_actions(state)), (count, 1))
    target = jnp.stack([jnp.asarray(targets), -jnp.asarray(targets)], axis=1)
    rows = Row(view, legal, target, jnp.asarray(weights))
    memory = reservoir.empty(jax.tree.map(lambda x: x[0], rows), capacity)
    return reservoir.add(memory, rows, jnp.ones(count, bool), jax.random.key(0), kind="reservoir")


def _fitted(memory: reservoir.ReservoirBuffer, config: FitConfig, seed: int = 0) -> tuple[dict, jax.Array]:
    """Returns parameters and their regrets at the rows' information set."""
    batch = batches_of(NETWORK, memory, config.batch_size, jax.random.key(seed))
    loss = functools.partial(regret_loss, "dueling", scale=jnp.float32(1.0))
    start = NETWORK.init(jax.random.key(99))
    params, _ = jax.jit(lambda key: fit_network(NETWORK, config, loss, start, batch, key))(jax.random.key(seed))
    view = jax.tree.map(lambda x: x[0], memory.rows.view)
    outputs = NETWORK.apply_inputs(params, NETWORK.inputs.of_view(view))
    return params, combined("dueling", outputs, jnp.ones(2, bool))


@pytest.mark.parametrize("keep_all", [16, 3])
def test_fit_finds_the_weighted_mean(keep_all: int) -> None:
    """Rows 1, 2 and 4 of weights 1, 1 and 6 mean 27 / 8; weights reduced after the mean would give 7 / 3."""
    memory = _memory([1.0, 2.0, 4.0], [1.0, 1.0, 6.0], keep_all)
    config = FitConfig(steps=400, batch_size=64, learning_rate=0.03, learning_rate_end=0.0)
    _, regrets = _fitted(memory, config)
    np.testing.assert_allclose(regrets, [27 / 8, -27 / 8], atol=0.1)


def test_scale_of_all_weights_changes_nothing() -> None:
    """A fit does not depend on the unit of weights, nor on which row came last."""
    config = FitConfig(steps=20, batch_size=8)
    one, thousand = (
        _fitted(_memory([1.0, 2.0, 4.0], [w, w, 6.0 * w]), config)[0] for w in (1.0, 1024.0)
    )  # fmt: skip
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(thousand), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("empty", [True, False])
def test_without_weights_a_fit_changes_nothing(empty: bool) -> None:
    """In a buffer without rows, and in one whose rows all have the weight 0: no number is lost to 0 / 0."""
    memory = _memory([1.0, 2.0], [0.0, 0.0])
    if empty:
        memory = jax.tree.map(jnp.zeros_like, memory)
    config = FitConfig(steps=2, batch_size=4, reinitialise=False)
    batch = batches_of(NETWORK, memory, config.batch_size, jax.random.key(0))
    loss = functools.partial(regret_loss, "dueling", scale=jnp.float32(1.0))
    start = NETWORK.init(jax.random.key(99))
    params, metrics = fit_network(NETWORK, config, loss, start, batch, jax.random.key(1))
    assert metrics == {"loss": 0.0, "gradient_norm": 0.0}
    jax.tree.map(np.testing.assert_array_equal, params, start)


def test_fresh_starts_differ_and_warm_ones_go_on() -> None:
    """Reinitialising draws new parameters for every key; a warm start of one tiny step stays where it was."""
    memory, tiny = _memory([1.0], [1.0]), {"steps": 1, "batch_size": 4, "learning_rate": 1e-9}
    fresh = [_fitted(memory, FitConfig(**tiny), seed)[0] for seed in (0, 1)]
    weights = [np.asarray(params["first"]["w"]) for params in fresh]
    assert not np.allclose(*weights)
    warm = _fitted(memory, FitConfig(**tiny, reinitialise=False))[0]
    np.testing.assert_allclose(warm["first"]["w"], NETWORK.init(jax.random.key(99))["first"]["w"], atol=1e-6)


def test_typical_size() -> None:
    """The root of the weighted mean square over rows and legal actions."""
    targets, legal = jnp.array([[2.0, 0.0], [9.0, 4.0], [100.0, 100.0]]), jnp.array([[1, 1], [0, 1], [1, 1]], bool)
    found = typical_size(jnp.array([1.0, 3.0, 0.0]), targets, legal)
    assert found == pytest.approx(np.sqrt((1 * 2 + 3 * 16) / 4), rel=1e-6)
