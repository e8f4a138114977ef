"""What a batch of played games comes to: means over decisions, and the metrics that all rollouts report."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from envs import Game


def masked_mean(x: Array, where: Array) -> Array:
    """Returns the mean of float32[...] where bool[...]; 0 where that is nowhere."""
    return jnp.sum(jnp.where(where, x, 0.0)) / jnp.maximum(jnp.sum(where), 1)


def masked_variance(x: Array, where: Array) -> Array:
    """Returns the variance of float32[...] where bool[...], about its mean there."""
    return masked_mean((x - masked_mean(x, where)) ** 2, where)


def rollout_metrics(
    game: Game,
    *,
    results: dict[str, Array],
    moves: Array,
    learned: Array,
    phase: Array,
    returns: Array,
    values: Array,
    entropies: Array,
) -> dict[str, Array]:
    """Returns the metrics of a batch of games: `self_play/` means of results, and of the decisions learned from.

    Args:
      game: what was played.
      results: by name, sums of results over the games that ended; `games` counts them.
      moves: int32, decisions of all players.
      learned: bool[T, N], the decisions learned from.
      phase: int8[T, N], index into game.phases.
      returns, values, entropies: float32[T, N], training return, predicted value and policy entropy of decisions.
    """
    games, variance = jnp.maximum(results["games"], 1), masked_variance(returns, learned)
    return {
        **{f"self_play/{name}": total / games for name, total in results.items() if name != "games"},
        "self_play/length": moves / games,
        "training_return_mean": masked_mean(returns, learned),
        "training_return_std": jnp.sqrt(variance),
        "value_explained_variance": 1.0 - masked_variance(returns - values, learned) / jnp.maximum(variance, 1e-12),
        **{f"entropy/{name}": masked_mean(entropies, learned & (phase == n)) for n, name in enumerate(game.phases)},
    }
