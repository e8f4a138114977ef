"""Gradient descent on minibatches: one loop for every learner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax


def adam(learning_rate: float, *, max_grad_norm: float, l2: float) -> optax.GradientTransformation:
    """Returns Adam on the gradient of loss + l2 * sum of squared parameters, clipped to a global norm first."""
    return optax.chain(
        optax.add_decayed_weights(2.0 * l2), optax.clip_by_global_norm(max_grad_norm), optax.adam(learning_rate)
    )


def fit(
    loss: Callable[[Any, Any], tuple[Array, dict[str, Array]]],
    optimizer: optax.GradientTransformation,
    params: Any,
    optimizer_state: Any,
    batch: Callable[[Array], Any],
    key: Array,
    steps: Array | int,
) -> tuple[Any, Any, dict[str, Array]]:
    """Takes gradient steps, each on a fresh minibatch.

    Args:
      loss: (params, batch) -> (scalar, diagnostics), means over the batch.
      optimizer: from optax.
      params, optimizer_state: where to start.
      batch: key -> batch.
      key: consumed.
      steps: how many, at least 1; may be traced.
    Returns:
      (params, optimizer_state, diagnostics averaged over the steps, `gradient_norm` before clipping among them).
    """

    def step(n: Array, carry: tuple[Any, Any, dict[str, Array]]) -> tuple[Any, Any, dict[str, Array]]:
        params, optimizer_state, sums = carry
        gradient, info = jax.grad(loss, has_aux=True)(params, batch(jax.random.fold_in(key, n)))
        info["gradient_norm"] = optax.global_norm(gradient)
        updates, optimizer_state = optimizer.update(gradient, optimizer_state, params)
        return optax.apply_updates(params, updates), optimizer_state, jax.tree.map(jnp.add, sums, info)

    shapes = jax.eval_shape(lambda p, k: loss(p, batch(k))[1], params, key)
    zeros = {name: jnp.zeros(x.shape, x.dtype) for name, x in shapes.items()} | {"gradient_norm": jnp.zeros(())}
    params, optimizer_state, sums = lax.fori_loop(0, steps, step, (params, optimizer_state, zeros))
    return params, optimizer_state, jax.tree.map(lambda x: x / steps, sums)
