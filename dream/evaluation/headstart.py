"""Learning that starts from a player: a network's logits are added to what the player would do.

The learner sees the player's advice next to its own view, and plays

    pi(a)  proportional to  advice(a) exp(f(a)),

advice being what the player does with a share of uniform play, and f the network, which is near 0 at the start. What is
learned is where to depart from the player.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dream.algorithms.types import Value
from dream.equations.estimators import exploring
from dream.networks import Network
from dream.networks.inputs import Inputs
from envs import Game, Policy

_LEAST = 1e-6
"""An action's advice where it is illegal, so that its logarithm is finite."""


class AdvisedView(NamedTuple):
    """What the learner sees.

    Attributes:
      view: its own.
      advice: float32[A], action probabilities there.
    """

    view: Any
    advice: Array


@dataclasses.dataclass(frozen=True, eq=False)
class AdvisedGame:
    """A game whose views hold a player's advice on the decision at hand; in all else the game itself.

    Attributes:
      game: the game.
      player: whose advice it is.
      exploration: share of uniform play in the advice.
    """

    game: Game
    player: Policy
    exploration: float

    def __getattr__(self, name: str) -> Any:
        return getattr(self.game, name)

    def view(self, state: Any, player: Array) -> AdvisedView:
        """Returns a player's view; the advice means nothing where somebody else decides."""
        view, legal = self.game.view(state, player), self.game.legal_actions(state)
        params = jax.tree.map(jnp.asarray, self.player.params)
        return _advised_view(self.player, params, self.exploration, view, legal)


def _advised_view(player: Policy, params: Any, exploration: float, view: Any, legal: Array) -> AdvisedView:
    return AdvisedView(view, exploring(player.apply(params, view, legal), legal, exploration))


def unaware(policy: Policy) -> Policy:
    """Returns a policy of the game that plays its advised form, and does not look at the advice."""

    def play(params: Any, seen: AdvisedView, legal: Array) -> Array:
        return policy.apply(params, seen.view, legal)

    return Policy(play, policy.params)


def advised(policy: Policy, player: Policy, exploration: float) -> Policy:
    """Returns a policy of the advised game that plays the game itself, asking the player wherever it decides."""

    def play(params: Any, view: Any, legal: Array) -> Array:
        seen = _advised_view(player, params["player"], exploration, view, legal)
        return policy.apply(params["policy"], seen, legal)

    return Policy(play, {"policy": policy.params, "player": player.params})


def unadvised_value(network: Network, value: Value) -> Value:
    """Returns a learner's value as a function of the game's own view: advice does not enter it.

    Args:
      network: the one that `on_advice` was given.
      value: of a learner with the network it returned.
    """

    def predicted(params: Any, view: Any) -> Array:
        return network.apply_inputs(params, network.inputs.of_view(view))[1]

    return Value(predicted, value.params)


def on_advice(network: Network, actions: int) -> Network:
    """Returns a network of advised views, whose logits are the given one's plus log(advice).

    Args:
      network: of the game's own views, with outputs (logits float32[A], value).
      actions: A.
    """
    inner = network.inputs

    def of_view(seen: AdvisedView) -> Array:
        return jnp.concatenate([inner.of_view(seen.view), jnp.log(jnp.maximum(seen.advice, _LEAST))])

    def of_observation(observation: Array) -> Array:
        raise TypeError("an advised network reads views; an observation holds no advice")

    def apply_inputs(params: Any, x: Array) -> tuple[Array, Array]:
        logits, value = network.apply_inputs(params, x[..., :-actions])
        return logits + x[..., -actions:], value

    return Network(
        init=network.init,
        apply=lambda params, observation: apply_inputs(params, of_observation(observation)),
        inputs=Inputs(inner.size + actions, of_observation, of_view, carries_log=False),
        apply_inputs=apply_inputs,
        first_layer=None,
        rest=None,
        width=network.width,
    )
