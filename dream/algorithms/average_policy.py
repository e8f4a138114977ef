"""The average of the policies that a self-play learner played: a network fitted to a reservoir of its decisions.

For every decision the policy is stored, not the sampled action, so the cross-entropy is minimal at the mean of the
policies. A decision has the weight

    (t + 1)^power * product over the player's own earlier decisions of pi(a) / mu(a)

with t its iteration, pi the policy and mu the behaviour policy: the average at an information set weights each policy
by the player's own reach. The reach of the others, which changes as they learn, remains in the weights, as in NFSP.
Sources: Heinrich and Silver 2016 (NFSP), section 3; Zinkevich et al. 2007, eq. 4 (the average).
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from dream.algorithms.counters import Counters
from dream.buffers import reservoir
from dream.buffers.reservoir import MOST_POWER, ReservoirBuffer
from dream.config.settings import number
from dream.equations.regret_matching import masked_log_softmax, masked_softmax
from dream.networks import Network
from dream.networks.fit import adam, fit
from envs import Game


@dataclasses.dataclass(frozen=True)
class AverageConfig:
    """Settings of the average policy.

    Attributes:
      capacity: decisions in the reservoir; 0: no average.
      steps: gradient steps per iteration.
      batch_size: decisions per step.
      learning_rate: of Adam.
      power: weight (t + 1)^power of iteration t.
    """

    capacity: int = number(0, 0)
    steps: int = number(20, 1)
    batch_size: int = number(512, 1)
    learning_rate: float = number(1e-3, 0, above=True)
    power: float = number(1.0, 0, MOST_POWER)


class Played(NamedTuple):
    """One decision; in the reservoir every field has a leading axis.

    Attributes:
      view: what the player saw.
      legal: uint8[ceil(A / 8)], packed.
      policy: float16[A], that decided.
      weight: float32.
    """

    view: Any
    legal: Array
    policy: Array
    weight: Array


class Average(NamedTuple):
    """The network while it learns: parameters, optimiser's state, reservoir of Played."""

    params: Any
    optimizer_state: Any
    buffer: ReservoirBuffer


@dataclasses.dataclass(frozen=True, eq=False)
class AveragePolicy:
    """How the average is kept; the network's first output holds its logits."""

    config: AverageConfig
    game: Game
    network: Network

    @functools.cached_property
    def optimizer(self) -> optax.GradientTransformation:
        """Adam's direction, its gradients bounded."""
        return adam(max_grad_norm=10.0, l2=0.0)

    def init(self, key: Array) -> Average:
        """Initialises the network; the reservoir is empty."""

        def row() -> Played:
            state = self.game.init(jax.random.key(0))
            view, legal = self.game.view(state, jnp.int32(0)), jnp.packbits(self.game.legal_actions(state))
            return Played(view, legal, jnp.zeros(self.game.num_actions, jnp.float16), jnp.float32(0))

        params = self.network.init(key)
        buffer = reservoir.empty(jax.eval_shape(row), self.config.capacity)
        return Average(params, self.optimizer.init(params), buffer)

    def update(
        self, average: Average, rows: Played, valid: Array, iteration: Array, key: Array, *, decay: Array
    ) -> tuple[Average, Array]:
        """Adds an iteration's decisions and fits the network to all; returns its loss too.

        Args:
          average: so far.
          rows: leading axis [N], weighted by the player's own reach alone.
          valid: bool[N].
          iteration: int32, counted from 0.
          key: consumed.
          decay: factor of the step size.
        """
        add_key, key = jax.random.split(key)
        rows = rows._replace(weight=rows.weight * (iteration + 1.0) ** self.config.power)
        buffer = reservoir.add(average.buffer, rows, valid, add_key, kind="reservoir")
        mean_weight = jnp.maximum(reservoir.mean(buffer, buffer.rows.weight), 1e-30)

        def batch(n: Array) -> Played:
            rows = reservoir.sample(buffer, jax.random.fold_in(key, n), self.config.batch_size)
            return rows._replace(weight=rows.weight / mean_weight)

        params, optimizer_state, metrics = fit(
            self._loss, self.optimizer, average.params, average.optimizer_state, batch,
            learning_rate=self.config.learning_rate * decay, steps=self.config.steps,
        )  # fmt: skip
        return Average(params, optimizer_state, buffer), metrics["loss"]

    @property
    def counters(self) -> Counters:
        """Counts one update."""
        return Counters(gradient_steps=self.config.steps, network_rows=self.config.steps * self.config.batch_size)

    def play(self, params: Any, view: Any, legal: Array) -> Array:
        """Returns the average policy: float32[A]."""
        return masked_softmax(self.network.apply_inputs(params, self.network.inputs.of_view(view))[0], legal)

    def _loss(self, params: Any, rows: Played) -> tuple[Array, dict[str, Array]]:
        """Returns the mean cross-entropy from the policies that decided; weights have mean 1 in the buffer.

        Divided by the sum of a minibatch's own weights, small minibatches would lean to the mean without weights.
        """
        legal = jnp.unpackbits(rows.legal, axis=-1, count=self.game.num_actions).astype(bool)
        logits = self.network.apply_inputs(params, jax.vmap(self.network.inputs.of_view)(rows.view))[0]
        logs = jnp.where(legal, rows.policy.astype(jnp.float32) * masked_log_softmax(logits, legal), 0.0)
        loss = -jnp.mean(rows.weight * jnp.sum(logs, axis=-1))
        return loss, {"loss": loss}
