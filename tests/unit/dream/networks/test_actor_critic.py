"""Two networks that share nothing: as written out, how they start, and what one head's gradient touches."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dream_support import CoinGame

from dream.networks import make_network
from envs import InputError

GAME = CoinGame()
SMALL = {"name": "actor_critic", "hidden": [16, 8]}


def _params(node: dict[str, Any]) -> Any:
    return jax.jit(make_network(node, GAME).init)(jax.random.key(0))


def _tower(params: Any, name: str, x: np.ndarray) -> np.ndarray:
    for n in range(2):
        layer = params[f"{name}_{n}"]
        x = np.tanh(x @ layer["w"] + layer["b"])
    return x


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("bfloat16", 0.03)])
def test_forward_pass_written_out(dtype: str, tolerance: float) -> None:
    """Tanh layers of two towers, a linear layer on each."""
    node = {**SMALL, "dtype": dtype}
    params = jax.tree.map(lambda p: p + 0.1 * jax.random.normal(jax.random.key(p.size), p.shape), _params(node))
    x = np.random.default_rng(0).random(GAME.observation_size, np.float32)
    logits, value = jax.jit(make_network(node, GAME).apply)(params, x)
    host = jax.tree.map(np.asarray, params)
    for found, layer, tower in ((logits, "logits", "actor"), (value[None], "value", "critic")):
        expected = _tower(host, tower, x) @ host[layer]["w"] + host[layer]["b"]
        np.testing.assert_allclose(found, expected, atol=tolerance * max(1.0, np.abs(expected).max()))
        assert found.dtype == jnp.float32


def test_weights_start_orthogonal() -> None:
    """Columns of length sqrt(2), of the logits 0.01, of the value 1; biases 0."""
    params = _params({"name": "actor_critic", "hidden": [8, 8]})
    for name, gain in (("actor_1", 2**0.5), ("critic_1", 2**0.5), ("logits", 0.01), ("value", 1.0)):
        w = np.asarray(params[name]["w"])
        np.testing.assert_allclose(w.T @ w, gain**2 * np.eye(w.shape[1]), atol=1e-5)
        assert not params[name]["b"].any()


def test_the_value_does_not_move_the_policy() -> None:
    """The gradient of one output is 0 in the other's network."""
    network = make_network(SMALL, GAME)
    for head, own in ((0, "actor"), (1, "critic")):
        gradient = jax.grad(lambda p, head=head: jnp.sum(network.apply(p, jnp.ones(GAME.observation_size))[head]))(
            _params(SMALL)
        )
        touched = {name for name, layer in gradient.items() if any(np.any(x) for x in layer.values())}
        assert touched == {f"{own}_0", f"{own}_1", "logits" if own == "actor" else "value"}


def test_it_has_a_layer() -> None:
    """One line otherwise."""
    with pytest.raises(InputError, match=r"network.hidden=\[\] is empty"):
        make_network({**SMALL, "hidden": []}, GAME)
