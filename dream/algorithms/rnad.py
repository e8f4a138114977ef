"""R-NaD, regularised Nash dynamics: self-play with rewards that pull each policy towards an earlier one.

The player who takes action a pays eta log(pi(a) / rho(a)) to the other player. In the transformed game NeuRD with
v-trace values converges to a fixed point; every `period` iterations that fixed point becomes rho, and the sequence of
fixed points converges to an equilibrium. In the first half of a period rho is interpolated from the old to the new one:

    log rho = a log rho_m + (1 - a) log rho_(m-1),  a = min(2 n / period, 1) at iteration n of the period

Each gradient step uses a minibatch of whole games; its targets are computed with the newest policy and with the values
of a slowly moving target network, which also becomes rho.
Source: Perolat et al. 2022, "Mastering the game of Stratego with model-free multiagent reinforcement learning", and its
supplement. Deviations: one bound for both importance weights of v-trace; gradients are clipped by their norm, not
elementwise; no fine-tuning of the final policy.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from dream.algorithms.counters import Counters
from dream.algorithms.play_then_fit import PlayThenFit
from dream.algorithms.types import Algorithm, Resources, needs_two_players
from dream.compiled import devices
from dream.compiled.bounded import long_loop
from dream.config.settings import number
from dream.equations import schedules
from dream.equations.regret_matching import masked_log_softmax, masked_softmax
from dream.equations.sampling import entropy, sample_action
from dream.equations.schedules import Schedule
from dream.equations.vtrace import neurd_loss, vtrace
from dream.networks import Network, make_network
from dream.networks.fit import fit
from dream.rollout import self_play
from dream.rollout.summary import masked_mean
from envs import Game, InputError, Policy


@dataclasses.dataclass(frozen=True)
class RnadConfig:
    """Settings of R-NaD; conf/algo/rnad.yaml says what each does."""

    name: str = "rnad"
    episodes_per_iteration: int = number(1024, 1)
    batch_games: int = number(256, 1)
    epochs: int = number(1, 1)
    learning_rate: float = number(5e-5, 0, above=True)
    learning_rate_decay: Schedule = number(schedules.constant(1.0), 0)
    eta: float = number(0.2, 0, above=True)
    period: int = number(100, 1)
    target_tau: float = number(1e-3, 0, 1, above=True)
    trace_clip: float = number(1.0, 0, above=True)
    neurd_threshold: float = number(2.0, 0, above=True)
    neurd_clip: float = number(1e4, 0, above=True)
    value_weight: float = number(1.0, 0)
    max_grad_norm: float = number(1e4, 0, above=True)


class RnadState(NamedTuple):
    """All that a run needs to go on.

    Attributes:
      params, optimizer_state: of the network.
      target: its slowly moving copy.
      anchor, last_anchor: parameters of rho_m and rho_(m-1).
      key: not consumed; an iteration's keys follow from it and `iteration`.
      iteration: int32, completed ones.
      share: float32, of the run's budget that is spent; () where no schedule follows it.
    """

    params: Any
    optimizer_state: Any
    target: Any
    anchor: Any
    last_anchor: Any
    key: Array
    iteration: Array
    share: Any = ()


class Played(NamedTuple):
    """Whole games, [T, N, ...]: a column is one game, meaningless where not valid.

    Attributes:
      inputs: float32, what the network reads.
      legal: bool[T, N, A].
      player, action: int32.
      behaviour: float32, probability of the action then.
      rewards: float32[T, N, 2].
      done, valid: bool.
    """

    inputs: Array
    legal: Array
    player: Array
    action: Array
    behaviour: Array
    rewards: Array
    done: Array
    valid: Array


def make(config: RnadConfig, network: Any, game: Game, resources: Resources) -> Algorithm:
    """Builds the learner.

    Raises:
      InputError: a game not for two or not zero-sum, minibatches that do not divide what is played, or a wrong network
        node.
    """
    needs_two_players(config.name, game)
    if config.episodes_per_iteration % config.batch_games:
        raise InputError(
            f"algo.batch_games={config.batch_games} leaves games over; it must divide "
            f"algo.episodes_per_iteration={config.episodes_per_iteration}"
        )
    learner = _Rnad(config, game, make_network(network, game))
    return Algorithm(
        learner.init, learner.iterate, learner.policies, calls=learner.calls, traceable=True,
        with_share=schedules.share_setter(config),
    )  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False)
class _Rnad(PlayThenFit):
    """The learner; the network's advantage head holds the policy's logits."""

    config: RnadConfig
    game: Game
    network: Network

    @functools.cached_property
    def optimizer(self) -> optax.GradientTransformation:
        clipped = optax.clip_by_global_norm(self.config.max_grad_norm)
        return optax.chain(clipped, optax.scale_by_adam(b1=0.0, b2=0.999, eps=1e-7))

    @functools.partial(jax.jit, static_argnums=0)
    def init(self, key: Array) -> RnadState:
        """Initialises the network; target and anchors are copies."""
        key, network_key = jax.random.split(key)
        params = self.network.init(network_key)
        share = schedules.share_of(self.config)
        return RnadState(params, self.optimizer.init(params), params, params, params, key, jnp.int32(0), share)

    def policies(self, state: RnadState) -> dict[str, Policy]:
        return {"current": Policy(self._play, state.params), "average": Policy(self._play, state.target)}

    def _play(self, params: Any, view: Any, legal: Array) -> Array:
        return masked_softmax(self.network.apply_inputs(params, self.network.inputs.of_view(view))[0], legal)

    @functools.partial(jax.jit, static_argnums=0)
    def generate(self, state: RnadState) -> tuple[Played, dict[str, Array], Counters]:
        """Plays an iteration's games, each in a lane of its own; returns metrics and counters with them."""
        key, _ = jax.random.split(jax.random.fold_in(state.key, state.iteration))
        games, network = self.config.episodes_per_iteration, self.network

        def act(carry: Any, view: Any, legal: Array, player: Array, key: Array) -> tuple[Array, Any, Any]:
            inputs = network.inputs.of_view(view)
            policy = masked_softmax(network.apply_inputs(state.params, inputs)[0], legal)
            action = sample_action(key, policy)
            return action, carry, (inputs, policy[action], entropy(policy))

        record = self_play.play(self.game, self_play.Actor(lambda key: (), act), key, games=games, num_envs=games)
        d, valid = record.decisions, record.valid
        inputs, behaviour, entropies = d.extras
        legal = jnp.unpackbits(d.legal, axis=-1, count=self.game.num_actions).astype(bool)
        played = Played(
            inputs, legal, d.player.astype(jnp.int32), d.action.astype(jnp.int32),
            jnp.where(valid, behaviour, 1.0), jnp.where(valid[..., None], d.rewards, 0.0), d.done | ~valid, valid,
        )  # fmt: skip
        moves, dealt = jnp.sum(valid), record.results["games"]
        metrics = {"entropy": masked_mean(entropies, valid), "self_play/length": moves / dealt}
        counters = Counters(episodes=dealt, decisions=moves, nodes=moves, transitions=moves + dealt, network_rows=moves)
        return played, metrics, counters

    @functools.partial(jax.jit, static_argnums=0)
    def learn(self, state: RnadState, played: Played) -> tuple[RnadState, dict[str, Array], Counters]:
        """Takes the gradient steps, moves the target after each, and the anchors at the end of a period."""
        config = self.config
        _, key = jax.random.split(jax.random.fold_in(state.key, state.iteration))
        per_pass = config.episodes_per_iteration // config.batch_games
        rate = config.learning_rate * schedules.at(config.learning_rate_decay, state.iteration, state.share)
        share = jnp.minimum(2.0 * (state.iteration % config.period) / config.period, 1.0)

        def step(at: tuple[Array, Any, Any, Any, dict, Array]) -> tuple[Array, Any, Any, Any, dict, Array]:
            n, params, optimizer_state, target, sums, read = at
            order = jax.random.permutation(jax.random.fold_in(key, n // per_pass), config.episodes_per_iteration)
            lanes = lax.dynamic_slice_in_dim(order, (n % per_pass) * config.batch_games, config.batch_games)
            batch = devices.split(jax.tree.map(lambda x: x[:, lanes], played), axis=1)
            loss = functools.partial(self._loss, target, self._anchor_logs(state, share, batch))
            params, optimizer_state, metrics = fit(
                loss, self.optimizer, params, optimizer_state, lambda _: batch, learning_rate=rate, steps=1
            )
            target = optax.incremental_update(params, target, config.target_tau)
            sums, read = jax.tree.map(jnp.add, sums, metrics), read + jnp.sum(batch.valid)
            return n + 1, params, optimizer_state, target, sums, read

        steps = config.epochs * per_pass
        names = ("loss", "loss_value", "regularisation", "gradient_norm")
        zeros = dict.fromkeys(names, jnp.float32(0))
        start = (jnp.int32(0), state.params, state.optimizer_state, state.target, zeros, jnp.int32(0))
        _, params, optimizer_state, target, sums, read = long_loop(lambda at: at[0] < steps, step, start)
        done = state.iteration + 1
        anchor, last = (
            jax.tree.map(lambda new, old: jnp.where(done % config.period == 0, new, old), *pair)
            for pair in ((target, state.anchor), (state.anchor, state.last_anchor))
        )
        after = RnadState(params, optimizer_state, target, anchor, last, state.key, done, state.share)
        networks = 4  # that learns, its slow copy, and both anchors
        counters = Counters(gradient_steps=steps, network_rows=networks * read)
        return after, {name: x / steps for name, x in sums.items()} | {"learning_rate": rate}, counters

    def _anchor_logs(self, state: RnadState, share: Array, batch: Played) -> Array:
        """Returns log rho of a minibatch: float32[T, B, A], meaningless at illegal actions."""
        new, old = (
            masked_log_softmax(self.network.apply_inputs(params, batch.inputs)[0], batch.legal)
            for params in (state.anchor, state.last_anchor)
        )
        return share * new + (1.0 - share) * old

    def _loss(self, target: Any, anchor_logs: Array, params: Any, batch: Played) -> tuple[Array, dict[str, Array]]:
        """Returns NeuRD's loss plus the value's, and metrics."""
        config = self.config
        logits, value = self.network.apply_inputs(params, batch.inputs)
        _, target_value = self.network.apply_inputs(target, batch.inputs)
        logs = masked_log_softmax(logits, batch.legal)
        policy = jnp.where(batch.legal, jnp.exp(logs), 0.0)
        bonus = jnp.where(batch.legal, -config.eta * (logs - anchor_logs), 0.0)
        stream = functools.partial(vtrace, clip=config.trace_clip)
        traced = jax.vmap(stream, in_axes=1, out_axes=1)(
            *lax.stop_gradient(
                (batch.rewards, batch.done, batch.player, batch.action, target_value, policy, batch.behaviour, bonus)
            )
        )
        neurd = neurd_loss(
            logits, lax.stop_gradient(policy), traced.action_values, batch.legal,
            threshold=config.neurd_threshold, clip=config.neurd_clip,
        )  # fmt: skip
        value_loss = masked_mean((value - traced.values) ** 2, batch.valid)
        total = masked_mean(neurd, batch.valid) + config.value_weight * value_loss
        paid = masked_mean(-jnp.sum(policy * bonus, axis=-1) / config.eta, batch.valid)
        return total, {"loss": total, "loss_value": value_loss, "regularisation": paid}
