"""Experience from whole games, by self-play or against a mixture of opponents."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dream.algorithms.counters import Counters
from dream.algorithms.critic import Judged
from dream.algorithms.ppo.loss import Example, Played
from dream.algorithms.ppo.parts import ActorOutput, Generated, Parts
from dream.buffers.replay import collect
from dream.equations.importance import reach_ratios
from dream.equations.regret_matching import masked_softmax
from dream.equations.reward_shaping import Shaping, training_rewards
from dream.equations.sampling import entropy, sample_action
from dream.rollout import self_play
from dream.rollout.opponents import Mixture, Seating, assign_seats, is_learner, is_past_self, policy_at
from dream.rollout.summary import rollout_metrics
from envs.random_play import uniform


class ActorCarry(NamedTuple):
    """What the actor carries along a game: who plays, and the network's reader."""

    seating: Seating
    reader: Any


def play_games(
    parts: Parts, params: Any, values: Any, mixture: Mixture, key: Array, shaping: Shaping
) -> tuple[Generated, dict[str, Array], Counters]:
    """Plays an iteration's whole games (jit the caller); metrics and counters with them.

    Args:
      parts: of the learner.
      params: the network's.
      values: the critic's; () without one.
      mixture: the opponents, any past self put in.
      key: consumed.
      shaping: of the rewards, in this iteration.
    """
    game, config = parts.game, parts.config
    actor = _actor(parts, params, mixture)
    record = self_play.play(
        game, actor, key, games=config.episodes_per_iteration, num_envs=parts.num_envs,
        all_views=parts.critic is not None,
    )  # fmt: skip
    d, extras = record.decisions, record.decisions.extras
    rewards = training_rewards(
        shaping, d.rewards, d.potentials, d.done,
        unit=game.reward_scale, discount=config.discount, paid=d.paid,
    )  # fmt: skip
    if parts.critic is None:
        players = jnp.where(extras.is_learner, d.player, -1)  # the values of what others decided are not fitted
        returns = goals = parts.returns(rewards, d.done | ~record.valid, players, extras.value)
        advantages, played, critic_metrics, learning = returns - extras.value, (), {}, Counters()
    else:
        values, judged, critic_metrics, learning = _by_critic(parts, params, values, record, rewards[..., 0], key)
        # G is of an action drawn with exploration, whose mean is not the policy's value; V is the policy's.
        advantages, returns = judged.advantages, judged.returns
        goals = judged.values if config.exploration else returns
        played = () if config.objective == "sampled" else Played(extras.policy, judged.of_all, _weights(parts, record))
    learned = record.valid & extras.is_learner
    auxiliary = d.auxiliary if parts.network.auxiliary_prediction else ()
    view = d.view
    if mixture.opponent_id_prob:
        view = jax.vmap(jax.vmap(game.opponent_ids.name))(view, extras.opponent_id)
    examples = Example(view, d.legal, d.action, extras.old_prob, advantages, goals, auxiliary, played)
    moves, dealt = jnp.sum(record.valid), record.results["games"]
    metrics = rollout_metrics(
        game, results=record.results, moves=moves, learned=learned, phase=d.phase,
        returns=returns, values=extras.value, entropies=extras.entropy,
    )  # fmt: skip
    seats = jnp.arange(game.num_players) == extras.seat[..., None]
    earned = jnp.sum(jnp.where(record.valid[..., None] & seats, d.rewards, 0.0))
    metrics |= critic_metrics | {
        "shaping_scale": shaping.scale,
        "learner_reward": earned / config.episodes_per_iteration,
    }
    counters = Counters(
        episodes=dealt,
        decisions=jnp.sum(learned),
        nodes=moves,
        transitions=moves + dealt,
        # The network reads every decision, of opponents as well; past selves read theirs too.
        network_rows=moves + jnp.sum(record.valid & extras.is_past_self),
    )
    return Generated((), collect(examples, learned), values), metrics, counters + learning


def _by_critic(
    parts: Parts, params: Any, values: Any, record: self_play.Record, rewards: Array, key: Array
) -> tuple[Any, Judged, dict[str, Array], Counters]:
    """Fits the critic to the games; returns it, what it says of their decisions, metrics and counters."""

    def policy(view: Any, legal: Array, player: Array) -> Array:
        logits, _ = parts.network.apply_inputs(params, parts.network.inputs.of_view(view))
        return masked_softmax(logits, legal)

    policies = record.decisions.extras.policy
    values, fitted, counters = parts.critic.learn(values, record, policies, rewards, policy, jax.random.fold_in(key, 3))
    ratios, drawn = (_ratios(record), record.decisions.extras.drawn) if parts.config.exploration else (None, None)
    judged, metrics = parts.critic.advantages(values, record, policies, rewards, ratios, drawn)
    counters += Counters(network_rows=jnp.sum(record.valid) * (2 if parts.config.optimism else 1))
    return values, judged, fitted | metrics, counters


def _ratios(record: self_play.Record) -> Array:
    """Returns pi(a) / mu(a) of each action taken, mu with exploration: float32[T, lanes]."""
    return jnp.where(record.valid, record.decisions.extras.ratio, 1.0)


def _weights(parts: Parts, record: self_play.Record) -> Array:
    """Returns the others' reach ratio of each decision: float32[T, lanes]; 1 where nothing is explored."""
    if not parts.config.exploration:
        return jnp.ones(record.valid.shape)
    reach, d = functools.partial(reach_ratios, num_players=parts.game.num_players), record.decisions
    return jax.vmap(reach, in_axes=1, out_axes=1)(_ratios(record), d.done | ~record.valid, d.player)[1]


def _actor(parts: Parts, params: Any, mixture: Mixture) -> self_play.Actor:
    game, weights, explore = parts.game, parts.reader.prepare(params), parts.config.exploration

    def start(key: Array) -> ActorCarry:
        return ActorCarry(assign_seats(mixture, game.num_players, key), parts.reader.start())

    def act(
        carry: ActorCarry, view: Any, legal: Array, player: Array, key: Array
    ) -> tuple[Array, ActorCarry, ActorOutput]:
        seating = carry.seating
        named = game.opponent_ids.name(view, seating.opponent_id) if mixture.opponent_id_prob else view
        (logits, value), reader = parts.reader.read(weights, carry.reader, named, player)
        own = masked_softmax(logits, legal)
        decides = is_learner(seating, player)
        if parts.assistant is not None:
            decides &= jnp.sum(parts.assistant(view, legal)) == 0
            own = parts.with_assistant(own, view, legal)
        behaviour = (1 - explore) * own + explore * uniform(legal) if explore else own
        action = sample_action(key, policy_at(mixture, seating, player, behaviour, view, legal))
        extras = ActorOutput(
            own[action], value, entropy(own), seating.seat, seating.opponent_id, decides,
            is_past_self(mixture, seating, player), policy=own if parts.critic is not None else (),
            ratio=own[action] / behaviour[action] if explore else (), drawn=behaviour[action] if explore else (),
        )  # fmt: skip
        return action, ActorCarry(seating, reader), extras

    def counted(carry: ActorCarry) -> Array:
        return is_learner(carry.seating, jnp.arange(game.num_players))

    return self_play.Actor(start, act, counted)
