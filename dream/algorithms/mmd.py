"""Magnetic mirror descent with a network: PPO with a reverse KL to the policy that played, and a magnet.

    loss = PPO's without entropy + alpha mean KL(pi, rho) + beta mean (r log r - (r - 1)),  r = pi(a) / pi_then(a)

rho, the magnet, is uniform play (then KL(pi, rho) is minus the entropy up to a constant) or the policy with a moving
average of past parameters. alpha decays over iterations by `entropy_decay`, and with `step_falls` so does the step
size, 1 / beta: policies converge where the step size is at most a fraction of alpha, and cycle where it is large (exact
steps on Leduc at alpha 0.3: 0.1 converges, 0.3 does not). The last term is an unbiased estimate of KL(pi, pi_then). The
result is the last iterate, or with `average_tau` the network with a moving average of the parameters.
With `objective=all_actions` a critic's advantages of all actions replace PPO's clipped ratio, and the last term is
KL(pi, pi_then) itself: - mean sum over a of pi(a) A(h, a) + ..., the objective of the exact step.
With `objective=mirror_step` the logits are fitted to the closed form of that step by least squares,

    loss = (alpha + beta) / 2 mean w sum over legal a of (l(a) - (beta log pi_then(a) + alpha log rho(a) + A(h, a))
                                                                 / (alpha + beta))^2,

both centred over the legal actions, so that rarely played actions are fitted as well as any other; the mean of this
loss over the histories of an information set is minimal at the step with the mean advantages. PPO's value loss is kept.
w is 1, or with `exploration` the reach ratio of the other players, which weights all terms of the loss, also with
`all_actions`. With `optimism` the critic's change over past iterations is added to A (dream/algorithms/critic.py).
Deviation: the source takes gradient steps on the objective and never fits its minimum.
For one information set with action values q the exact step is that of dream/algorithms/tabular/mmd.py.
Source: Sokota et al. 2023, "A unified approach to reinforcement learning, quantal response equilibria, and two-player
zero-sum games", section 5 and appendix; Rudolph et al. 2026, "Reevaluating policy gradient methods for
imperfect-information games", for the sampled term next to PPO's clip.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from dream.algorithms import ppo
from dream.algorithms.ppo.regularisation import NewPolicy, Regulariser, negative_entropy
from dream.algorithms.types import Algorithm, Resources
from dream.config.settings import choice, number
from dream.equations.mirror_descent import FLOOR, magnetic_logits
from dream.equations.regret_matching import masked_log_softmax
from dream.equations.schedules import Schedule
from dream.networks import Network
from envs import Game, InputError


@dataclasses.dataclass(frozen=True)
class MmdConfig(ppo.PpoConfig):
    """Settings of MMD: PPO's, of which `entropy_weight` is alpha, and its own; conf/algo/mmd.yaml describes each."""

    name: str = "mmd"
    entropy_weight: float = number(0.05, 0)
    kl_weight: float = number(0.05, 0)
    objective: str = choice("sampled", "sampled", "all_actions", "mirror_step")
    step_falls: bool = False
    magnet: str = choice("uniform", "uniform", "moving_average")
    magnet_tau: float = number(0.01, 0, 1, above=True)


def make(config: MmdConfig, network: Any, game: Game, resources: Resources) -> Algorithm:
    """Builds the learner.

    Raises:
      InputError: settings that contradict each other, an unknown opponent, or a wrong network node.
    """
    if config.objective == "mirror_step" and not config.kl_weight:
        raise InputError("algo.objective=mirror_step needs a step; algo.kl_weight=0 must be more than 0")
    if config.objective == "mirror_step" and config.advantage_unit != "reward":
        raise InputError(
            f"algo.objective=mirror_step fits steps of one size; algo.advantage_unit={config.advantage_unit} must be "
            "reward"
        )
    if config.step_falls and min(config.entropy_decay.start, config.entropy_decay.end) <= 0:
        raise InputError(
            f"algo.step_falls divides by a factor that goes from {config.entropy_decay.start:g} to "
            f"{config.entropy_decay.end:g}; algo.entropy_decay.start and .end must be above 0"
        )
    return ppo.make_regularised(config, network, game, resources, functools.partial(_regulariser, config))


