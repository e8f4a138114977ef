"""One iteration's games of the dueling DREAM agent, and the examples that are made of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dream.algorithms.counters import Counters
from dream.algorithms.critic import Judged
from dream.algorithms.dueling_dream.parts import ActorOutput, Example, Generated, Parts
from dream.buffers.replay import collect
from dream.equations.importance import corrected_lambda_returns, corrected_value_targets, reach_ratios
from dream.equations.returns import lambda_returns
from dream.equations.reward_shaping import Shaping, training_rewards
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
    parts: Parts, params: Any, values: Any, mixture: Mixture, key: Array, *, temperature: Array, shaping: Shaping
) -> tuple[Generated, dict[str, Array], Counters]:
    """Plays one iteration's games and turns them into examples (jit the caller); metrics and counters with them.

    Args:
      parts: of the learner.
      params: of the network that plays.
      values: the critic's; () without one.
      mixture: the opponents.
      key: consumed.
      temperature: float32, of the policy.
      shaping: of the rewards, in this iteration.
    """
    game, config = parts.game, parts.config
    actor = _actor(parts, params, temperature, mixture)
    record = self_play.play(
        game, actor, key, games=config.episodes_per_iteration, num_envs=parts.num_envs,
        all_views=parts.critic is not None,
    )  # fmt: skip
    d = record.decisions
    rewards = training_rewards(
        shaping, d.rewards, d.potentials, d.done,
        unit=game.reward_scale, discount=config.discount, paid=d.paid,
    )  # fmt: skip
    rewards *= game.reward_scale if config.unit == "points" else 1.0
    ratios = jnp.where(record.valid, d.extras.ratio, 1.0) if config.correct_exploration else None
    if parts.critic is None:
        returns, critic_metrics, learning = _returns(parts, record, rewards, ratios), {}, Counters()
        value_targets = returns if ratios is None else corrected_value_targets(d.extras.value, returns, ratios)
        advantages = d.extras.advantages
    else:
        policy = functools.partial(parts.play, {"network": params, "temperature": temperature})
        values, judged, critic_metrics, learning = _by_critic(
            parts, policy, values, record, rewards[..., 0], ratios, key
        )
        returns, value_targets, advantages = judged.returns, judged.values, judged.of_all
    own_reach, weights = _reach(parts, record)
    learns_from = d.extras.policy, weights, own_reach, d.extras.value, advantages
    examples = Example(d.view, d.legal, d.action, returns, value_targets, *learns_from)
    moves, dealt = jnp.sum(record.valid), record.results["games"]
    learned = record.valid & d.extras.is_learner
    metrics = rollout_metrics(
        game, results=record.results, moves=moves, learned=learned, phase=d.phase, returns=returns,
        values=d.extras.value, entropies=entropy(d.extras.policy.astype(jnp.float32)),
    )  # fmt: skip
    metrics |= critic_metrics | {"temperature": temperature, "shaping_scale": shaping.scale}
    counters = Counters(
        episodes=dealt, decisions=jnp.sum(learned), nodes=moves, transitions=moves + dealt, network_rows=moves
    )
    return Generated(collect(examples, learned), values), metrics, counters + learning


def _actor(parts: Parts, params: Any, temperature: Array, mixture: Mixture) -> self_play.Actor:
    weights, explore = parts.reader.prepare(params), parts.config.exploration

    def start(key: Array) -> ActorCarry:
        lot = jax.random.fold_in(key, 2)  # 0 and 1 are what `assign_seats` splits the key into
        explorer = jax.random.randint(lot, (), 0, parts.game.num_players)
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
        drawn = behaviour[action] if parts.critic is not None else ()
        kept = outputs[0] if parts.keeps_advantages else ()
        output = ActorOutput(policy.astype(jnp.float16), outputs[1], ratio, learns, drawn, kept)
        return action, carry._replace(reader=read), output

    def counted(carry: ActorCarry) -> Array:
        return is_learner(carry.seating, jnp.arange(parts.game.num_players))

    return self_play.Actor(start, act, counted)


def _returns(parts: Parts, record: self_play.Record, rewards: Array, ratios: Array | None) -> Array:
    """Returns each decision's lambda-return to the player who took it, by the value network: float32[T, lanes]."""
    d, options = record.decisions, {"discount": parts.config.discount, "gae_lambda": parts.config.gae_lambda}
    streams = (rewards, d.done | ~record.valid, d.player, d.extras.value)
    if ratios is None:
        return jax.vmap(functools.partial(lambda_returns, **options), in_axes=1, out_axes=1)(*streams)
    return jax.vmap(functools.partial(corrected_lambda_returns, **options), in_axes=1, out_axes=1)(*streams, ratios)


def _reach(parts: Parts, record: self_play.Record) -> tuple[Array, Array]:
    """Returns the own and the others' reach ratio of each decision, float32[T, lanes].

    The own one weighs the average policy and is 1 where nothing is explored; the others' weighs the fit and is 1 where
    exploration is not corrected.
    """
    ones, d = jnp.ones(record.valid.shape), record.decisions
    if not parts.config.exploration:
        return ones, ones
    reach = functools.partial(reach_ratios, num_players=parts.game.num_players)
    ratios = jnp.where(record.valid, d.extras.ratio, 1.0)
    own, others = jax.vmap(reach, in_axes=1, out_axes=1)(ratios, d.done | ~record.valid, d.player)
    return own, others if parts.config.correct_exploration else ones


def _by_critic(
    parts: Parts,
    policy: Callable[[Any, Array], Array],
    values: Any,
    record: self_play.Record,
    rewards: Array,
    ratios: Array | None,
    key: Array,
) -> tuple[Any, Judged, dict[str, Array], Counters]:
    """Fits the critic to the games; returns it, what it says of their decisions, metrics and counters."""
    # Rounded, they add up to 1 within 5e-4: V is off by that share, the same for all actions of a history.
    policies = record.decisions.extras.policy.astype(jnp.float32)
    values, fitted, counters = parts.critic.learn(
        values, record, policies, rewards, lambda view, legal, _: policy(view, legal), jax.random.fold_in(key, 3)
    )
    judged, metrics = parts.critic.advantages(values, record, policies, rewards, ratios, record.decisions.extras.drawn)
    del metrics["advantage_rms"]  # under this name the fit reports that of the network's advantages
    return values, judged, fitted | metrics, counters + Counters(network_rows=jnp.sum(record.valid))
