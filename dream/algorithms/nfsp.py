"""NFSP, neural fictitious self-play: a best response by Q-learning, and the average of all past best responses.

At each deal each player is assigned its best response with probability `anticipation`, else the average policy, for the
whole game. All decisions are stored in a buffer of the newest ones, for Q-learning:

    Q(s, a) <- r + max over legal a' of Q_target(s', a'),  s' the player's next decision, r its reward until then

The decisions of best responses are also stored in a reservoir, to which the average policy is fitted by cross-entropy.
Best responses explore epsilon-greedily: a share epsilon of their actions is uniform.
Source: Heinrich and Silver 2016, "Deep reinforcement learning from self-play in imperfect-information games",
algorithm 1. Deviations: many games are played between fits; both seats share their networks, which see the seat; Adam
instead of plain gradient descent.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax

from dream.algorithms.counters import Counters
from dream.algorithms.deep.regret_networks import strategy_loss
from dream.algorithms.play_then_fit import PlayThenFit
from dream.algorithms.types import Algorithm, Resources
from dream.buffers import reservoir
from dream.buffers.reservoir import ReservoirBuffer
from dream.config.settings import number
from dream.equations import schedules
from dream.equations.regret_matching import masked_softmax
from dream.equations.sampling import sample_action
from dream.equations.schedules import Schedule
from dream.networks import Network, make_network
from dream.networks.fit import adam, fit
from dream.rollout import self_play
from dream.rollout.self_play import num_envs_for
from envs import Game, Policy
from envs.random_play import uniform


@dataclasses.dataclass(frozen=True)
class FitConfig:
    """One network's learning: gradient steps per iteration, and what they are taken on."""

    steps: int = number(16, 1)
    batch_size: int = number(256, 1)
    learning_rate: float = number(1e-3, 0, above=True)
    capacity: int = number(200_000, 1)
    max_grad_norm: float = number(10.0, 0, above=True)


@dataclasses.dataclass(frozen=True)
class NfspConfig:
    """Settings of NFSP; conf/algo/nfsp.yaml says what each does."""

    name: str = "nfsp"
    episodes_per_iteration: int = number(128, 1)
    num_envs: int | None = number(None, 1)
    anticipation: float = number(0.1, 0, 1, above=True)
    epsilon: Schedule = number(Schedule(0.06, 0.0, 10_000), 0, 1)
    discount: float = number(1.0, 0, 1)
    target_update_period: int = number(10, 1)
    best_response: FitConfig = FitConfig()
    average: FitConfig = FitConfig(capacity=2_000_000)


class Move(NamedTuple):
    """One decision and the same player's next; in the buffer every field has a leading axis.

    Attributes:
      view, next_view: what the player saw.
      legal, next_legal: uint8[ceil(A / 8)], packed.
      action: int16.
      reward: float32, earned until the next decision.
      discount: float32, of what follows; 0 where there is no next decision.
    """

    view: Any
    legal: Array
    action: Array
    reward: Array
    next_view: Any
    next_legal: Array
    discount: Array


class Choice(NamedTuple):
    """One decision of a best response: view, legal actions packed, action int16."""

    view: Any
    legal: Array
    action: Array


class Learned(NamedTuple):
    """A network while it learns: parameters, optimiser's state, buffer."""

    params: Any
    optimizer_state: Any
    buffer: ReservoirBuffer


class NfspState(NamedTuple):
    """All that a run needs to go on.

    Attributes:
      best_response: Q, its buffer of Move.
      target: parameters of Q at the next decision.
      average: the average policy, its reservoir of Choice.
      key: not consumed.
      iteration: int32, completed ones.
      share: float32, of the run's budget that is spent; () where no schedule follows it.
    """

    best_response: Learned
    target: Any
    average: Learned
    key: Array
    iteration: Array
    share: Any = ()


def own_steps(rewards: Array, dones: Array, players: Array, *, discount: float) -> tuple[Array, Array, Array]:
    """Returns for each decision of a stream what its player earns until its next one, and where that is.

    Args:
      rewards: float32[T, P], paid on transition t.
      dones: bool[T], whether transition t ended a game; the last one does.
      players: int[T], who decided.
      discount: per own decision.
    Returns:
      (rewards float32[T], next decision int32[T], discount of what follows it float32[T], 0 where there is none).
    """
    seats = np.arange(rewards.shape[1])

    def backwards(ahead: tuple[Array, Array], step: tuple[Array, ...]) -> tuple[tuple[Array, Array], tuple]:
        earned, place = ahead
        reward, done, player, t = step
        earned, place = reward + jnp.where(done, 0.0, earned), jnp.where(done, -1, place)
        own = seats == player
        mine, following = jnp.sum(jnp.where(own, earned, 0.0)), jnp.max(jnp.where(own, place, -1))
        found = mine, jnp.maximum(following, 0), jnp.where(following < 0, 0.0, discount)
        return (jnp.where(own, 0.0, earned), jnp.where(own, t, place)), found

    start = jnp.zeros(rewards.shape[1]), jnp.full(rewards.shape[1], -1, jnp.int32)
    times = jnp.arange(rewards.shape[0], dtype=jnp.int32)
    return lax.scan(backwards, start, (rewards, dones, players, times), reverse=True)[1]


