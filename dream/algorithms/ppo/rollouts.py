"""Experience from a fixed number of decisions in games against fixed players, which go on in the next iteration.

The return of a game still under way ends in the value of where it stands.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from dream.algorithms.counters import Counters
from dream.algorithms.ppo.loss import Example
from dream.algorithms.ppo.parts import ActorOutput, Generated, Parts
from dream.buffers.replay import collect
from dream.equations.regret_matching import masked_softmax
from dream.equations.reward_shaping import Shaping, shaping_reward, win_bonus
from dream.equations.sampling import entropy, sample_action
from dream.rollout.against_opponents import Lane, Rollouts, Step, step_metrics
from dream.rollout.opponents import Mixture


def make_rollouts(parts: Parts, mixture: Mixture) -> Rollouts:
    """Returns how games are played on; `mixture` holds the opponents, any past self put in."""
    config, scale = parts.config, parts.config.shaping.scale
    return Rollouts(
        parts.game, mixture, parts.assistant, config.moves_per_step, potentials=bool(scale.start or scale.end)
    )


def play_rollouts(
    parts: Parts, params: Any, lanes: Lane, mixture: Mixture, key: Array, shaping: Shaping
) -> tuple[Generated, dict[str, Array], Counters]:
    """Plays `rollout_length` decisions of the learner in every game (jit the caller); metrics and counters with them.

    Args:
      parts: of the learner.
      params: the network's.
      lanes: games under way, [N].
      mixture: the opponents, any past self put in.
      key: consumed.
      shaping: of the rewards, in this iteration.
    """
    config, network, rollouts = parts.config, parts.network, make_rollouts(parts, mixture)

    def act(view: Any, legal: Array, key: Array) -> tuple[Array, ActorOutput]:
        inputs = network.inputs.of_view(view)
        logits, value = network.apply_inputs(params, inputs)
        own = masked_softmax(logits, legal)
        action = sample_action(key, own)
        alone = jnp.int32(0), jnp.int32(0), jnp.bool_(True), jnp.bool_(False)
        kept = inputs if config.keep_inputs else ()
        return action, ActorOutput(own[action], value, entropy(own), *alone, kept)

    lanes, step = rollouts.play(lanes, act, key, config.rollout_length)
    next_values = jax.vmap(lambda lane: network.apply_inputs(params, network.inputs.of_view(rollouts.seen(lane)))[1])(
        lanes
    )
    returns = _returns(parts, step, jnp.where(lanes.credited, next_values, 0.0), shaping)
    extras = step.extras
    auxiliary = step.auxiliary if network.auxiliary_prediction else ()
    view = extras.inputs if config.keep_inputs else step.view
    advantages = returns - extras.value
    examples = Example(view, step.legal, step.action, extras.old_prob, advantages, returns, auxiliary)
    metrics = step_metrics(parts.game, step, returns) | {"shaping_scale": shaping.scale}
    summary = step.summary
    moves = jnp.sum(summary.moves)
    counters = Counters(
        episodes=jnp.sum(summary.results["games"]),
        decisions=jnp.sum(step.valid),
        nodes=moves,
        transitions=moves + jnp.sum(summary.deals),
        # Of games in which the learner waits no output is used; of those under way at the end the value is.
        network_rows=jnp.sum(step.valid) + jnp.sum(lanes.credited) + jnp.sum(summary.past_self_moves),
    )
    return Generated(lanes, collect(examples, step.valid)), metrics, counters


def _returns(parts: Parts, step: Step, next_values: Array, shaping: Shaping) -> Array:
    """Returns each decision's lambda-return, a discount each: float32[T, N]; `next_values` float32[N] follow."""
    config, summary, unit, num_envs = parts.config, step.summary, parts.game.reward_scale, parts.num_envs
    rewards = summary.reward + jnp.where(summary.tied, shaping.tie_penalty / unit, 0.0)
    rewards += win_bonus(summary.final_reward, summary.done, shaping.win_bonus / unit)
    # A step in which the learner waits is part of its last decision's: what is discounted is the way to a decision.
    decides_next = jnp.concatenate([step.valid[1:], jnp.ones((1, num_envs), bool)])
    discounts = jnp.where(decides_next, config.discount, 1.0)
    form = {"scale": shaping.scale, "discount": discounts, "form": shaping.form}
    # In steps without a decision too: the game may end there, and the last potential is taken back.
    rewards += shaping_reward(step.potential, summary.potential, summary.done, **form)
    # The value of a game under way is paid after the last step, as if the game ended there.
    rewards = jnp.concatenate([rewards, next_values[None]])[..., None]
    ends = jnp.concatenate([summary.done, jnp.ones((1, num_envs), bool)])
    nobody = jnp.full((1, num_envs), -1)
    players = jnp.concatenate([jnp.where(step.valid, 0, -1), nobody])
    values = jnp.concatenate([step.extras.value, jnp.zeros((1, num_envs))])
    return parts.returns(rewards, ends, players, values, jnp.concatenate([discounts, jnp.ones((1, num_envs))]))[:-1]
