"""From advantages or logits to a policy: one equation each."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from envs.random_play import uniform

LOW = -1e9
"""Stands for minus infinity in logits."""


def masked_softmax(logits: Array, legal: Array) -> Array:
    """Returns softmax over legal actions, 0 elsewhere: float32[..., A]; all 0 where nothing is legal."""
    return jnp.where(legal, jax.nn.softmax(_below_best(logits, legal), axis=-1), 0.0)


def masked_log_softmax(logits: Array, legal: Array) -> Array:
    """Returns the logarithm of `masked_softmax` at legal actions, about LOW elsewhere: float32[..., A]."""
    return jax.nn.log_softmax(_below_best(logits, legal), axis=-1)


def _below_best(logits: Array, legal: Array) -> Array:
    """Returns logits less the greatest legal one, which may itself be below LOW; LOW at illegal actions."""
    best = lax.stop_gradient(jnp.max(jnp.where(legal, logits, -jnp.inf), axis=-1, keepdims=True))
    return jnp.where(legal, logits - best, LOW)


def soft_regret_matching(advantages: Array, legal_mask: Array, temperature: Array | float) -> Array:
    """Returns a softened regret-matching policy.

    policy(a) = softplus((A(a) - max over legal b of A(b)) / T) / sum over legal actions of the same

    Despite the name nothing is accumulated: the best action always has the numerator log 2, one T lower 0.31, and far
    below the tail is that of a softmax. Uniform where all advantages are equal.

    Args:
      advantages: float32[..., A], finite on legal actions.
      legal_mask: bool[..., A].
      temperature: T > 0; finite results down to 1e-3 and below.
    Returns:
      float32[..., A], summing to one over legal actions and 0 elsewhere; all 0 where nothing is legal.
    Source: the DREAM document, section 1, "Soft regret matching policy".
    """
    best = jnp.max(jnp.where(legal_mask, advantages, -jnp.inf), axis=-1, keepdims=True)
    below = jnp.where(legal_mask, advantages - best, 0.0)
    weights = jnp.where(legal_mask, jax.nn.softplus(below / temperature), 0.0)
    total = jnp.sum(weights, axis=-1, keepdims=True)
    return weights / jnp.where(total > 0, total, 1.0)


def regret_matching(regrets: Array, legal: Array, fallback: str = "uniform") -> Array:
    """Returns [R]+ normalised over legal actions: [..., A].

    Where no legal action has positive regret: uniform, or with fallback "argmax" the legal action of greatest regret.
    Tables that started at 0 need the first; networks, whose regrets are off by their errors, do better with the second.

    Args:
      regrets: float[..., A], finite.
      legal: bool[..., A].
      fallback: "uniform" or "argmax".
    Source: Hart and Mas-Colell 2000; Zinkevich et al. 2007, eq. 8; Brown et al. 2019, "Deep counterfactual regret
      minimization", section 5.2 (argmax).
    """
    positive = jnp.where(legal, jnp.maximum(regrets, 0), 0)
    total = jnp.sum(positive, axis=-1, keepdims=True)
    if fallback == "argmax":
        best = jnp.argmax(jnp.where(legal, regrets, -jnp.inf), axis=-1)
        otherwise = legal & jax.nn.one_hot(best, legal.shape[-1], dtype=bool)
    else:
        otherwise = uniform(jnp.asarray(legal))
    return jnp.where(total > 0, positive / jnp.where(total > 0, total, 1), otherwise)
