"""Targets of the dueling DREAM agent's network, and its loss."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from dream.algorithms.dueling_dream.parts import Example, Parts
from dream.equations.advantage_targets import policy_baseline_targets, value_baseline_targets
from dream.equations.mirror_descent import mirror_descent_policy
from dream.equations.regret_matching import masked_log_softmax
from dream.equations.sampling import entropy


class Batch(NamedTuple):
    """A minibatch.

    Attributes:
      inputs: float32[B, n], what the network reads.
      legal: bool[B, A].
      taken: bool[B, A], the action taken.
      targets: float32[B, A], of the advantages.
      returns: float32[B], targets of the value.
      played: float16[B, A], the policy that played.
      weights: float32[B], what each row counts.
    """

    inputs: Array
    legal: Array
    taken: Array
    targets: Array
    returns: Array
    played: Array
    weights: Array


def with_targets(parts: Parts, params: Any, target: Any, rows: Example) -> Batch:
    """Returns a minibatch with its targets, by the networks of the iteration's start, or by the critic."""
    legal = jnp.unpackbits(rows.legal, axis=-1, count=parts.game.num_actions).astype(bool)
    x = jax.vmap(parts.network.inputs.of_view)(rows.view)
    targets = _sampled_targets(parts, params, target, x, rows, legal) if parts.critic is None else rows.advantages
    taken = jax.nn.one_hot(rows.action, parts.game.num_actions, dtype=bool)
    return lax.stop_gradient(Batch(x, legal, taken, targets, rows.value_target, rows.policy, rows.weight))


def _sampled_targets(parts: Parts, params: Any, target: Any, x: Array, rows: Example, legal: Array) -> Array:
    """Returns targets from what came of the action taken, the target network's output for the others: float32[B, A]."""
    if parts.keeps_advantages:
        advantages, value = rows.advantages, rows.value
    else:
        advantages, value = parts.network.apply_inputs(target, x)[:2]
    action, clip = rows.action.astype(jnp.int32), parts.config.advantage_clip
    if parts.config.baseline == "value":
        value = parts.network.apply_inputs(params, x)[1]
        rule = jax.vmap(functools.partial(value_baseline_targets, clip=clip))
        return rule(advantages, value, action, rows.returns, legal)
    rule = jax.vmap(functools.partial(policy_baseline_targets, clip=clip))
    return rule(advantages, value, action, rows.returns, rows.policy.astype(jnp.float32), legal)


def dueling_loss(
    parts: Parts, params: Any, batch: Batch, *, eta: Any = 0.0, alpha: Any = 0.0
) -> tuple[Array, dict[str, Array]]:
    """Returns MSE of the advantages over legal actions + value_weight * MSE of the value, + KL of a policy head."""
    x, legal, taken, targets, returns, played, counts = batch
    outputs = parts.network.apply_inputs(params, x)
    advantages, value = outputs[:2]
    weights = jnp.where(legal, jnp.where(taken, 1.0, parts.config.untaken_weight), 0.0)
    errors = (advantages - targets) ** 2
    if parts.config.correct_exploration:
        errors *= counts[:, None]
    advantage_loss = jnp.sum(weights * errors) / jnp.sum(weights)
    value_loss = _mean(parts, (value - returns) ** 2, counts)
    total = advantage_loss + parts.config.value_weight * value_loss
    count = jnp.sum(legal)
    metrics = {
        "loss": total,
        "loss_advantage": advantage_loss,
        "loss_value": value_loss,
        "target_rms": jnp.sqrt(jnp.sum(jnp.where(legal, targets, 0.0) ** 2) / count),
        "advantage_rms": jnp.sqrt(jnp.sum(jnp.where(legal, advantages, 0.0) ** 2) / count),
    }
    if parts.critic is None:
        metrics["target_clipped"] = jnp.sum(legal & (jnp.abs(targets) >= parts.config.advantage_clip)) / count
    if not parts.config.accumulates:
        return total, metrics
    goal = mirror_descent_policy(played, lax.stop_gradient(advantages), legal, eta=eta, alpha=alpha)
    loss_policy = _mean(parts, _cross_entropy(goal, outputs[2], legal) - entropy(goal), counts)
    return total + loss_policy, metrics | {"loss": total + loss_policy, "loss_policy": loss_policy}


def _mean(parts: Parts, values: Array, counts: Array) -> Array:
    """Returns the mean over rows, each counting what it does where exploration is corrected: float32."""
    return jnp.mean(counts * values if parts.config.correct_exploration else values)


def _cross_entropy(goal: Array, logits: Array, legal: Array) -> Array:
    """Returns -sum over legal a of goal(a) log softmax(logits)(a): float32[...]."""
    return -jnp.sum(jnp.where(legal, goal * masked_log_softmax(logits, legal), 0.0), axis=-1)
