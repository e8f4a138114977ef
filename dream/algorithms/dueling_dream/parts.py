"""What generating and fitting share: the parts of the learner, what its actor outputs, and a decision to learn from."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from dream.algorithms.critic import Critic
from dream.algorithms.dueling_dream.settings import DuelingDreamConfig
from dream.buffers.replay import Replay
from dream.equations import schedules
from dream.equations.regret_matching import masked_softmax, soft_regret_matching
from dream.networks import Network
from dream.networks.network import Reader
from dream.rollout.opponents import Mixture
from dream.rollout.self_play import longest
from envs import Game

_MOST_KEPT = 2**30
"""Bytes of an iteration's advantages that are kept for the fit; 0.28 GB on gin rummy, 5.5 on rummy 500."""


class ActorOutput(NamedTuple):
    """What the actor outputs besides the action.

    Attributes:
      policy: float16[A], before exploration.
      value: float32.
      ratio: float32, how much likelier the action is under the policy than under what was played; 1 for an opponent's.
      is_learner: bool, whether the learner decided, and no opponent.
      drawn: float32, with what probability the action was drawn, where a critic asks for it; else ().
      advantages: float32[A], the network's, where the fit starts from them; else ().
    """

    policy: Array
    value: Array
    ratio: Array
    is_learner: Array
    drawn: Any = ()
    advantages: Any = ()


class Example(NamedTuple):
    """One decision to learn from; in a replay every field has a leading axis.

    Attributes:
      view: what the player who decided saw.
      legal: uint8[ceil(A / 8)], packed by jnp.packbits.
      action: int16.
      returns: float32, the discounted return to that player, in the learner's unit.
      value_target: float32, what the value is fitted to, in the unit: the return, corrected where exploration is, or
        the critic's V of the history.
      policy: float16[A], the network's policy then, before exploration.
      weight: float32, its share in the loss: how much likelier the others' earlier actions are without exploration.
      own_reach: float32, the same of the player's own earlier actions.
      value: float32, by the network that played.
      advantages: float32[A], of every action, in the unit: by the critic, or by the target network where it played; ()
        where neither.
    """

    view: Any
    legal: Array
    action: Array
    returns: Array
    value_target: Array
    policy: Array
    weight: Array
    own_reach: Array
    value: Array
    advantages: Any = ()


class Generated(NamedTuple):
    """One iteration's experience: replay of Example, the critic's state after it learned from the games; () without."""

    replay: Replay
    values: Any = ()


@dataclasses.dataclass(frozen=True, eq=False)
class Parts:
    """The parts of the learner.

    Attributes:
      config: settings.
      game: what is played.
      network: advantages, value, and the policy's logits where the agent accumulates.
      reader: the same network, read along a game.
      mixture: the opponents.
      num_envs: games in play at once.
      critic: of histories, where advantages are averaged by it; or None.
    """

    config: DuelingDreamConfig
    game: Game
    network: Network
    reader: Reader
    mixture: Mixture
    num_envs: int
    critic: Critic | None = None

    @property
    def keeps_advantages(self) -> bool:
        """Whether the fit's targets start from what the network said as it played: it was the target network.

        Not where keeping that takes more than 1 GiB: the target network is asked again then.
        """
        games = self.config.episodes_per_iteration
        held = 4 * self.game.num_actions * self.num_envs * longest(self.game, games, self.num_envs)
        return self.critic is None and self.config.actor == "target" and held <= _MOST_KEPT

    @property
    def reads(self) -> int:
        """How many networks read a row of the fit: the fitted one, that of the value, a target that did not play."""
        sampled = self.critic is None
        return 1 + (sampled and self.config.baseline == "value") + (sampled and not self.keeps_advantages)

    def temperature(self, iteration: Array, share: Any = ()) -> Array:
        """Returns the temperature of self-play: infinite at first, then as scheduled; of a policy head it is 1."""
        config = self.config
        later = jnp.float32(1.0) if config.accumulates else schedules.at(config.temperature, iteration, share)
        return jnp.where(iteration < config.uniform_iterations, jnp.inf, later)

    def policy(self, outputs: tuple[Array, ...], legal: Array, temperature: Array) -> Array:
        """Returns the policy that the network's outputs mean: float32[..., A]."""
        if self.config.accumulates:
            return masked_softmax(outputs[2] / temperature, legal)
        return soft_regret_matching(outputs[0], legal, temperature)

    def play(self, params: Any, view: Any, legal: Array) -> Array:
        """Returns the policy to play by: float32[A]; params has `network` and `temperature`."""
        outputs = self.network.apply_inputs(params["network"], self.network.inputs.of_view(view))
        return self.policy(outputs, legal, params["temperature"])
