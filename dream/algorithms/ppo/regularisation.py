"""What keeps a policy from becoming greedy: a penalty on the new policy, and what it carries between fits."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from dream.equations.schedules import Schedule


class NewPolicy(NamedTuple):
    """The policy of a minibatch as the loss finds it.

    Attributes:
      inputs: float32[B, n], what the network read.
      legal: bool[B, A].
      logs: float32[B, A], log pi; about -1e9 at illegal actions.
      log_ratio: float32[B], log pi(a) - log pi_then(a) of the action taken.
      played: Played of the minibatch, where the objective is over all actions; else ().
    """

    inputs: Array
    legal: Array
    logs: Array
    log_ratio: Array
    played: Any = ()

    @property
    def weight(self) -> Array | float:
        """What each decision counts, float32[B]; 1 where nothing is explored."""
        return weight_of(self.played)


def weight_of(played: Any) -> Array | float:
    """Returns what each decision of a minibatch counts, of its Played or (): float32[B], or 1."""
    return 1.0 if played == () else played.weight


Penalty = Callable[[NewPolicy], tuple[Array, dict[str, Array]]]
"""Policy of a minibatch -> (float32, added to the loss; metrics)."""


@dataclasses.dataclass(frozen=True)
class Regulariser:
    """A penalty, and what it carries.

    Attributes:
      init: parameters at the start -> what is carried, a pytree of arrays.
      penalty: (what is carried, what schedules are at by now, NewPolicy) -> (float32, metrics).
      update: (what is carried, parameters after the fit) -> what is carried on.
      networks: how many networks read a row of a minibatch, the learner's own among them.
    """

    init: Callable[[Any], Any]
    penalty: Callable[[Any, Callable[[Schedule], Array], NewPolicy], tuple[Array, dict[str, Array]]]
    update: Callable[[Any, Any], Any]
    networks: int = 1


def entropy_bonus(weight: float, decay: Schedule) -> Regulariser:
    """Returns the penalty -weight * decay * mean entropy(pi), which carries nothing.

    Up to a constant it is weight * decay * mean KL(pi, uniform).
    Source: Schulman et al. 2017, eq. 9.
    """

    def penalty(carried: Any, at: Callable[[Schedule], Array], new: NewPolicy) -> tuple[Array, dict[str, Array]]:
        strength = weight * at(decay)
        return strength * jnp.mean(new.weight * negative_entropy(new)), {"entropy_weight": strength}

    return Regulariser(lambda params: (), penalty, lambda carried, params: carried)


def negative_entropy(new: NewPolicy) -> Array:
    """Returns sum over legal a of pi(a) log pi(a), in nats: float32[B]."""
    return jnp.sum(jnp.where(new.legal, jnp.exp(new.logs) * new.logs, 0.0), axis=-1)