def make(config: NfspConfig, network: Any, game: Game, resources: Resources) -> Algorithm:
    """Builds the learner.

    Raises:
      InputError: settings that contradict each other, or a wrong network node.
    """
    num_envs = num_envs_for(config.num_envs, config.episodes_per_iteration)
    learner = _Nfsp(config, game, make_network(network, game), num_envs)
    return Algorithm(
        learner.init, learner.iterate, learner.policies, calls=learner.calls, traceable=True,
        with_share=schedules.share_setter(config),
    )  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False)
class _Nfsp(PlayThenFit):
    """The learner; the network's advantage head holds Q, or the average policy's logits."""

    config: NfspConfig
    game: Game
    network: Network
    num_envs: int

    def _optimizer(self, config: FitConfig) -> optax.GradientTransformation:
        return adam(max_grad_norm=config.max_grad_norm, l2=0.0)

    @functools.partial(jax.jit, static_argnums=0)
    def init(self, key: Array) -> NfspState:
        """Initialises both networks; the buffers are empty."""
        key, *keys = jax.random.split(key, 3)
        moves, choices = self._rows()

        def learned(key: Array, config: FitConfig, row: Any) -> Learned:
            params = self.network.init(key)
            return Learned(params, self._optimizer(config).init(params), reservoir.empty(row, config.capacity))

        best_response = learned(keys[0], self.config.best_response, moves)
        average = learned(keys[1], self.config.average, choices)
        share = schedules.share_of(self.config)
        return NfspState(best_response, best_response.params, average, key, jnp.int32(0), share)

    def _rows(self) -> tuple[Move, Choice]:
        """Returns the shapes of one row of each buffer."""

        def one() -> tuple[Move, Choice]:
            state = self.game.init(jax.random.key(0))
            view, legal = self.game.view(state, jnp.int32(0)), jnp.packbits(self.game.legal_actions(state))
            move = Move(view, legal, jnp.int16(0), jnp.float32(0), view, legal, jnp.float32(0))
            return move, Choice(view, legal, jnp.int16(0))

        return jax.eval_shape(one)

    def fit_arguments(self, state: NfspState, played: NfspState) -> tuple[NfspState]:
        return (played,)

    def policies(self, state: NfspState) -> dict[str, Policy]:
        greedy, average = {"q": state.best_response.params}, {"logits": state.average.params}
        return {"current": Policy(self._play_greedily, greedy), "average": Policy(self._play_average, average)}

    def _q(self, params: Any, view: Any) -> Array:
        advantages, value = self.network.apply_inputs(params, self.network.inputs.of_view(view))
        return value[..., None] + advantages

    def _play_greedily(self, params: Any, view: Any, legal: Array) -> Array:
        best = jnp.argmax(jnp.where(legal, self._q(params["q"], view), -jnp.inf))
        return jnp.where(legal, jax.nn.one_hot(best, legal.shape[-1]), 0.0)

    def _play_average(self, params: Any, view: Any, legal: Array) -> Array:
        logits, _ = self.network.apply_inputs(params["logits"], self.network.inputs.of_view(view))
        return masked_softmax(logits, legal)

    def _keys(self, state: NfspState) -> Array:
        return jax.random.split(jax.random.fold_in(state.key, state.iteration), 3)

    @functools.partial(jax.jit, static_argnums=0)
    def generate(self, state: NfspState) -> tuple[NfspState, dict[str, Array], Counters]:
        """Plays an iteration's games into the buffers; returns metrics and counters with the state."""
        play_key, add_key, _ = self._keys(state)
        epsilon = schedules.at(self.config.epsilon, state.iteration, state.share)
        games = self.config.episodes_per_iteration
        record = self_play.play(self.game, self._actor(state, epsilon), play_key, games=games, num_envs=self.num_envs)
        d, valid = record.decisions, record.valid
        stream = functools.partial(own_steps, discount=self.config.discount)
        rewards, following, discount = jax.vmap(stream, in_axes=1, out_axes=1)(
            d.rewards, d.done | ~valid, d.player.astype(jnp.int32)
        )
        lanes = np.arange(self.num_envs)
        ahead = jax.tree.map(lambda x: x[following, lanes], (d.view, d.legal))
        moves = Move(d.view, d.legal, d.action, rewards, *ahead, discount)
        choices = Choice(d.view, d.legal, d.action)
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (moves, choices, valid, valid & d.extras))
        newest = reservoir.add(state.best_response.buffer, flat[0], flat[2], add_key, kind="fifo")
        kept = reservoir.add(state.average.buffer, flat[1], flat[3], add_key, kind="reservoir")
        state = state._replace(
            best_response=state.best_response._replace(buffer=newest), average=state.average._replace(buffer=kept)
        )
        count, dealt = jnp.sum(valid), record.results["games"]
        counters = Counters(
            episodes=dealt, decisions=count, nodes=count, transitions=count + dealt, network_rows=2 * count
        )
        return state, {"epsilon": epsilon, "self_play/length": count / dealt}, counters

    def _actor(self, state: NfspState, epsilon: Array) -> self_play.Actor:
        """Returns how games are played; a decision's extra is whether a best response made it."""
        policies = self.policies(state)

        def start(key: Array) -> Array:
            return jax.random.bernoulli(key, self.config.anticipation, (self.game.num_players,))

        def act(carry: Array, view: Any, legal: Array, player: Array, key: Array) -> tuple[Array, Array, Array]:
            greedy = (1.0 - epsilon) * policies["current"](view, legal) + epsilon * uniform(legal)
            responds = carry[player]
            return sample_action(key, jnp.where(responds, greedy, policies["average"](view, legal))), carry, responds

        return self_play.Actor(start, act)

    @functools.partial(jax.jit, static_argnums=0)
    def learn(self, state: NfspState) -> tuple[NfspState, dict[str, Array], Counters]:
        """Fits both networks to their buffers."""
        *_, key = self._keys(state)
        response_key, average_key = jax.random.split(key)
        own, average, config = state.best_response, state.average, self.config
        params, optimizer_state, first = fit(
            functools.partial(self._q_loss, state.target), self._optimizer(config.best_response),
            own.params, own.optimizer_state, _batches(own.buffer, response_key, config.best_response.batch_size),
            learning_rate=config.best_response.learning_rate, steps=config.best_response.steps,
        )  # fmt: skip
        own = own._replace(params=params, optimizer_state=optimizer_state)
        params, optimizer_state, second = fit(
            self._average_loss, self._optimizer(config.average),
            average.params, average.optimizer_state, _batches(average.buffer, average_key, config.average.batch_size),
            learning_rate=config.average.learning_rate, steps=config.average.steps,
        )  # fmt: skip
        average = average._replace(params=params, optimizer_state=optimizer_state)
        done = state.iteration + 1
        target = jax.tree.map(
            lambda new, old: jnp.where(done % config.target_update_period == 0, new, old), own.params, state.target
        )
        steps = config.best_response.steps + config.average.steps
        rows = 2 * config.best_response.steps * config.best_response.batch_size
        counters = Counters(gradient_steps=steps, network_rows=rows + config.average.steps * config.average.batch_size)
        metrics = {"loss_q": first["loss"], "loss_average": second["loss"]}
        return NfspState(own, target, average, state.key, done, state.share), metrics, counters

    def _unpacked(self, legal: Array) -> Array:
        return jnp.unpackbits(legal, axis=-1, count=self.game.num_actions).astype(bool)

    def _q_loss(self, target: Any, params: Any, rows: Move) -> tuple[Array, dict[str, Array]]:
        """Returns the mean squared error of Q at the actions taken."""
        later = jax.vmap(functools.partial(self._q, target))(rows.next_view)
        best = jnp.max(jnp.where(self._unpacked(rows.next_legal), later, -jnp.inf), axis=-1)
        wanted = lax.stop_gradient(rows.reward + jnp.where(rows.discount > 0, rows.discount * best, 0.0))
        q = jax.vmap(functools.partial(self._q, params))(rows.view)
        taken = jnp.take_along_axis(q, rows.action.astype(jnp.int32)[:, None], axis=-1)[:, 0]
        loss = jnp.mean((taken - wanted) ** 2)
        return loss, {"loss": loss}

    def _average_loss(self, params: Any, rows: Choice) -> tuple[Array, dict[str, Array]]:
        """Returns the mean cross-entropy from the actions taken."""
        inputs = jax.vmap(self.network.inputs.of_view)(rows.view)
        taken = jax.nn.one_hot(rows.action, self.game.num_actions)
        legal = self._unpacked(rows.legal)
        loss = jnp.mean(strategy_loss(self.network.apply_inputs(params, inputs), legal, taken))
        return loss, {"loss": loss}


def _batches(buffer: ReservoirBuffer, key: Array, size: int) -> Any:
    """Returns number of the step -> its rows."""
    return lambda n: reservoir.sample(buffer, jax.random.fold_in(key, n), size)
