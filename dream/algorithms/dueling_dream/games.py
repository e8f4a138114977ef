"""One iteration's games of the dueling DREAM agent, and the examples that are made of them."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dream.algorithms.counters import Counters
from dream.algorithms.dueling_dream.parts import ActorOutput, Example, Parts
from dream.buffers.replay import Replay, collect
from dream.equations import reward_shaping
from dream.equations.importance import corrected_lambda_returns, reach_ratios
from dream.equations.returns import lambda_returns
from dream.equations.sampling import entropy, sample_action
from dream.rollout import self_play
from dream.rollout.opponents import Mixture, Seating, assign_seats, is_learner, policy_at
from dream.rollout.summary import rollout_metrics


class ActorCarry(NamedTuple):
    """What the actor carries along a game: the network's reader, the player who explores where one does, who plays."""

    reader: Any
    explorer: Array
    seating: Seating


def play_games(
    parts: Parts, params: Any, mixture: Mixture, key: Array, *, temperature: Array, scale: Array
) -> tuple[Replay, dict[str, Array], Counters]:
    """Plays an iteration's games and turns them into examples (jit the caller); metrics and counters with them.

    Args:
      parts: of the learner.
      params: of the network that plays.
      mixture: the opponents.
      key: consumed.
      temperature: float32, of the policy.
      scale: float32, of the reward shaping.
    """
    actor = _actor(parts, params, temperature, mixture)
    record = self_play.play(parts.game, actor, key, games=parts.config.episodes_per_iteration, num_envs=parts.num_envs)
    returns, own_reach, weights = _returns(parts, record, scale)
    d = record.decisions
    examples = Example(d.view, d.legal, d.action, returns, d.extras.policy, weights, own_reach)
    moves, dealt = jnp.sum(record.valid), record.results["games"]
    learned = record.valid & d.extras.is_learner
    metrics = rollout_metrics(
        parts.game, results=record.results, moves=moves, learned=learned, phase=d.phase, returns=returns,
        values=d.extras.value, entropies=entropy(d.extras.policy.astype(jnp.float32)),
    )  # fmt: skip
    metrics |= {"temperature": temperature, "shaping_scale": scale}
    counters = Counters(
        episodes=dealt, decisions=jnp.sum(learned), nodes=moves, transitions=moves + dealt, network_rows=moves
    )
    return collect(examples, learned), metrics, counters


def _actor(parts: Parts, params: Any, temperature: Array, mixture: Mixture) -> self_play.Actor:
    weights, explore = parts.reader.prepare(params), parts.config.exploration

    def start(key: Array) -> ActorCarry:
        explorer = jax.random.randint(jax.random.fold_in(key, 0), (), 0, parts.game.num_players)
        return ActorCarry(parts.reader.start(), explorer, assign_seats(mixture, parts.game.num_players, key))

    def act(
        carry: ActorCarry, view: Any, legal: Array, player: Array, key: Array
    ) -> tuple[Array, ActorCarry, ActorOutput]:
        outputs, read = parts.reader.read(weights, carry.reader, view, player)
        policy = parts.policy(outputs, legal, temperature)
        even = legal / jnp.maximum(jnp.sum(legal), 1)  # not `uniform`: its order of sums changes the last bits
        share = explore if parts.config.explorers == "all" else jnp.where(player == carry.explorer, explore, 0.0)
        behaviour = (1 - share) * policy + share * even if explore else policy
        learns = is_learner(carry.seating, player)
        action = sample_action(key, policy_at(mixture, carry.seating, player, behaviour, view, legal))
        ratio = jnp.where(learns, policy[action] / behaviour[action], 1.0) if explore else jnp.float32(1)
        output = ActorOutput(policy.astype(jnp.float16), outputs[1], ratio, learns)
        return action, carry._replace(reader=read), output

    return self_play.Actor(start, act)


def _returns(parts: Parts, record: self_play.Record, scale: Array) -> tuple[Array, Array, Array]:
    """Returns each decision's training return to the player who took it, and the own and the others' reach ratio.

    All float32[T, lanes], the return discounted, in the unit. Without a correction the ratios are 1.
    """
    config, d = parts.config, record.decisions
    rewards = reward_shaping.training_rewards(
        config.shaping, d.rewards, d.potentials, d.done,
        unit=parts.game.reward_scale, scale=scale, discount=config.discount,
    )  # fmt: skip
    rewards *= parts.game.reward_scale if config.unit == "points" else 1.0
    ends = d.done | ~record.valid
    options = {"discount": config.discount, "gae_lambda": config.gae_lambda}
    if not config.correct_exploration:
        stream = functools.partial(lambda_returns, **options)
        returns = jax.vmap(stream, in_axes=1, out_axes=1)(rewards, ends, d.player, d.extras.value)
        return returns, jnp.ones_like(returns), jnp.ones_like(returns)
    ratio = jnp.where(record.valid, d.extras.ratio, 1.0)
    stream = functools.partial(corrected_lambda_returns, **options)
    returns = jax.vmap(stream, in_axes=1, out_axes=1)(rewards, ends, d.player, d.extras.value, ratio)
    reach = functools.partial(reach_ratios, num_players=parts.game.num_players)
    return returns, *jax.vmap(reach, in_axes=1, out_axes=1)(ratio, ends, d.player)
