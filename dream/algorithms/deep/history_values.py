"""A history value function: a network that sees all hands, learned from recorded games by expected SARSA.

    Q(h, a) <- r + sum over a' of policy(h', a') Q(h', a'),  0 after the end, for player 0 (the negative for player 1).

As a baseline it reduces the variance of sampled regrets without bias, whatever its error.
Source: Steinberger, Lerer and Brown 2020, "DREAM", section 5; Davis et al. 2020 (baselines by history).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax

from dream.algorithms.deep.regret_networks import combined
from dream.buffers import reservoir
from dream.buffers.reservoir import ReservoirBuffer
from dream.compiled.bounded import long_loop
from dream.config.settings import choice, number
from dream.networks import Network
from dream.networks.fit import adam, fit
from dream.rollout.self_play import Outcomes, Record


@dataclasses.dataclass(frozen=True)
class HistoryValueConfig:
    """How the history value function is learned.

    Attributes:
      steps, batch_size, learning_rate, max_grad_norm: of one fit.
      capacity: newest transitions kept.
      reinitialise: whether each fit starts from fresh parameters.
      sync_every: gradient steps between copies of the network into the target network, which is used at h'; 1 for none.
        It is copied when a fit begins, too.
      policy: at h', "stored": as it was when the game was played; "current": today's.
      chance: between an action and what comes of it, "sampled"; "exact": its share in the baseline's error is taken
        out by enumerating all that could have come, on enumerable games.
    """

    steps: int = number(1000, 1)
    batch_size: int = number(512, 1)
    learning_rate: float = number(1e-3, 0, above=True)
    max_grad_norm: float = number(1.0, 0, above=True)
    capacity: int = number(200_000, 1)
    reinitialise: bool = False
    sync_every: int = number(1, 1)
    policy: str = choice("stored", "stored", "current")
    chance: str = choice("sampled", "sampled", "exact")


class Transition(NamedTuple):
    """One move and what came of it.

    Attributes:
      views, next_views: what all players saw, leading axis [2].
      legal, next_legal: uint8[ceil(A / 8)], packed.
      action: int16.
      reward: float32, to player 0.
      done: bool.
      next_player: int8.
      next_policy: float32[A], of who decides at h'.
    """

    views: Any
    legal: Array
    action: Array
    reward: Array
    done: Array
    next_views: Any
    next_legal: Array
    next_player: Array
    next_policy: Array


def transitions(record: Record, policies: Array, rewards: Array) -> tuple[Transition, Array]:
    """Pairs every recorded move with the one after it.

    Args:
      record: of games, with all views.
      policies: float32[T, N, A], of who decided.
      rewards: float32[T, N], to player 0.
    Returns:
      (transitions [T, N], which are valid bool[T, N]).
    """
    d = record.decisions

    def later(x: Array) -> Array:
        return jnp.roll(x, -1, axis=0)

    rows = Transition(
        d.views, d.legal, d.action, rewards, d.done,
        jax.tree.map(later, d.views), later(d.legal), later(d.player), later(policies),
    )  # fmt: skip
    return rows, record.valid


def action_values(network: Network, params: Any, views: Any, legal: Array) -> Array:
    """Returns Q of one history to player 0: float32[A]; `views` has the leading axis [2]."""
    return combined("dueling", network.apply_inputs(params, network.inputs.of_view(views)), legal)


def expected_next_value(
    values: Callable[[Any, Array], Array], policy: Callable[[Any, Array, Array], Array], outcomes: Outcomes
) -> Array:
    """Returns what is expected of one action, over all that it can lead to, to player 0: float32.

        sum over k of chance(k) (r_k + sum over a' of policy(h_k, a') Q(h_k, a')),  the second 0 where the game is over.

    Args:
      values: (views of all players, legal bool[A]) -> Q float32[A].
      policy: (view, legal, player) -> float32[A].
      outcomes: of the action.
    """

    def value(one: Outcomes) -> Array:
        player = jnp.maximum(one.player, 0).astype(jnp.int32)
        view = jax.tree.map(lambda x: x[player], one.views)
        later = jnp.dot(policy(view, one.legal, player), values(one.views, one.legal), precision="highest")
        return one.rewards[0] + jnp.where(one.done, 0.0, later)

    expected = jnp.where(outcomes.chance > 0, jax.vmap(value)(outcomes), 0.0)
    return jnp.dot(outcomes.chance, expected, precision="highest")


def optimizer(config: HistoryValueConfig) -> optax.GradientTransformation:
    """Returns Adam's direction for it."""
    return adam(max_grad_norm=config.max_grad_norm, l2=0.0)


def next_policies(rows: Transition, legal: Array, policy: Callable[[Any, Array, Array], Array]) -> Array:
    """Returns what a policy plays where the moves led: float32[B, A]; `legal` bool[B, A] is of there."""
    seats = jnp.maximum(rows.next_player, 0).astype(jnp.int32)
    views = jax.tree.map(lambda x: x[np.arange(seats.shape[0]), seats], rows.next_views)
    return jax.vmap(policy)(views, legal, seats)


class ValueState(NamedTuple):
    """A history value function while it learns.

    Attributes:
      params, optimizer_state: of its network.
      buffer: ReservoirBuffer of Transition, the newest.
      slow: a moving average of params; () where none is kept.
    """

    params: Any
    optimizer_state: Any
    buffer: ReservoirBuffer
    slow: Any = ()


def learn(
    network: Network,
    config: HistoryValueConfig,
    state: ValueState,
    policy: Callable[[Any, Array, Array], Array],
    key: Array,
) -> tuple[ValueState, dict[str, Array]]:
    """Fits the value function to its buffer.

    Args:
      network: of histories.
      config: budget and kind of target.
      state: what to go on from; its parameters are drawn anew with config.reinitialise.
      policy: (view, legal, player) -> float32[A], the current one; used where config.policy is "current".
      key: consumed.
    Returns:
      (state, metrics: baseline_loss, the mean over all steps).
    """
    sample_key, init_key = jax.random.split(key)
    direction, params, optimizer_state = optimizer(config), state.params, state.optimizer_state
    if config.reinitialise:
        params = network.init(init_key)
        optimizer_state = direction.init(params)
    batch = _batches(config, state.buffer, policy, sample_key)

    def fitted(
        target_params: Any, params: Any, optimizer_state: Any, first: Array | int, steps: int
    ) -> tuple[Any, Any, dict[str, Array]]:
        return fit(
            functools.partial(_loss, network, target_params), direction, params, optimizer_state,
            lambda n: batch(first + n), learning_rate=config.learning_rate, steps=steps,
        )  # fmt: skip

    if config.sync_every == 1:
        params, optimizer_state, metrics = fitted(None, params, optimizer_state, 0, config.steps)
    else:
        length = _period_length(config)

        def period(at: tuple[Array, Any, Any, dict[str, Array]]) -> tuple[Array, Any, Any, dict[str, Array]]:
            n, params, optimizer_state, sums = at
            params, optimizer_state, metrics = fitted(params, params, optimizer_state, n * length, length)
            return n + 1, params, optimizer_state, jax.tree.map(jnp.add, sums, metrics)

        zeros = {"baseline_loss": jnp.float32(0), "gradient_norm": jnp.float32(0)}
        _, params, optimizer_state, sums = long_loop(
            lambda at: at[0] < _periods(config), period, (jnp.int32(0), params, optimizer_state, zeros)
        )
        metrics = {name: total / _periods(config) for name, total in sums.items()}
    return state._replace(params=params, optimizer_state=optimizer_state), {"baseline_loss": metrics["baseline_loss"]}


def network_rows(config: HistoryValueConfig, policy_networks: int) -> int:
    """Returns the inputs that networks are applied to in one fit: h and h', and h' by what gives the current policy.

    Args:
      config: sizes, and whether the policy is the current one.
      policy_networks: how many networks give it, 2 where each player has one.
    """
    return gradient_steps(config) * config.batch_size * (2 + (policy_networks if config.policy == "current" else 0))


def gradient_steps(config: HistoryValueConfig) -> int:
    """Returns the gradient steps of one fit: `steps`, rounded down to whole periods of the target network.

    All of them where a period is longer than the fit, as its target network is copied when it begins.
    """
    return _periods(config) * _period_length(config)


def _period_length(config: HistoryValueConfig) -> int:
    """Returns the gradient steps between two copies of the target network."""
    return min(config.sync_every, config.steps)


def _periods(config: HistoryValueConfig) -> int:
    """Returns how often the target network is copied in one fit."""
    return config.steps // _period_length(config)


class _Batch(NamedTuple):
    """A minibatch: transitions, legal actions at h and at h' bool[B, A], and the policy at h' float32[B, A]."""

    rows: Transition
    legal: Array
    next_legal: Array
    next_policy: Array


def _batches(
    config: HistoryValueConfig, buffer: ReservoirBuffer, policy: Callable[[Any, Array, Array], Array], key: Array
) -> Callable[[Array], _Batch]:
    """Returns number of the step -> its minibatch."""
    actions = buffer.rows.next_policy.shape[-1]

    def batch(n: Array) -> _Batch:
        rows = reservoir.sample(buffer, jax.random.fold_in(key, n), config.batch_size)
        legal, ahead = (jnp.unpackbits(x, axis=-1, count=actions).astype(bool) for x in (rows.legal, rows.next_legal))
        current = config.policy == "current"
        return _Batch(rows, legal, ahead, next_policies(rows, ahead, policy) if current else rows.next_policy)

    return batch


def _loss(network: Network, target_params: Any, params: Any, batch: _Batch) -> tuple[Array, dict[str, Array]]:
    """Returns the mean squared error; `target_params` are used at h', `params` themselves where that is None."""
    rows, legal, next_legal, next_policy = batch
    values = jax.vmap(functools.partial(action_values, network), in_axes=(None, 0, 0))
    later = values(params if target_params is None else target_params, rows.next_views, next_legal)
    expected = jnp.sum(next_policy * later, axis=-1)
    target = lax.stop_gradient(rows.reward + jnp.where(rows.done, 0.0, expected))
    q_values = values(params, rows.views, legal)
    predicted = q_values[np.arange(legal.shape[0]), rows.action.astype(jnp.int32)]
    total = jnp.mean((predicted - target) ** 2)
    return total, {"baseline_loss": total}
