"""Targets of the dueling DREAM network."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array


def policy_baseline_targets(
    advantages: Array, value: Array, action: Array, returns: Array, policy: Array, legal: Array, clip: float
) -> Array:
    """Returns the advantage of every legal action against the policy's mean.

    Q(a) = returns for the action taken, value + advantages(a) of the target network for the others;
    target(a) = clip(Q(a) - sum over b of policy(b) * Q(b)).

    Args:
      advantages: float32[A], the target network's.
      value: float32, the target network's.
      action: int32, the action taken.
      returns: float32, its discounted return.
      policy: float32[A], the policy that acted, without exploration.
      legal: bool[A].
      clip: bound on the absolute value.
    Returns:
      float32[A], 0 on illegal actions.
    Source: the DREAM document, section 2, "Untaken actions use stable target network Q-values; taken actions use actual
      returns". Deviation: none; the document does not say what advantages are measured from, here it is the mean under
      the policy that acted.
    """
    taken = jax.nn.one_hot(action, advantages.shape[0], dtype=bool)
    q = jnp.where(taken, returns, value + advantages)
    centred = q - jnp.sum(jnp.where(legal, policy * q, 0.0))
    return jnp.where(legal, jnp.clip(centred, -clip, clip), 0.0)


def value_baseline_targets(
    advantages: Array, value: Array, action: Array, returns: Array, legal: Array, clip: float
) -> Array:
    """Returns the advantage of every legal action against the state's value.

    target(a) = clip(returns - value) for the action taken, clip(advantages(a)) for the others.
    A return moves the action it followed and no other, so an error of the value is not spread over the untaken actions.

    Args:
      advantages: float32[A], the target network's.
      value: float32, the online network's, which has seen the latest play.
      action: int32, the action taken.
      returns: float32, its discounted return.
      legal: bool[A].
      clip: bound on the absolute value.
    Returns:
      float32[A], 0 on illegal actions.
    Source: as `policy_baseline_targets`, Q(a) - V with Q(a) = V + advantages(a) of actions not taken.
    """
    taken = jax.nn.one_hot(action, advantages.shape[0], dtype=bool)
    targets = jnp.where(taken, returns - value, advantages)
    return jnp.where(legal, jnp.clip(targets, -clip, clip), 0.0)