def _regulariser(config: MmdConfig, network: Network) -> Regulariser:
    """Returns the two KL terms; what is carried is the moving average, or nothing."""
    moves = config.magnet == "moving_average"

    def penalty(magnet: Any, at: Callable[[Schedule], Array], new: NewPolicy) -> tuple[Array, dict[str, Array]]:
        to_magnet, logs = negative_entropy(new), jnp.zeros_like(new.logs)
        if moves:
            logs = masked_log_softmax(network.apply_inputs(magnet, new.inputs)[0], new.legal)
            to_magnet = kl_divergence(new.logs, lax.stop_gradient(logs), new.legal)
        to_played = sampled_kl(new.log_ratio) if new.played == () else _exact_kl(new)
        attraction, proximity = jnp.mean(new.weight * to_magnet), jnp.mean(new.weight * to_played)
        factor = at(config.entropy_decay)
        alpha, beta = config.entropy_weight * factor, config.kl_weight / (factor if config.step_falls else 1.0)
        metrics = {"entropy_weight": alpha, "kl_weight": beta, "reverse_kl": proximity}
        metrics |= {"magnet_kl": attraction} if moves else {}
        if config.objective == "mirror_step":
            distance = _distance_to_step(new, lax.stop_gradient(logs), alpha, beta)
            return distance, metrics | {"step_distance": distance}
        return alpha * attraction + beta * proximity, metrics

    def update(magnet: Any, params: Any) -> Any:
        return optax.incremental_update(params, magnet, config.magnet_tau) if moves else magnet

    def init(params: Any) -> Any:
        return jax.tree.map(jnp.copy, params) if moves else ()

    return Regulariser(init, penalty, update, networks=1 + moves)


def _distance_to_step(new: NewPolicy, magnet_logs: Array, alpha: Array, beta: Array) -> Array:
    """Returns the loss of `mirror_step`: float32; magnet_logs float32[B, A], log rho up to a constant."""
    played = jnp.log(jnp.maximum(new.played.policy, FLOOR))
    goal = magnetic_logits(played, new.played.advantages, magnet_logs, step=1.0 / beta, strength=alpha)
    apart = jnp.where(new.legal, new.logs - goal, 0.0)
    count = jnp.sum(new.legal, axis=-1, keepdims=True)
    apart = jnp.where(new.legal, apart - jnp.sum(apart, axis=-1, keepdims=True) / count, 0.0)
    return 0.5 * (alpha + beta) * jnp.mean(new.weight * jnp.sum(apart**2, axis=-1))


def _exact_kl(new: NewPolicy) -> Array:
    """Returns KL(pi, pi_then) over all actions: float32[B]."""
    played = jnp.log(jnp.maximum(new.played.policy, FLOOR))
    return kl_divergence(new.logs, played, new.legal)


def sampled_kl(log_ratio: Array) -> Array:
    """Returns r log r - (r - 1) of log r: float32[...], its mean over a ~ pi_then is KL(pi, pi_then)."""
    ratio = jnp.exp(log_ratio)
    return ratio * log_ratio - (ratio - 1.0)


def kl_divergence(logs: Array, other: Array, legal: Array) -> Array:
    """Returns KL(pi, rho) = sum over legal a of pi(a) (log pi(a) - log rho(a)), in nats: float32[...].

    Args:
      logs: float32[..., A], log pi.
      other: float32[..., A], log rho.
      legal: bool[..., A].
    """
    return jnp.sum(jnp.where(legal, jnp.exp(logs) * (logs - other), 0.0), axis=-1)
