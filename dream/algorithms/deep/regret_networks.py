"""Networks of regrets and of average strategies: their heads, their policies, and how they are fitted to a buffer."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dream.buffers import reservoir
from dream.buffers.reservoir import ReservoirBuffer
from dream.config.settings import choice, number
from dream.equations.regret_matching import masked_log_softmax, regret_matching
from dream.networks import Network
from dream.networks.fit import adam, fit
from envs.random_play import uniform


@dataclasses.dataclass(frozen=True)
class FitConfig:
    """How a network is fitted to a buffer.

    Attributes:
      steps: gradient steps of one fit.
      batch_size: rows of each step, sampled with replacement.
      learning_rate: of Adam.
      learning_rate_end: share of it that is left after the last step; it falls linearly. 1 keeps it constant.
      max_grad_norm: gradients are clipped to this norm.
      reinitialise: whether each fit starts from fresh parameters, else from the last fit's.
    """

    steps: int = number(3000, 1)
    batch_size: int = number(2048, 1)
    learning_rate: float = number(1e-3, 0, above=True)
    learning_rate_end: float = number(1.0, 0, 1)
    max_grad_norm: float = number(1.0, 0, above=True)
    reinitialise: bool = True


@dataclasses.dataclass(frozen=True)
class HeadConfig:
    """How a network's outputs become regrets, and regrets a policy.

    Attributes:
      head: "dueling": value + advantage - mean of the advantages over legal actions; "plain": the advantage.
      fallback: what is played where no regret is positive: the legal action of greatest regret, or all equally.
    """

    head: str = choice("dueling", "dueling", "plain")
    fallback: str = choice("argmax", "argmax", "uniform")


class Row(NamedTuple):
    """One information set met: what to learn about its actions.

    Attributes:
      view: of who decided.
      legal: uint8[ceil(A / 8)], packed by jnp.packbits.
      target: float32[A], regrets or a policy; 0 at illegal actions.
      weight: float32, of its loss.
    """

    view: Any
    legal: Array
    target: Array
    weight: Array


def combined(head: str, outputs: tuple[Array, Array], legal: Array) -> Array:
    """Returns a network's value of every legal action, 0 elsewhere: float32[..., A]."""
    advantages, value = outputs
    if head == "dueling":
        mean = jnp.sum(jnp.where(legal, advantages, 0.0), axis=-1, keepdims=True)
        mean = mean / jnp.maximum(jnp.sum(legal, axis=-1, keepdims=True), 1)
        advantages = value[..., None] + advantages - mean
    return jnp.where(legal, advantages, 0.0)


def own_outputs(network: Network, networks: Any, view: Any, player: Array) -> tuple[Array, Array]:
    """Returns the outputs of a player's own network: (float32[A], float32).

    Args:
      network: of both players.
      networks: parameters, leading axis [2].
      view: of the player.
      player: int32.
    """
    # Both networks run and one is chosen: parameters gathered by lane would turn matrix products into vector ones.
    outputs = jax.vmap(network.apply_inputs, in_axes=(0, None))(networks, network.inputs.of_view(view))
    return jax.tree.map(lambda both: jnp.where(player == 1, both[1], both[0]), outputs)


def own_policy(
    network: Network, config: HeadConfig, networks: Any, fitted: Array, view: Any, legal: Array, player: Array
) -> Array:
    """Returns regret matching of a player's own network, uniform until it is first fitted: float32[A].

    Args:
      network, networks, view, player: as in `own_outputs`.
      config: of its head.
      fitted: bool[2], by player.
      legal: bool[A].
    """
    regrets = combined(config.head, own_outputs(network, networks, view, player), legal)
    matched = regret_matching(regrets, legal, config.fallback).astype(jnp.float32)
    return jnp.where(jnp.where(player == 1, fitted[1], fitted[0]), matched, uniform(legal).astype(matched.dtype))


