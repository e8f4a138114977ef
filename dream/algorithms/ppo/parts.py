"""What both ways of generating experience share: the parts of a PPO learner, and what an actor outputs."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dream.algorithms.critic import Critic
from dream.algorithms.ppo.settings import PpoConfig
from dream.buffers.replay import Replay
from dream.equations.regret_matching import masked_softmax
from dream.equations.returns import lambda_returns, lambda_returns_over_all
from dream.networks import Network
from dream.networks.network import Reader
from dream.rollout.opponents import Mixture
from envs import Game, Policy


class ActorOutput(NamedTuple):
    """What the actor outputs besides the action, a decision's extras.

    Attributes:
      old_prob: float32, probability of the action in the learner's own policy, without exploration.
      value: float32, the network's prediction.
      entropy: float32, of the policy, in nats.
      seat: int32, the learner's; 0 in rollouts.
      opponent_id: int32, the opponent as the observation names it; 0 in rollouts, whose views hold it already.
      is_learner: bool, whether the learner decided.
      is_past_self: bool, whether the learner as it was decided.
      inputs: the network's, float32[inputs.size], where they are kept; else ().
      policy: float32[A], the learner's own, where a critic asks for it; else ().
      ratio: float32, the action's probability in it over that which it was drawn with, where games explore; else ().
      drawn: float32, the latter; else ().
    """

    old_prob: Array
    value: Array
    entropy: Array
    seat: Array
    opponent_id: Array
    is_learner: Array
    is_past_self: Array
    inputs: Any = ()
    policy: Any = ()
    ratio: Any = ()
    drawn: Any = ()


class Generated(NamedTuple):
    """One iteration's experience.

    Attributes:
      lanes: games under way, () where iterations hold whole games.
      replay: of Example.
      values: of the critic after it learned from the games; () without one.
    """

    lanes: Any
    replay: Replay
    values: Any = ()


@dataclasses.dataclass(frozen=True, eq=False)
class Parts:
    """The parts of a PPO learner.

    Attributes:
      config: settings.
      game: what is played.
      network: its advantage head is the policy's logits.
      reader: the same network, read along a game.
      mixture: the opponents; None in the place of a past self.
      num_envs: games in play at once.
      assistant: makes some of the learner's decisions for it (envs.make_assistant), or None.
      critic: of histories, where advantages are averaged by it; or None.
    """

    config: PpoConfig
    game: Game
    network: Network
    reader: Reader
    mixture: Mixture
    num_envs: int
    assistant: Policy | None
    critic: Critic | None = None

    def play(self, params: Any, view: Any, legal: Array) -> Array:
        """Returns the policy to play by: float32[A]; params has `network` and `temperature`."""
        logits, _ = self.network.apply_inputs(params["network"], self.network.inputs.of_view(view))
        own = masked_softmax(logits / params["temperature"], legal)
        return own if self.assistant is None else self.with_assistant(own, view, legal)

    def value(self, params: Any, view: Any) -> Array:
        """Returns what the player to act expects: float32; params as of `play`."""
        return self.network.apply_inputs(params["network"], self.network.inputs.of_view(view))[1]

    def learns_rewards(self, iteration: Array) -> bool:
        """Returns whether the value is by now of the game's own rewards, and a bonus for wins, at all decisions.

        Not while they are shaped nor where they are discounted, nor with an assistant, for whose decisions no value is
        fitted; not where the iteration is traced, so that nobody knows.
        """
        config, scale = self.config, self.config.shaping.scale
        if config.discount != 1 or self.assistant is not None or scale.end or config.shaping.tie_penalty:
            return False
        changes = scale.transition_steps if scale.start else 0
        if changes is None:
            return False
        if not (changes or config.shaping.win_bonus_after):
            return True
        return not isinstance(iteration, jax.core.Tracer) and bool(iteration > changes or not changes)

    def bonus(self, iteration: Array) -> float:
        """Returns the bonus for wins that the value is of by now, in units of reward; the last where nobody knows."""
        shaping = self.config.shaping
        known = not isinstance(iteration, jax.core.Tracer)
        counts = not (known and shaping.win_bonus_after) or bool(iteration > shaping.win_bonus_after)
        return shaping.win_bonus / self.game.reward_scale if counts else 0.0

    def with_assistant(self, own: Array, view: Any, legal: Array) -> Array:
        """Returns the assistant's choice where it has one, else the learner's own policy: float32[A]."""
        helped = self.assistant(view, legal)
        return jnp.where(jnp.sum(helped) > 0, helped, own)

    def returns(
        self, rewards: Array, ends: Array, players: Array, values: Array, discounts: Array | None = None
    ) -> Array:
        """Returns the lambda-returns of streams next to each other: float32[T, N]; see dream/equations/returns.py.

        Args:
          rewards, ends, players, values: of `lambda_returns`, with N streams as their second axis.
          discounts: float32[T, N]; None: the configured one at every transition.
        """
        gammas = jnp.full(ends.shape, self.config.discount, rewards.dtype) if discounts is None else discounts

        equation = lambda_returns if self.config.gae_over == "own" else lambda_returns_over_all

        def stream(rewards: Array, ends: Array, players: Array, values: Array, discounts: Array) -> Array:
            return equation(rewards, ends, players, values, discount=discounts, gae_lambda=self.config.gae_lambda)

        return jax.vmap(stream, in_axes=1, out_axes=1)(rewards, ends, players, values, gammas)
