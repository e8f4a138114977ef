"""The dueling DREAM agent: self-play, soft regret matching, and a dueling network fitted to one-sample advantages.

Each iteration plays fresh games with the present network's policy, forms targets with a slowly moving copy of it, and
fits the network to them. No regret is accumulated and no policy averaged: nothing here converges to an equilibrium by
the theory of regret minimisation; PHASE_NOTES.md tells what it is.
Source: the DREAM document; deviations are settings, and each setting's default is the document's value.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from dream.algorithms.types import Algorithm, Metrics, Resources
from dream.buffers.replay import Replay, batches_per_pass, collect, draw, nth_of_passes
from dream.config.settings import choice, number
from dream.equations import reward_shaping, schedules
from dream.equations.advantage_targets import advantage_targets
from dream.equations.regret_matching import soft_regret_matching
from dream.equations.returns import lambda_returns
from dream.equations.reward_shaping import ShapingConfig
from dream.equations.sampling import entropy, sample_action
from dream.equations.schedules import Schedule
from dream.networks import Network, make_network
from dream.networks.fit import adam, fit
from dream.networks.network import Reader, make_reader
from dream.rollout import self_play
from envs import Game, Policy
from envs.errors import InputError


@dataclasses.dataclass(frozen=True)
class DuelingDreamConfig:
    """Settings of the dueling DREAM agent; conf/algo/dueling_dream.yaml says what each does."""

    name: str = "dueling_dream"
    episodes_per_iteration: int = number(8192, 1)
    num_envs: int | None = number(None, 1)
    batch_size: int = number(2048, 1)
    epochs: int = number(40, 1)
    epoch_unit: str = choice("minibatches", "minibatches", "passes")
    learning_rate: float = number(2e-3, 0, above=True)
    learning_rate_decay: Schedule = schedules.constant(1.0)
    discount: float = number(0.99, 0, 1)
    gae_lambda: float = number(1.0, 0, 1)
    temperature: Schedule = Schedule(2.0, 0.1, 400)
    uniform_iterations: int = number(20, 0)
    play_temperature: float | None = number(None, 0, above=True)
    exploration: float = number(0.0, 0, 1)
    tau: float = number(0.1, 0, 1, above=True)
    target_update_period: int = number(5, 1)
    advantage_clip: float = number(10.0, 0, above=True)
    max_grad_norm: float = number(1.0, 0, above=True)
    l2: float = number(1e-5, 0)
    value_weight: float = number(0.5, 0)
    untaken_weight: float = number(1.0, 0)
    shaping: ShapingConfig = ShapingConfig()


class DuelingDreamState(NamedTuple):
    """All that a run needs to go on; the replay is not in it, as every iteration plays its own games.

    Attributes:
      params, target: the network's and its slow copy's.
      optimizer_state: Adam's.
      key: PRNG key.
      iteration: int32, completed iterations.
    """

    params: Any
    target: Any
    optimizer_state: Any
    key: Array
    iteration: Array


class Thought(NamedTuple):
    """What the actor notes at a decision: its policy float16[A] before exploration, and the value float32."""

    policy: Array
    value: Array


class Example(NamedTuple):
    """One decision to learn from: view, packed legal actions, action, return to its player, policy that rated it."""

    view: Any
    legal: Array
    action: Array
    returns: Array
    policy: Array


def make(config: DuelingDreamConfig, network: Any, game: Game, resources: Resources) -> Algorithm:
    """Builds the learner.

    Raises:
      InputError: settings that contradict each other, or a wrong network node.
    """
    for name in ("start", "end"):
        if not getattr(config.temperature, name) > 0:
            raise InputError(f"algo.temperature.{name}={getattr(config.temperature, name)} must be more than 0")
    num_envs = self_play.num_envs_for(config.num_envs, config.episodes_per_iteration)
    built = make_network(network, game)
    learner = _DuelingDream(config, game, built, make_reader(game, built), num_envs)
    return Algorithm(learner.init, learner.iterate, learner.policies)


@dataclasses.dataclass(frozen=True, eq=False)
class _DuelingDream:
    """The parts, put together."""

    config: DuelingDreamConfig
    game: Game
    network: Network
    reader: Reader
    num_envs: int

    @functools.cached_property
    def optimizer(self) -> optax.GradientTransformation:
        return adam(max_grad_norm=self.config.max_grad_norm, l2=self.config.l2)

    @functools.partial(jax.jit, static_argnums=0)
    def init(self, key: Array) -> DuelingDreamState:
        """Draws a network; its target is a copy."""
        key, network_key = jax.random.split(key)
        params = self.network.init(network_key)
        return DuelingDreamState(params, params, self.optimizer.init(params), key, jnp.int32(0))

    def iterate(self, state: DuelingDreamState) -> tuple[DuelingDreamState, Metrics]:
        began = time.perf_counter()
        replay, played = jax.block_until_ready(self.generate(state))
        generated = time.perf_counter()
        state, fitted = jax.block_until_ready(self.learn(state, replay))
        seconds = {"seconds_generate": generated - began, "seconds_fit": time.perf_counter() - generated}
        metrics = {name: float(x) for name, x in jax.device_get({**played, **fitted}).items()}
        return state, {**metrics, **seconds}

    def policies(self, state: DuelingDreamState) -> dict[str, Policy]:
        temperature = self.config.play_temperature or self._temperature(state.iteration)
        return {"current": Policy(self._play, {"network": state.params, "temperature": jnp.float32(temperature)})}

    def _play(self, params: Any, view: Any, legal: Array) -> Array:
        advantages, _ = self.network.apply_inputs(params["network"], self.network.inputs.of_view(view))
        return soft_regret_matching(advantages, legal, params["temperature"])

    def _temperature(self, iteration: Array) -> Array:
        warm = iteration < self.config.uniform_iterations
        return jnp.where(warm, jnp.inf, schedules.at(self.config.temperature, iteration))

    @functools.partial(jax.jit, static_argnums=0)
    def generate(self, state: DuelingDreamState) -> tuple[Replay, dict[str, Array]]:
        """Plays an iteration's games and turns them into examples."""
        key, _ = self._keys(state)
        temperature = self._temperature(state.iteration)
        actor = self._actor(state.params, temperature)
        games = self.config.episodes_per_iteration
        record = self_play.play(self.game, actor, key, games=games, num_envs=self.num_envs)
        scale = schedules.at(self.config.shaping.scale, state.iteration)
        returns = self._returns(record, scale)
        d = record.decisions
        examples = Example(d.view, d.legal, d.action, returns, d.note.policy)
        entropies = entropy(d.note.policy.astype(jnp.float32))
        told = self_play.describe(self.game, record, returns, d.note.value, entropies, record.valid)
        told |= {"temperature": temperature, "shaping_scale": scale}
        return collect(examples, record.valid), told

    def _keys(self, state: DuelingDreamState) -> Array:
        return jax.random.split(jax.random.fold_in(state.key, state.iteration))

    def _actor(self, params: Any, temperature: Array) -> self_play.Actor:
        weights, explore = self.reader.prepare(params), self.config.exploration

        def act(memory: Any, view: Any, legal: Array, player: Array, key: Array) -> tuple[Array, Any, Thought]:
            (advantages, value), memory = self.reader.read(weights, memory, view, player)
            policy = soft_regret_matching(advantages, legal, temperature)
            even = legal / jnp.maximum(jnp.sum(legal), 1)
            action = sample_action(key, (1 - explore) * policy + explore * even if explore else policy)
            return action, memory, Thought(policy.astype(jnp.float16), value)

        return self_play.Actor(lambda key: self.reader.start(), act)

    def _returns(self, record: self_play.Record, scale: Array) -> Array:
        """Returns each decision's discounted training return to the player who took it: float32[T, lanes]."""
        config, d = self.config, record.decisions
        rewards = reward_shaping.training_rewards(
            config.shaping, d.rewards, d.potentials, d.done,
            unit=self.game.reward_scale, scale=scale, discount=config.discount,
        )  # fmt: skip
        lane = functools.partial(lambda_returns, discount=config.discount, gae_lambda=config.gae_lambda)
        return jax.vmap(lane, in_axes=1, out_axes=1)(rewards, d.done | ~record.valid, d.player, d.note.value)

    @functools.partial(jax.jit, static_argnums=0)
    def learn(self, state: DuelingDreamState, replay: Replay) -> tuple[DuelingDreamState, dict[str, Array]]:
        """Fits the network to the examples and moves the target network."""
        config = self.config
        _, key = self._keys(state)
        if config.epoch_unit == "passes":
            steps = config.epochs * batches_per_pass(replay, config.batch_size)
        else:
            steps = jnp.int32(config.epochs)

        def batch(n: Array) -> tuple[Any, ...]:
            if config.epoch_unit == "passes":
                rows = nth_of_passes(replay, key, n, config.batch_size)
            else:
                rows = draw(replay, jax.random.fold_in(key, n), config.batch_size)
            return self._with_targets(state.target, rows)

        learning_rate = config.learning_rate * schedules.at(config.learning_rate_decay, state.iteration)
        params, optimizer_state, told = fit(
            self._loss, self.optimizer, state.params, state.optimizer_state, batch,
            learning_rate=learning_rate, steps=steps,
        )  # fmt: skip
        drift = jax.tree.map(jnp.subtract, params, state.target)
        told["target_drift"] = optax.tree.norm(drift) / optax.tree.norm(params)
        iteration = state.iteration + 1
        rate = jnp.where(iteration % config.target_update_period == 0, config.tau, 0.0)
        target = optax.incremental_update(params, state.target, rate)
        # Target and online network both see every row of every minibatch.
        rows = 2 * steps * config.batch_size
        told |= {"learning_rate": learning_rate, "gradient_steps": steps, "network_rows": replay.count + rows}
        return DuelingDreamState(params, target, optimizer_state, state.key, iteration), told

    def _with_targets(self, target: Any, rows: Example) -> tuple[Array, Array, Array, Array, Array]:
        """Returns inputs, legal and taken actions, advantage targets and value targets of a minibatch."""
        legal = jnp.unpackbits(rows.legal, axis=-1, count=self.game.num_actions).astype(bool)
        x = jax.vmap(self.network.inputs.of_view)(rows.view)
        advantages, value = self.network.apply_inputs(target, x)
        aims = jax.vmap(functools.partial(advantage_targets, clip=self.config.advantage_clip))(
            advantages, value, rows.action.astype(jnp.int32), rows.returns, rows.policy.astype(jnp.float32), legal
        )
        taken = jax.nn.one_hot(rows.action, self.game.num_actions, dtype=bool)
        return lax.stop_gradient((x, legal, taken, aims, rows.returns))

    def _loss(self, params: Any, batch: tuple[Array, ...]) -> tuple[Array, dict[str, Array]]:
        """Returns MSE of the advantages over legal actions + value_weight * MSE of the value."""
        x, legal, taken, aims, returns = batch
        advantages, value = self.network.apply_inputs(params, x)
        weights = jnp.where(legal, jnp.where(taken, 1.0, self.config.untaken_weight), 0.0)
        advantage_loss = jnp.sum(weights * (advantages - aims) ** 2) / jnp.sum(weights)
        value_loss = jnp.mean((value - returns) ** 2)
        total = advantage_loss + self.config.value_weight * value_loss
        count = jnp.sum(legal)
        told = {
            "loss": total,
            "loss_advantage": advantage_loss,
            "loss_value": value_loss,
            "target_spread": jnp.sqrt(jnp.sum(jnp.where(legal, aims, 0.0) ** 2) / count),
            "advantage_spread": jnp.sqrt(jnp.sum(jnp.where(legal, advantages, 0.0) ** 2) / count),
            "target_clipped": jnp.sum(legal & (jnp.abs(aims) >= self.config.advantage_clip)) / count,
        }
        return total, told
