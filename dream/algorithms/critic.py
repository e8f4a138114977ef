"""A centralised critic: action values of histories, which see all hands in training, and advantages from them.

    V(h)    = sum over a of pi(a | h) Q(h, a)
    delta_t = r_t + gamma V(h_{t+1}) - Q(h_t, a_t)
    G_t     = Q(h_t, a_t) + sum over k >= t of (gamma lambda)^(k - t) rho_{t+1} ... rho_k delta_k
    A_t     = G_t - V(h_t)

for player 0, and the negative for player 1. Advantages of all actions, with a correction for the action taken:

    A(h, a) = Q(h, a) + [a taken] min(1 / mu(a | h), c) (G_t - Q(h, a)) - V(h)

with mu the distribution from which the action was sampled and rho = pi(a) / mu(a), 1 where pi itself played. This is
unbiased without the bound c; with c = 0 it uses the critic alone. Only the critic sees hidden cards; the actor never
does. Q is the history value of the deep regret minimisers, learned by expected SARSA on the newest games.
With optimism m the term m (D(h, a) - sum over b of pi(b) D(h, b)) is added to the advantages of all actions, with
D = Q - Q_slow and Q_slow the network with a moving average of Q's parameters, updated before: an extrapolation of the
change of the values, which damps cycles. Deviation: Rakhlin and Sridharan add only the last change, once.
Sources: Fan and Farina 2026, "GAE falls short in imperfect-information self-play reinforcement learning", section 4;
Rakhlin and Sridharan 2013, "Optimization, learning, and games with predictable sequences", for optimism.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from dream.algorithms.counters import Counters
from dream.algorithms.deep import history_values
from dream.algorithms.deep.history_values import HistoryValueConfig, ValueState
from dream.algorithms.deep.state import transition_shapes
from dream.buffers import reservoir
from dream.equations.returns import expected_sarsa
from dream.equations.reward_shaping import ShapingConfig
from dream.networks import Network
from dream.rollout.opponents import Mixture
from dream.rollout.self_play import Record
from dream.rollout.summary import masked_mean, masked_variance
from envs import Game, InputError


class Judged(NamedTuple):
    """What a critic says of decisions, to the player who took them.

    Attributes:
      advantages: float32[T, N], of the action taken.
      returns: float32[T, N], G.
      values: float32[T, N], V.
      of_all: float32[T, N, A], the advantage of every action, 0 at illegal ones; alone in having the optimism.
    """

    advantages: Array
    returns: Array
    values: Array
    of_all: Array


@dataclasses.dataclass(frozen=True, eq=False)
class Critic:
    """What learns and applies Q.

    Attributes:
      config: its budget.
      network: of histories.
      game: for two players, zero-sum in training too.
      discount, gae_lambda: gamma and lambda.
      correction_clip: c.
      optimism: m.
      slow_tau: rate per iteration of the moving average that it is measured from.
    """

    config: HistoryValueConfig
    network: Network
    game: Game
    discount: float
    gae_lambda: float
    correction_clip: float
    optimism: float = 0.0
    slow_tau: float = 0.1

    def init(self, key: Array) -> ValueState:
        """Initialises the network; the buffer is empty."""
        params = self.network.init(key)
        buffer = reservoir.empty(transition_shapes(self.game), self.config.capacity)
        slow = jax.tree.map(jnp.copy, params) if self.optimism else ()
        return ValueState(params, history_values.optimizer(self.config).init(params), buffer, slow)

    def learn(
        self,
        state: ValueState,
        record: Record,
        policies: Array,
        rewards: Array,
        policy: Callable[[Any, Array, Array], Array],
        key: Array,
    ) -> tuple[ValueState, dict[str, Array], Counters]:
        """Adds the moves that were played and fits Q to the newest.

        Args:
          state: to go on from.
          record: with all views.
          policies: float32[T, N, A], of who decided.
          rewards: float32[T, N], to player 0.
          policy: (view, legal, player) -> float32[A], the current one.
          key: consumed.
        """
        moves, moved = history_values.transitions(record, policies, rewards)
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (moves, moved))
        buffer = reservoir.add(state.buffer, *flat, key, kind="fifo")
        state, metrics = history_values.learn(self.network, self.config, state._replace(buffer=buffer), policy, key)
        if self.optimism:
            state = state._replace(slow=optax.incremental_update(state.params, state.slow, self.slow_tau))
        rows = history_values.network_rows(self.config, policy_networks=1)
        steps = history_values.gradient_steps(self.config)
        return state, metrics, Counters(gradient_steps=steps, network_rows=rows)

    def advantages(
        self,
        state: ValueState,
        record: Record,
        policies: Array,
        rewards: Array,
        ratios: Array | None = None,
        drawn: Array | None = None,
    ) -> tuple[Judged, dict[str, Array]]:
        """Returns what Q says of each decision to the player who took it, and metrics.

        Args:
          state: of Q.
          record, policies, rewards: as in `learn`.
          ratios: float32[T, N], rho of each action taken; None: 1.
          drawn: float32[T, N], mu of each action taken; None: pi.
        """
        d = record.decisions
        legal = jnp.unpackbits(d.legal, axis=-1, count=self.game.num_actions).astype(bool)

        def values_by(params: Any) -> Array:
            each = functools.partial(history_values.action_values, self.network, params)
            return jax.vmap(jax.vmap(each))(d.views, legal)

        q = values_by(state.params)
        taken = jnp.take_along_axis(q, d.action.astype(jnp.int32)[..., None], axis=-1)[..., 0]
        values = jnp.sum(policies * q, axis=-1)
        stream = functools.partial(expected_sarsa, discount=self.discount, gae_lambda=self.gae_lambda)
        streams = (rewards, d.done | ~record.valid, taken, values, *(() if ratios is None else (ratios,)))
        returns = jax.vmap(stream, in_axes=1, out_axes=1)(*streams)
        sign = jnp.where(d.player == 0, 1.0, -1.0)
        residual = masked_variance(returns - taken, record.valid)
        metrics = {
            "critic_explained_variance": 1.0
            - residual / jnp.maximum(masked_variance(returns, record.valid), np.float32(1e-12)),
            "advantage_rms": jnp.sqrt(masked_mean((returns - values) ** 2, record.valid)),
        }
        of_all = corrected(q, policies, d.action.astype(jnp.int32), returns, legal, self.correction_clip, drawn)
        if self.optimism:
            ahead = self.optimism * (q - values_by(state.slow))
            ahead = jnp.where(legal, ahead - jnp.sum(policies * ahead, axis=-1, keepdims=True), 0.0)
            metrics["optimism_rms"] = jnp.sqrt(masked_mean(jnp.sum(policies * ahead**2, axis=-1), record.valid))
            of_all += ahead
        judged = Judged(sign * (returns - values), sign * returns, sign * values, sign[..., None] * of_all)
        return judged, metrics


def check_critic(
    config: HistoryValueConfig,
    shaping: ShapingConfig,
    game: Game,
    mixture: Mixture,
    discount: float,
    others: dict[str, bool],
) -> None:
    """Raises InputError unless a value of histories to player 0 says all: zero-sum self-play of two.

    Args:
      config: the critic's.
      shaping: of the rewards.
      game: what is played.
      mixture: who plays.
      discount: gamma of the learner.
      others: more rules of the learner -> whether it is broken.
    """
    wanted = {
        f"{game.name} is for {game.num_players} players; it must be for two": game.num_players != 2,
        f"{game.name} is not zero-sum with these rules; it must be": not game.zero_sum,
        f"algo.discount must be 1, as its targets have none; is {discount:g}": discount != 1,
        "algo.opponents must be [self]": mixture.probabilities[0] < 1,
        **others,
        "algo.shaping.scale must be 0": bool(shaping.scale.start or shaping.scale.end),
        "algo.shaping.tie_penalty must be 0": bool(shaping.tie_penalty),
        "algo.critic.chance must be sampled": config.chance != "sampled",
    }
    for rule, broken in wanted.items():
        if broken:
            raise InputError(f"algo.advantage=expected_sarsa: {rule}")


def corrected(
    q: Array, policy: Array, action: Array, returns: Array, legal: Array, clip: float, drawn: Array | None = None
) -> Array:
    """Returns the advantage of every action, the one taken corrected by what came of it: float32[..., A].

        A(h, a) = Q(h, a) + [a taken] min(1 / mu(a), c) (G - Q(h, a)) - sum over b of pi(b) Q(h, b), 0 where illegal

    Args:
      q: float32[..., A], 0 at illegal actions.
      policy: float32[..., A], pi.
      action: int32[...].
      returns: float32[...], G.
      legal: bool[..., A].
      clip: c.
      drawn: float32[...], mu of the action taken; None: pi.
    Source: Steinberger, Lerer and Brown 2020, "DREAM", eq. 6, without c; with it as Munos et al. 2016 bound theirs.
    """
    taken = jax.nn.one_hot(action, q.shape[-1], dtype=q.dtype)
    chance = policy if drawn is None else drawn[..., None]
    weight = jnp.minimum(1.0 / jnp.maximum(chance, 1e-9), clip)
    values = q + taken * weight * (returns[..., None] - q)
    return jnp.where(legal, values - jnp.sum(policy * q, axis=-1, keepdims=True), 0.0)
