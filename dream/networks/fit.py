"""Gradient descent on minibatches: one loop for every learner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from dream.compiled import devices
from dream.compiled.bounded import long_loop


def adam(*, max_grad_norm: float, l2: float, epsilon: float = 1e-8) -> optax.GradientTransformation:
    """Returns Adam's direction for the gradient of loss + l2 * sum of squared parameters, clipped to a norm first.

    Without the learning rate, which `fit` takes as an argument, so that a schedule needs no state.
    """
    return optax.chain(
        optax.add_decayed_weights(2.0 * l2),
        optax.clip_by_global_norm(max_grad_norm),
        optax.scale_by_adam(eps=epsilon),
    )


def fit(
    loss: Callable[[Any, Any], tuple[Array, dict[str, Array]]],
    optimizer: optax.GradientTransformation,
    params: Any,
    optimizer_state: Any,
    batch: Callable[[Array], Any],
    *,
    learning_rate: Array | float | Callable[[Array], Array],
    steps: Array | int,
) -> tuple[Any, Any, dict[str, Array]]:
    """Takes gradient steps, each on its own minibatch.

    Args:
      loss: (params, batch) -> (scalar, diagnostics), means over the batch.
      optimizer: from optax, a direction to descend against.
      params, optimizer_state: where to start.
      batch: number of the step, int32 -> batch.
      learning_rate: factor of the direction, or what gives it for the number of a step.
      steps: how many; may be traced. With 0 nothing changes and diagnostics are 0.
    Returns:
      (params, optimizer_state, diagnostics averaged over the steps, `gradient_norm` before clipping among them).
    """

    def step(at: tuple[Array, Any, Any, dict[str, Array]]) -> tuple[Array, Any, Any, dict[str, Array]]:
        n, params, optimizer_state, sums = at
        gradient, info = jax.grad(loss, has_aux=True)(params, batch(n))
        info["gradient_norm"] = optax.tree.norm(gradient)
        direction, optimizer_state = optimizer.update(gradient, optimizer_state, params)
        rate = learning_rate(n) if callable(learning_rate) else learning_rate
        params = jax.tree.map(lambda p, d: p - rate * d, params, direction)
        return n + 1, *devices.whole((params, optimizer_state, jax.tree.map(jnp.add, sums, info)))

    def start() -> tuple[Array, Any, Any, dict[str, Array]]:
        shapes = jax.eval_shape(lambda p: loss(p, batch(jnp.int32(0)))[1], params)
        zeros = {name: jnp.zeros(x.shape, x.dtype) for name, x in shapes.items()}
        zeros["gradient_norm"] = jnp.zeros((), jnp.float32)
        return jnp.int32(0), params, optimizer_state, zeros

    _, params, optimizer_state, sums = long_loop(lambda at: at[0] < steps, step, start)
    return params, optimizer_state, jax.tree.map(lambda x: x / jnp.maximum(steps, 1), sums)
