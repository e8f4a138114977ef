"""Proximal policy optimisation over any Game, by self-play, against fixed opponents, or a mixture of them.

Each iteration plays whole games; with G the lambda-return to the player who decided and V the value then,

    A = (G - V), normalised over the minibatch,    rho = pi(a) / pi_then(a),
    loss = -mean min(rho A, clip(rho, 1 - c, 1 + c) A) + w_v mean (V - G)^2 - w_e mean entropy(pi)
           + w_a mean (foretold - game.auxiliary)^2, the last where the network has such a head.

pi is the softmax of the network's advantage head over legal actions, so that the trunk is the same as DREAM's.
Sources: Schulman et al. 2017, eq. 7 and 9; Schulman et al. 2016 (GAE), whose advantage is G - V here.
Iterations hold whole games, so that no return is cut off and bootstrapped; or, with `rollout_length`, so many
decisions of the learner in every lane against fixed players, whose games go on in the next iteration
(dream/rollout/against_opponents.py): then the return of a game still under way ends in the value of where it stands.
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

import envs
from dream.algorithms.types import Algorithm, Metrics, Resources, Value
from dream.buffers.replay import Replay, batches_per_pass, collect, nth_of_passes
from dream.config.settings import choice, number
from dream.equations import reward_shaping, schedules
from dream.equations.regret_matching import LOW, masked_softmax
from dream.equations.returns import lambda_returns
from dream.equations.reward_shaping import ShapingConfig
from dream.equations.sampling import entropy, sample_action
from dream.equations.schedules import Schedule
from dream.networks import Network, make_network
from dream.networks.fit import adam, fit
from dream.networks.network import Reader, make_reader
from dream.rollout import self_play
from dream.rollout.against_opponents import Rollouts, describe
from dream.rollout.opponents import SELF, Mixture, draw_past, is_learner, make_mixture, make_ring, policy_at, push, seat
from envs import Game, InputError, Policy


@dataclasses.dataclass(frozen=True)
class PpoConfig:
    """Settings of PPO; conf/algo/ppo.yaml says what each does."""

    name: str = "ppo"
    episodes_per_iteration: int = number(1024, 1)
    num_envs: int | None = number(None, 1)
    rollout_length: int | None = number(None, 1)
    moves_per_step: int = number(10, 1)
    keep_inputs: bool = False
    assistant: str | None = None
    opponents: tuple[str, ...] = (SELF,)
    shares: tuple[float, ...] | None = number(None, 0)
    pool_every: int = number(50, 1)
    pool_size: int = number(8, 1)
    opponent_id_prob: float = number(0.0, 0, 1)
    batch_size: int = number(2048, 1)
    epochs: int = number(4, 1)
    learning_rate: float = number(2.5e-4, 0, above=True)
    learning_rate_decay: Schedule = schedules.constant(1.0)
    discount: float = number(1.0, 0, 1)
    gae_lambda: float = number(0.95, 0, 1)
    clip_epsilon: float = number(0.2, 0, above=True)
    entropy_weight: float = number(0.01, 0)
    value_weight: float = number(0.5, 0)
    value_loss: str = choice("absolute", "absolute", "relative")
    auxiliary_weight: float = number(0.1, 0)
    max_grad_norm: float = number(0.5, 0, above=True)
    play_temperature: float | None = number(None, 0, above=True)
    shaping: ShapingConfig = ShapingConfig(scale=schedules.constant(0.0), draw_penalty=0.0)


class PpoState(NamedTuple):
    """All that a run needs to go on.

    Attributes:
      params, optimizer_state: of the network.
      key: not consumed; an iteration's keys follow from it and `iteration`.
      iteration: completed ones.
      lanes: games under way; () where iterations hold whole games.
      ring: past parameters; () where no past self plays.
    """

    params: Any
    optimizer_state: Any
    key: Array
    iteration: Array
    lanes: Any = ()
    ring: Any = ()


class Memory(NamedTuple):
    """The actor's memory: who plays, and the network's reader."""

    table: Any
    reader: Any


class Thought(NamedTuple):
    """What the actor notes: chance of the action, value, entropy, who plays, whether it is the learner, kept inputs."""

    chance: Array
    value: Array
    entropy: Array
    seat: Array
    named: Array
    own: Array
    inputs: Any = ()


class Example(NamedTuple):
    """One decision to learn from.

    `view` is what the network read of it where inputs are kept; `chance` is the probability the action had;
    `auxiliary` is () where no head foretells it.
    """

    view: Any
    legal: Array
    action: Array
    chance: Array
    value: Array
    returns: Array
    auxiliary: Any


def clipped_loss(ratio: Array, advantage: Array, clip: float) -> Array:
    """Returns -min(rho A, clip(rho, 1 - c, 1 + c) A), elementwise."""
    return -jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - clip, 1 + clip) * advantage)


def make(config: PpoConfig, network: Any, game: Game, resources: Resources) -> Algorithm:
    """Builds the learner.

    Raises:
      InputError: settings that contradict each other, an unknown opponent, or a wrong network node.
    """
    mixture = make_mixture(config.opponents, config.shares, game, resources.find_player)._replace(
        told=config.opponent_id_prob
    )
    return learner(config, network, game, mixture)


def learner(config: PpoConfig, network: Any, game: Game, mixture: Mixture) -> Algorithm:
    """Builds the learner against given opponents.

    Raises:
      InputError: more num_envs than games, an unknown assistant, rollout_length against itself, opponents that cannot
        be named, or a wrong network node.
    """
    built = make_network(network, game)
    if config.rollout_length is not None and mixture.chances[0] > 0:
        raise InputError(
            f"algo.rollout_length={config.rollout_length} needs fixed players; algo.opponents must not hold {SELF!r}"
        )
    num_envs = config.num_envs or config.episodes_per_iteration
    if config.rollout_length is None:
        num_envs = self_play.num_envs_for(config.num_envs, config.episodes_per_iteration)
    if config.keep_inputs and config.rollout_length is None:
        raise InputError("algo.keep_inputs=true needs algo.rollout_length; with whole games it must be false")
    kinds = game.opponent_ids.kinds if game.opponent_ids else 0
    if mixture.told and len(mixture.players) > kinds:
        raise InputError(
            f"algo.opponent_id_prob={mixture.told} is not valid: {game.name} can name {kinds} opponents, "
            f"and there are {len(mixture.players)}; it must be 0"
        )
    assistant = None if config.assistant is None else envs.make_assistant(config.assistant, game)
    parts = _Ppo(config, game, built, make_reader(game, built), mixture, num_envs, assistant)
    return Algorithm(parts.init, parts.iterate, parts.policies, parts.value)


@dataclasses.dataclass(frozen=True, eq=False)
class _Ppo:
    """The parts, put together."""

    config: PpoConfig
    game: Game
    network: Network
    reader: Reader
    mixture: Mixture
    num_envs: int
    assistant: Policy | None

    @functools.cached_property
    def optimizer(self) -> optax.GradientTransformation:
        return adam(max_grad_norm=self.config.max_grad_norm, l2=0.0)

    def init(self, key: Array) -> PpoState:
        """Draws a network, and deals where games go on from one iteration to the next."""
        return self._init(key, self.mixture.players)

    @functools.partial(jax.jit, static_argnums=0)
    def _init(self, key: Array, players: tuple[Policy | None, ...]) -> PpoState:
        key, network_key = jax.random.split(key)
        params = self.network.init(network_key)
        ring = make_ring(params, self.config.pool_size) if self.mixture.has_frozen else ()
        state = PpoState(params, self.optimizer.init(params), key, jnp.int32(0), ring=ring)
        if self.config.rollout_length is None:
            return state
        rollouts = self._rollouts(self._seated(state, players))
        return state._replace(lanes=rollouts.start(jax.random.fold_in(network_key, 1), self.num_envs))

    def _seated(self, state: PpoState, players: tuple[Policy | None, ...]) -> Mixture:
        """Returns the mixture of an iteration, one past self in the place kept for it."""
        mixture = self.mixture._replace(players=players)
        if not mixture.has_frozen:
            return mixture
        # Beside the two keys that `_keys` splits off.
        key = jax.random.fold_in(jax.random.fold_in(state.key, state.iteration), 2)
        past = draw_past(state.ring, key)
        return mixture.with_frozen(Policy(self._play, {"network": past, "temperature": jnp.float32(1.0)}))

    def _rollouts(self, mixture: Mixture) -> Rollouts:
        shaping = self.config.shaping
        shaped = bool(shaping.scale.start or shaping.scale.end)
        return Rollouts(self.game, mixture, self.assistant, self.config.moves_per_step, potentials=shaped)

    def iterate(self, state: PpoState) -> tuple[PpoState, Metrics]:
        began = time.perf_counter()
        lanes, replay, played = jax.block_until_ready(self.generate(state, self.mixture.players))
        generated = time.perf_counter()
        state, fitted = jax.block_until_ready(self.learn(state._replace(lanes=lanes), replay))
        seconds = {"seconds_generate": generated - began, "seconds_fit": time.perf_counter() - generated}
        metrics = {name: float(x) for name, x in jax.device_get({**played, **fitted}).items()}
        return state, {**metrics, **seconds}

    def policies(self, state: PpoState) -> dict[str, Policy]:
        temperature = self.config.play_temperature or 1.0
        return {"current": Policy(self._play, {"network": state.params, "temperature": jnp.float32(temperature)})}

    def value(self, state: PpoState) -> Value:
        return Value(self._expect, state.params)

    def _expect(self, params: Any, view: Any) -> Array:
        return self.network.apply_inputs(params, self.network.inputs.of_view(view))[1]

    def _play(self, params: Any, view: Any, legal: Array) -> Array:
        logits, _ = self.network.apply_inputs(params["network"], self.network.inputs.of_view(view))
        own = masked_softmax(logits / params["temperature"], legal)
        return own if self.assistant is None else self._with_help(own, view, legal)

    def _with_help(self, own: Array, view: Any, legal: Array) -> Array:
        """Returns the assistant's choice where it has a say, else the learner's own policy."""
        helped = self.assistant(view, legal)
        return jnp.where(jnp.sum(helped) > 0, helped, own)

    def _keys(self, state: PpoState) -> Array:
        return jax.random.split(jax.random.fold_in(state.key, state.iteration))

    @functools.partial(jax.jit, static_argnums=0)
    def generate(self, state: PpoState, players: tuple[Policy | None, ...]) -> tuple[Any, Replay, dict[str, Array]]:
        """Plays an iteration's games and turns the learner's decisions into examples; returns the games under way."""
        play = self._play_games if self.config.rollout_length is None else self._play_steps
        return play(state, self._seated(state, players), schedules.at(self.config.shaping.scale, state.iteration))

    def _play_games(self, state: PpoState, mixture: Mixture, scale: Array) -> tuple[Any, Replay, dict]:
        """Plays whole games."""
        config, (key, _) = self.config, self._keys(state)
        actor = self._actor(state.params, mixture)
        record = self_play.play(self.game, actor, key, games=config.episodes_per_iteration, num_envs=self.num_envs)
        d, note = record.decisions, record.decisions.note
        rewards = reward_shaping.training_rewards(
            config.shaping, d.rewards, d.potentials, d.done,
            unit=self.game.reward_scale, scale=scale, discount=config.discount,
        )  # fmt: skip
        returns = self._returns(rewards, d.done | ~record.valid, d.player, note.value)
        own = record.valid & note.own
        auxiliary = d.auxiliary if self.network.auxiliary_prediction else ()
        view = d.view
        if mixture.told:
            view = jax.vmap(jax.vmap(self.game.opponent_ids.name))(view, note.named)
        examples = Example(view, d.legal, d.action, note.chance, note.value, returns, auxiliary)
        told = self_play.describe(self.game, record, returns, note.value, note.entropy, own)
        seats = jnp.arange(self.game.num_players) == note.seat[..., None]
        earned = jnp.sum(jnp.where(record.valid[..., None] & seats, d.rewards, 0.0))
        told |= {"shaping_scale": scale, "learner_reward": earned / config.episodes_per_iteration}
        return (), collect(examples, own), told

    def _returns(self, rewards: Array, ends: Array, players: Array, values: Array) -> Array:
        """Returns the lambda-returns of lanes side by side: float32[T, N]."""
        lane = functools.partial(lambda_returns, discount=self.config.discount, gae_lambda=self.config.gae_lambda)
        return jax.vmap(lane, in_axes=1, out_axes=1)(rewards, ends, players, values)

    def _play_steps(self, state: PpoState, mixture: Mixture, scale: Array) -> tuple[Any, Replay, dict]:
        """Plays `rollout_length` decisions of the learner in every lane."""
        config, (key, _) = self.config, self._keys(state)
        rollouts = self._rollouts(mixture)

        def read(inputs: Array) -> tuple[Array, Array]:
            return self.network.apply_inputs(state.params, inputs)

        def act(view: Any, legal: Array, key: Array) -> tuple[Array, Thought]:
            inputs = self.network.inputs.of_view(view)
            logits, value = read(inputs)
            own = masked_softmax(logits, legal)
            action = sample_action(key, own)
            alone = jnp.int32(0), jnp.int32(0), jnp.bool_(True)
            return action, Thought(own[action], value, entropy(own), *alone, inputs if config.keep_inputs else ())

        lanes, step = rollouts.play(state.lanes, act, key, config.rollout_length)
        passed, note = step.passed, step.note
        unit, extra = self.game.reward_scale, config.shaping
        rewards = passed.reward + jnp.where(passed.drawn, extra.draw_penalty / unit, 0.0)
        rewards += reward_shaping.win_bonus(passed.ending, passed.done, extra.win_bonus / unit)
        before, after = step.potentials[..., 0], step.potentials[..., 1]
        form = {"scale": scale, "discount": config.discount, "form": config.shaping.form}
        rewards += jnp.where(step.valid, reward_shaping.shaping_reward(before, after, passed.done, **form), 0.0)
        # What a game under way is worth is paid after the last step, as if it ended there.
        ahead = jax.vmap(lambda lane: read(self.network.inputs.of_view(rollouts.seen(lane)))[1])(lanes)
        rewards = jnp.concatenate([rewards, jnp.where(lanes.owed, ahead, 0.0)[None]])[..., None]
        ends = jnp.concatenate([passed.done, jnp.ones((1, self.num_envs), bool)])
        nobody = jnp.full((1, self.num_envs), -1)
        decides = jnp.concatenate([jnp.where(step.valid, 0, -1), nobody])
        values = jnp.concatenate([note.value, jnp.zeros((1, self.num_envs))])
        returns = self._returns(rewards, ends, decides, values)[:-1]
        auxiliary = step.auxiliary if self.network.auxiliary_prediction else ()
        seen = note.inputs if config.keep_inputs else step.view
        examples = Example(seen, step.legal, step.action, note.chance, note.value, returns, auxiliary)
        told = describe(self.game, step, returns) | {"shaping_scale": scale}
        return lanes, collect(examples, step.valid), told

    def _actor(self, params: Any, mixture: Mixture) -> self_play.Actor:
        weights = self.reader.prepare(params)

        def start(key: Array) -> Memory:
            return Memory(seat(mixture, self.game.num_players, key), self.reader.start())

        def act(memory: Memory, view: Any, legal: Array, player: Array, key: Array) -> tuple[Array, Memory, Thought]:
            table = memory.table
            named = self.game.opponent_ids.name(view, table.named) if mixture.told else view
            (logits, value), reader = self.reader.read(weights, memory.reader, named, player)
            own = masked_softmax(logits, legal)
            decides = is_learner(table, player)
            if self.assistant is not None:
                decides &= jnp.sum(self.assistant(view, legal)) == 0
                own = self._with_help(own, view, legal)
            action = sample_action(key, policy_at(mixture, table, player, own, view, legal))
            note = Thought(own[action], value, entropy(own), table.seat, table.named, decides)
            return action, Memory(memory.table, reader), note

        return self_play.Actor(start, act)

    @functools.partial(jax.jit, static_argnums=0)
    def learn(self, state: PpoState, replay: Replay) -> tuple[PpoState, dict[str, Array]]:
        """Fits the network to the examples, `epochs` passes over them."""
        config, (_, key) = self.config, self._keys(state)
        steps = config.epochs * batches_per_pass(replay, config.batch_size)
        learning_rate = config.learning_rate * schedules.at(config.learning_rate_decay, state.iteration)
        params, optimizer_state, told = fit(
            self._loss,
            self.optimizer,
            state.params,
            state.optimizer_state,
            lambda n: nth_of_passes(replay, key, n, config.batch_size),
            learning_rate=learning_rate,
            steps=steps,
        )
        told |= {
            "learning_rate": learning_rate,
            "gradient_steps": steps,
            "network_rows": replay.count + steps * config.batch_size,
        }
        done, ring = state.iteration + 1, state.ring
        if self.mixture.has_frozen:
            ring = push(ring, params, done % config.pool_every == 0)
        return PpoState(params, optimizer_state, state.key, done, state.lanes, ring), told

    def _loss(self, params: Any, rows: Example) -> tuple[Array, dict[str, Array]]:
        config = self.config
        legal = jnp.unpackbits(rows.legal, axis=-1, count=self.game.num_actions).astype(bool)
        x = rows.view if config.keep_inputs else jax.vmap(self.network.inputs.of_view)(rows.view)
        (logits, value), told = self._outputs(params, lax.stop_gradient(x), rows.auxiliary)
        logs = jax.nn.log_softmax(jnp.where(legal, logits, LOW), axis=-1)
        action = rows.action.astype(jnp.int32)[:, None]
        change = jnp.take_along_axis(logs, action, axis=-1)[:, 0] - jnp.log(jnp.maximum(rows.chance, 1e-9))
        advantage = rows.returns - rows.value
        advantage = (advantage - jnp.mean(advantage)) / (jnp.std(advantage) + 1e-8)
        policy_loss = jnp.mean(clipped_loss(jnp.exp(change), advantage, config.clip_epsilon))
        value_loss = jnp.mean((value - rows.returns) ** 2)
        if config.value_loss == "relative":
            value_loss = value_loss / jnp.maximum(jnp.var(rows.returns), 1e-6)
        spread = jnp.mean(-jnp.sum(jnp.where(legal, jnp.exp(logs) * logs, 0.0), axis=-1))
        total = policy_loss + config.value_weight * value_loss - config.entropy_weight * spread
        total = total + config.auxiliary_weight * told.get("loss_auxiliary", 0.0)
        told |= {
            "loss": total,
            "loss_policy": policy_loss,
            "loss_value": value_loss,
            "entropy": spread,
            "kl": jnp.mean(jnp.exp(change) - 1.0 - change),
            "clipped": jnp.mean(jnp.abs(jnp.exp(change) - 1.0) > config.clip_epsilon),
        }
        return total, told

    def _outputs(self, params: Any, x: Array, auxiliary: Any) -> tuple[tuple[Array, Array], dict[str, Array]]:
        """Returns (logits, value), and the auxiliary loss where the network foretells anything."""
        if self.network.auxiliary_prediction is None:
            return self.network.apply_inputs(params, x), {}
        outputs, foretold = self.network.auxiliary_prediction(params, x)
        return outputs, {"loss_auxiliary": jnp.mean((foretold - auxiliary) ** 2)}
