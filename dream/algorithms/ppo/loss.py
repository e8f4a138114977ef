"""What PPO learns from, and its loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from dream.algorithms.ppo.regularisation import NewPolicy, Penalty, weight_of
from dream.algorithms.ppo.settings import PpoConfig
from dream.equations.mirror_descent import FLOOR
from dream.equations.regret_matching import masked_log_softmax
from dream.networks import Network


class Example(NamedTuple):
    """One decision to learn from; in a batch every field has a leading axis [B].

    Attributes:
      view: what the player who decided saw; with keep_inputs the network's inputs, float32[inputs.size].
      legal: uint8[ceil(A / 8)], the legal actions, packed by jnp.packbits.
      action: int16.
      old_prob: float32, the probability that the policy which played gave the action, without exploration.
      advantage: float32, of the action taken, in units of reward.
      returns: float32, what the value is fitted to, in units of reward: the lambda-return, or where games explore the
        critic's V.
      auxiliary: float32, game.auxiliary; () where no head predicts it.
      played: policy and advantages of all actions, where the objective is over them; else ().
    """

    view: Any
    legal: Array
    action: Array
    old_prob: Array
    advantage: Array
    returns: Array
    auxiliary: Any
    played: Any = ()


class Played(NamedTuple):
    """What was known of all actions of a decision when it was played.

    Attributes:
      policy: float32[A], what the action was sampled from, exploration left out.
      advantages: float32[A], of each action to the player who decided, in units of reward; 0 at illegal ones.
      weight: float32, what the decision counts: how much likelier the others' earlier actions are without exploration.
    """

    policy: Array
    advantages: Array
    weight: Array


def clipped_loss(ratio: Array, advantage: Array, clip: float) -> Array:
    """Returns -min(rho A, clip(rho, 1 - c, 1 + c) A), elementwise: float32[...].

    Source: Schulman et al. 2017, eq. 7.
    """
    return -jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - clip, 1 + clip) * advantage)


def mean_size(played: Played) -> Array:
    """Returns the root mean square of a minibatch's advantages under the policy that played: float32, positive."""
    return jnp.sqrt(jnp.mean(played.weight * jnp.sum(played.policy * played.advantages**2, axis=-1))) + 1e-8


def _policy_loss(config: PpoConfig, rows: Example, legal: Array, logs: Array, log_ratio: Array) -> Array:
    """Returns what the objective is without its penalty: float32; with `mirror_step` the penalty is all of it."""
    if config.objective == "mirror_step":
        return jnp.float32(0.0)
    if config.objective == "all_actions":
        new = jnp.where(legal, jnp.exp(logs), 0.0)
        scale = 1.0 if config.advantage_unit == "reward" else mean_size(rows.played)
        return -jnp.mean(rows.played.weight * jnp.sum(new * rows.played.advantages, axis=-1)) / scale
    advantage = rows.advantage
    if config.advantage_unit == "batch":
        advantage = (advantage - jnp.mean(advantage)) / (jnp.std(advantage) + 1e-8)
    return jnp.mean(clipped_loss(jnp.exp(log_ratio), advantage, config.clip_epsilon))


def _moved(config: PpoConfig, played: Any, logs: Array, log_ratio: Array) -> dict[str, Array]:
    """Returns how far the policy is from the one that played: KL(pi_then, pi), exact where all actions are known."""
    if played == ():
        clipped = jnp.mean(jnp.abs(jnp.exp(log_ratio) - 1.0) > config.clip_epsilon)
        return {"kl": jnp.mean(jnp.exp(log_ratio) - 1.0 - log_ratio), "clipped": clipped}
    apart = jnp.where(played.policy > 0, played.policy * (jnp.log(jnp.maximum(played.policy, FLOOR)) - logs), 0.0)
    return {"kl": jnp.mean(played.weight * jnp.sum(apart, axis=-1))}


def value_loss(config: PpoConfig, rows: Example, value: Array) -> Array:
    """Returns the mean of (V - G)^2: float32; or over the variance of G, or with V clipped around the V that played.

    G is `rows.returns`; where games explore these are the critic's values, and the variance is theirs.

    Clipped: the mean of max((V - G)^2, (V_old + clip(V - V_old, -c, c) - G)^2), as in the PPO of OpenAI's baselines;
    V_old = G - A.
    """
    squares = (value - rows.returns) ** 2
    if config.value_loss == "clipped":
        old = rows.returns - rows.advantage
        near = old + jnp.clip(value - old, -config.clip_epsilon, config.clip_epsilon)
        squares = jnp.maximum(squares, (near - rows.returns) ** 2)
    mean = jnp.mean(weight_of(rows.played) * squares)
    return mean / jnp.maximum(jnp.var(rows.returns), 1e-6) if config.value_loss == "relative" else mean


def make_loss(
    config: PpoConfig, network: Network, num_actions: int, penalty: Penalty
) -> Callable[[Any, Example], tuple[Array, dict[str, Array]]]:
    """Returns (params, examples) -> (loss float32, metrics), as dream/algorithms/ppo/learner.py defines it.

    Args:
      config: weights and clip.
      network: whose parameters they are.
      num_actions: of the game.
      penalty: what keeps the policy from becoming greedy.
    """

    def outputs(params: Any, x: Array, rows: Example) -> tuple[tuple[Array, Array], dict[str, Array]]:
        if network.auxiliary_prediction is None:
            return network.apply_inputs(params, x), {}
        policy_and_value, predicted = network.auxiliary_prediction(params, x)
        return policy_and_value, {
            "loss_auxiliary": jnp.mean(weight_of(rows.played) * (predicted - rows.auxiliary) ** 2)
        }

    def loss(params: Any, rows: Example) -> tuple[Array, dict[str, Array]]:
        legal = jnp.unpackbits(rows.legal, axis=-1, count=num_actions).astype(bool)
        x = rows.view if config.keep_inputs else jax.vmap(network.inputs.of_view)(rows.view)
        (logits, value), metrics = outputs(params, lax.stop_gradient(x), rows)
        logs = masked_log_softmax(logits, legal)
        action = rows.action.astype(jnp.int32)[:, None]
        log_ratio = jnp.take_along_axis(logs, action, axis=-1)[:, 0] - jnp.log(jnp.maximum(rows.old_prob, 1e-9))
        policy_loss = _policy_loss(config, rows, legal, logs, log_ratio)
        of_value = value_loss(config, rows, value)
        regularised, penalty_metrics = penalty(NewPolicy(x, legal, logs, log_ratio, rows.played))
        total = policy_loss + config.value_weight * of_value + regularised
        total = total + config.auxiliary_weight * metrics.get("loss_auxiliary", 0.0)
        metrics |= penalty_metrics
        metrics |= {
            "loss": total,
            "loss_policy": policy_loss,
            "loss_value": of_value,
            "entropy": jnp.mean(-jnp.sum(jnp.where(legal, jnp.exp(logs) * logs, 0.0), axis=-1)),
            **_moved(config, rows.played, logs, log_ratio),
        }
        return total, metrics

    return loss
