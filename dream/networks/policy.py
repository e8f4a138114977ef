"""A network and a rule to act by, as a Policy whose parameters are the network's own."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from dream.config.settings import choice, number
from dream.equations.regret_matching import masked_softmax, soft_regret_matching
from dream.networks import Network
from envs import Game, InputError, Policy


@dataclasses.dataclass(frozen=True)
class Acts:
    """How a network's first output becomes a policy: by which rule, at which temperature."""

    by: str = choice("softmax", "softmax", "soft_regret_matching")
    temperature: float = number(1.0, 0, above=True)


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=["params"], meta_fields=["apply", "game", "value", "win_bonus"]
)
@dataclasses.dataclass(frozen=True)
class ValuedPolicy(Policy):
    """The softmax of a network, which is in `params` as "network"; it also says what its player expects to win.

    Attributes:
      value: (params, view of the player to act) -> float32, rewards from here to the end of the game, with `win_bonus`
        added if the end pays the player, and taken off if it costs; None: not known.
      win_bonus: what the player was trained to count a win as worth besides its rewards, in units of reward.
    """

    value: Callable[[Any, Any], Array] | None = None
    win_bonus: float = 0.0


def without_value(policy: Policy) -> Policy:
    """Returns a policy that knows no value and counts no bonus, and plays the same."""
    return dataclasses.replace(policy, value=None, win_bonus=0.0) if isinstance(policy, ValuedPolicy) else policy


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=["params"], meta_fields=["apply", "game", "forward", "by"]
)
@dataclasses.dataclass(frozen=True)
class NetworkPolicy(Policy):
    """A Policy made of one network.

    Attributes:
      forward: (params, observations float32[B, N]) -> the network's outputs by name.
      by: the rule it acts by, as of `Acts`.
    """

    forward: Callable[[Any, Array], dict[str, Array]] | None = None
    by: str = "softmax"

    def outputs(self, observations: Array) -> dict[str, Array]:
        """Returns every head's output by name: float32[B] or float32[B, A].

        Args:
          observations: float32[B, observation_size].
        Raises:
          InputError: of another shape.
        """
        return self.forward(self.params, jnp.asarray(observations, jnp.float32))


def logits_params(policy: Policy) -> Any:
    """Returns the parameters of the network whose softmax a policy is; None where it plays by anything else."""
    if isinstance(policy, NetworkPolicy):
        return policy.params if policy.by == "softmax" else None
    return policy.params["network"] if isinstance(policy, ValuedPolicy) else None


def make_network_policy(game: Game, network: Network, params: Any, acts: Acts) -> NetworkPolicy:
    """Builds the Policy.

    Args:
      game: whose views it reads.
      network: on the game's observations.
      params: the network's.
      acts: how it plays.
    """

    def apply(params: Any, view: Any, legal: Array) -> Array:
        rated, _ = network.apply_inputs(params, network.inputs.of_view(view))
        if acts.by == "softmax":
            return masked_softmax(rated / acts.temperature, legal)
        return soft_regret_matching(rated, legal, acts.temperature)

    def heads(params: Any, observation: Array) -> dict[str, Array]:
        if network.heads is None:
            return dict(zip(("advantages", "value"), network.apply(params, observation), strict=True))
        return network.heads(params, network.inputs.of_observation(observation))

    compiled = jax.jit(jax.vmap(heads, in_axes=(None, 0)))

    def forward(params: Any, observations: Array) -> dict[str, Array]:
        if observations.ndim != 2 or observations.shape[1] != game.observation_size:
            shape = list(observations.shape)
            raise InputError(f"observations of shape {shape} do not fit; they must be [B, {game.observation_size}]")
        return compiled(params, observations)

    return NetworkPolicy(apply, params, game, forward, acts.by)