def regret_loss(head: str, outputs: tuple[Array, Array], legal: Array, target: Array, scale: Array) -> Array:
    """Returns each row's squared error in units of `scale`, the mean over its legal actions: float32[B]."""
    error = jnp.where(legal, combined(head, outputs, legal) - target / scale, 0.0)
    return jnp.sum(error**2, axis=-1) / jnp.maximum(jnp.sum(legal, axis=-1), 1)


def strategy_loss(outputs: tuple[Array, Array], legal: Array, target: Array) -> Array:
    """Returns each row's cross-entropy from a policy, least where the network predicts its mean: float32[B]."""
    return -jnp.sum(jnp.where(legal, target * masked_log_softmax(outputs[0], legal), 0.0), axis=-1)


class Batch(NamedTuple):
    """Rows to fit a network to.

    Attributes:
      inputs: float32[B, n], what the network reads.
      legal: bool[B, A].
      target: float32[B, A].
      weight: float32[B], of mean 1 over the buffer.
    """

    inputs: Array
    legal: Array
    target: Array
    weight: Array


Loss = Callable[[tuple[Array, Array], Array, Array], Array]
"""(outputs, legal bool[B, A], target float32[B, A]) -> float32[B]."""


def fit_network(
    network: Network, config: FitConfig, loss: Loss, params: Any, batch: Callable[[Array], Batch], key: Array
) -> tuple[Any, dict[str, Array]]:
    """Fits a network to weighted rows.

    Args:
      network: what is fitted.
      config: steps and rates.
      loss: of the rows.
      params: where to start, unless config.reinitialise.
      batch: number of the step, int32 -> rows.
      key: consumed.
    Returns:
      (params, metrics: loss, gradient_norm).
    """
    optimizer = adam(max_grad_norm=config.max_grad_norm, l2=0.0)
    if config.reinitialise:
        params = network.init(key)

    def weighted(params: Any, batch: Batch) -> tuple[Array, dict[str, Array]]:
        x, legal, target, weight = batch
        total = jnp.mean(weight * loss(network.apply_inputs(params, x), legal, target))
        return total, {"loss": total}

    def rate(n: Array) -> Array:
        return config.learning_rate * (1.0 - (1.0 - config.learning_rate_end) * n / config.steps)

    params, _, metrics = fit(
        weighted, optimizer, params, optimizer.init(params), batch, learning_rate=rate, steps=config.steps
    )
    return params, metrics


def batches_of(network: Network, buffer: ReservoirBuffer, size: int, key: Array) -> Callable[[Array], Batch]:
    """Returns number of the step -> its batch, sampled from a buffer of Row; `key` is not to be used elsewhere.

    Weights are divided by their mean over the buffer, not over the batch or by any one row's weight, which leaves the
    expected gradient that of the weighted loss. Where no row has a weight, as in a buffer without rows, all
    are 0, and so are the gradients.
    """
    mean_weight = jnp.maximum(reservoir.mean(buffer, buffer.rows.weight), 1e-30)
    actions = buffer.rows.target.shape[-1]

    def batch(n: Array) -> Batch:
        rows = reservoir.sample(buffer, jax.random.fold_in(key, n), size)
        legal = jnp.unpackbits(rows.legal, axis=-1, count=actions).astype(bool)
        return Batch(jax.vmap(network.inputs.of_view)(rows.view), legal, rows.target, rows.weight / mean_weight)

    return batch


def typical_size(weights: Array, targets: Array, legal: Array) -> Array:
    """Returns the root of the weighted mean square of targets over legal actions: float32, positive.

    Networks are fitted to targets divided by it, whatever a game's payoffs; regret matching ignores the scale.

    Args:
      weights: float32[N].
      targets: float32[N, A].
      legal: bool[N, A].
    """
    squares = jnp.sum(jnp.where(legal, targets**2, 0.0), axis=-1) / jnp.maximum(jnp.sum(legal, axis=-1), 1)
    return jnp.sqrt(jnp.sum(weights * squares) / jnp.maximum(jnp.sum(weights), 1e-30)) + 1e-12
