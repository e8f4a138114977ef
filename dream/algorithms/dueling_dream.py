"""The dueling DREAM agent: self-play, soft regret matching, and a dueling network fitted to one-sample advantages.

Each iteration plays fresh games by the target network, a slowly moving copy of the network under fit, forms targets
with it, and fits the network to them.

accumulate: none            the document's: the policy is soft regret matching on today's advantages. No regret is
                            accumulated and no policy averaged, so play cycles where an equilibrium is mixed.
accumulate: mirror_descent  a third head holds the policy, the softmax of its logits. It is fitted to one step of mirror
                            descent from the policy that played, softmax of (log pi + eta q) / (1 + eta alpha), with
                            q the advantages of the network under fit. What was learned accumulates in the head.
Sources: the DREAM document, with deviations as settings whose defaults are its values. Mirror descent:
dream/equations/mirror_descent.py; fitting a head to it is this project's.

With `opponents` a share of the games is against fixed players, of which only the learner's decisions are learned from.
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

from dream.algorithms.average_policy import Average, AverageConfig, AveragePolicy, Played
from dream.algorithms.counters import Counters
from dream.algorithms.play_then_fit import PlayThenFit
from dream.algorithms.types import Algorithm, Resources
from dream.buffers.replay import Replay, batches_per_pass, collect, nth_of_passes, sample
from dream.config.settings import choice, number
from dream.equations import reward_shaping, schedules
from dream.equations.advantage_targets import policy_baseline_targets, value_baseline_targets
from dream.equations.importance import corrected_lambda_returns, reach_ratios
from dream.equations.mirror_descent import mirror_descent_policy
from dream.equations.regret_matching import masked_log_softmax, masked_softmax, soft_regret_matching
from dream.equations.returns import lambda_returns
from dream.equations.reward_shaping import ShapingConfig
from dream.equations.sampling import entropy, sample_action
from dream.equations.schedules import Schedule
from dream.networks import Network, make_network, make_policy_network
from dream.networks.fit import adam, fit
from dream.networks.network import Reader, make_reader
from dream.rollout import self_play
from dream.rollout.opponents import (
    PAST_SELF,
    SELF,
    Mixture,
    Seating,
    assign_seats,
    is_learner,
    make_mixture,
    policy_at,
)
from dream.rollout.summary import rollout_metrics
from envs import Game, Policy
from envs.errors import InputError

_HOTTEST = float(np.finfo(np.float32).max)
"""Temperature of uniform play in a policy that is kept: exports hold finite numbers."""


@dataclasses.dataclass(frozen=True)
class MirrorConfig:
    """Settings of mirror descent.

    Attributes:
      eta: step, in 1 / the learner's unit, over iterations.
      alpha: pull towards uniform play, in the learner's unit, over iterations.
    """

    eta: Schedule = schedules.constant(1.0)
    alpha: Schedule = schedules.constant(0.05)


@dataclasses.dataclass(frozen=True)
class DuelingDreamConfig:
    """Settings of the dueling DREAM agent; conf/algo/dueling_dream.yaml says what each does."""

    name: str = "dueling_dream"
    episodes_per_iteration: int = number(8192, 1)
    num_envs: int | None = number(None, 1)
    opponents: tuple[str, ...] = (SELF,)
    shares: tuple[float, ...] | None = number(None, 0)
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
    explorers: str = choice("all", "all", "one")
    correct_exploration: bool = False
    tau: float = number(0.1, 0, 1, above=True)
    target_update_period: int = number(5, 1)
    unit: str = choice("points", "points", "reward")
    advantage_clip: float = number(10.0, 0, above=True)
    max_grad_norm: float = number(1.0, 0, above=True)
    l2: float = number(1e-5, 0)
    initial_scale: float = number(0.01, 0)
    value_weight: float = number(0.5, 0)
    untaken_weight: float = number(1.0, 0)
    actor: str = choice("target", "target", "online")
    baseline: str = choice("value", "value", "policy")
    accumulate: str = choice("none", "none", "mirror_descent")
    mirror: MirrorConfig = MirrorConfig()
    average: AverageConfig = AverageConfig()
    shaping: ShapingConfig = ShapingConfig(form="literal")


class DuelingDreamState(NamedTuple):
    """All that a run needs to go on; an iteration's games are not in it, as every one plays its own.

    Attributes:
      params, target: the network's and its slow copy's.
      optimizer_state: Adam's.
      key: PRNG key.
      iteration: int32, completed iterations.
      average: the average policy; None without one.
    """

    params: Any
    target: Any
    optimizer_state: Any
    key: Array
    iteration: Array
    average: Average | None = None


class ActorOutput(NamedTuple):
    """What the actor outputs besides the action.

    Attributes:
      policy: float16[A], before exploration.
      value: float32.
      ratio: float32, how much likelier the action is under the policy than under what was played; 1 for an opponent's.
      is_learner: bool, whether the learner decided, and no opponent.
    """

    policy: Array
    value: Array
    ratio: Array
    is_learner: Array


class _ActorCarry(NamedTuple):
    """What the actor carries along a game: the network's reader, the player who explores where one does, who plays."""

    reader: Any
    explorer: Array
    seating: Seating


class Example(NamedTuple):
    """One decision to learn from; in a replay every field has a leading axis.

    Attributes:
      view: what the player who decided saw.
      legal: uint8[ceil(A / 8)], packed by jnp.packbits.
      action: int16.
      returns: float32, discounted return to that player, in the learner's unit.
      policy: float16[A], the network's policy then, before exploration.
      weight: float32, its share in the loss: how much likelier the others' earlier actions are without exploration.
      own_reach: float32, the same of the player's own earlier actions.
    """

    view: Any
    legal: Array
    action: Array
    returns: Array
    policy: Array
    weight: Array
    own_reach: Array


class Batch(NamedTuple):
    """A minibatch.

    Attributes:
      inputs: float32[B, n], what the network reads.
      legal: bool[B, A].
      taken: bool[B, A], the action taken.
      targets: float32[B, A], of the advantages.
      returns: float32[B], targets of the value.
      played: float16[B, A], the policy that played.
      weights: float32[B], what each row counts.
    """

    inputs: Array
    legal: Array
    taken: Array
    targets: Array
    returns: Array
    played: Array
    weights: Array


def make(config: DuelingDreamConfig, network: Any, game: Game, resources: Resources) -> Algorithm:
    """Builds the learner.

    Raises:
      InputError: settings that contradict each other, or a wrong network node.
    """
    for name in ("start", "end"):
        if not getattr(config.temperature, name) > 0:
            raise InputError(f"algo.temperature.{name}={getattr(config.temperature, name)} must be more than 0")
    num_envs = self_play.num_envs_for(config.num_envs, config.episodes_per_iteration)
    accumulates = config.accumulate != "none"
    for name in ("eta", "alpha"):
        schedule = getattr(config.mirror, name)
        if accumulates and min(schedule.start, schedule.end) < 0:
            raise InputError(f"algo.mirror.{name}={dataclasses.asdict(schedule)} must not go below 0")
    built = (make_policy_network if accumulates else make_network)(network, game)
    if PAST_SELF in config.opponents:
        raise InputError(f"algo.opponents has {PAST_SELF}, which algo=dueling_dream does not keep; algo=ppo does")
    mixture = make_mixture(config.opponents, config.shares, game, resources.find_player)
    average = AveragePolicy(config.average, game, make_network(network, game)) if config.average.capacity else None
    learner = _DuelingDream(config, game, built, make_reader(game, built), num_envs, average, mixture)
    return Algorithm(learner.init, learner.iterate, learner.policies, calls=learner.calls, traceable=True)


@dataclasses.dataclass(frozen=True, eq=False)
class _DuelingDream(PlayThenFit):
    """The learner; opponents are handed to compiled functions as arguments, so that their arrays are no constants."""

    config: DuelingDreamConfig
    game: Game
    network: Network
    reader: Reader
    num_envs: int
    average: AveragePolicy | None
    mixture: Mixture

    @functools.cached_property
    def optimizer(self) -> optax.GradientTransformation:
        return adam(max_grad_norm=self.config.max_grad_norm, l2=self.config.l2)

    @functools.partial(jax.jit, static_argnums=0)
    def init(self, key: Array) -> DuelingDreamState:
        """Initialises a network and its target, a copy.

        The advantages start near 0: the target's first guesses are what untaken actions are fitted to for long.
        """
        key, network_key = jax.random.split(key)
        average = self.average.init(jax.random.fold_in(network_key, 1)) if self.average else None
        params = dict(self.network.init(network_key))
        for name in self.network.rated_by:
            params[name] = jax.tree.map(lambda x: self.config.initial_scale * x, params[name])
        return DuelingDreamState(params, params, self.optimizer.init(params), key, jnp.int32(0), average)

    def policies(self, state: DuelingDreamState) -> dict[str, Policy]:
        average = {"average": Policy(self.average.play, state.average.params)} if self.average else {}
        temperature = self.config.play_temperature or jnp.minimum(self._temperature(state.iteration), _HOTTEST)
        params = {"network": self._playing(state), "temperature": jnp.float32(temperature)}
        return {"current": Policy(self._play, params), **average}

    def _playing(self, state: DuelingDreamState) -> Any:
        """Returns the parameters of the network that plays and is kept."""
        return state.target if self.config.actor == "target" else state.params

    def _play(self, params: Any, view: Any, legal: Array) -> Array:
        outputs = self.network.apply_inputs(params["network"], self.network.inputs.of_view(view))
        return self._policy(outputs, legal, params["temperature"])

    def _policy(self, outputs: tuple[Array, ...], legal: Array, temperature: Array) -> Array:
        """Returns the policy that the network's outputs mean: float32[..., A]."""
        if self.accumulates:
            return masked_softmax(outputs[2] / temperature, legal)
        return soft_regret_matching(outputs[0], legal, temperature)

    @property
    def accumulates(self) -> bool:
        return self.config.accumulate != "none"

    def _temperature(self, iteration: Array) -> Array:
        """Returns the temperature of self-play: infinite at first, then as scheduled; of a policy head it is 1."""
        later = jnp.float32(1.0) if self.accumulates else schedules.at(self.config.temperature, iteration)
        return jnp.where(iteration < self.config.uniform_iterations, jnp.inf, later)

    def play_arguments(self, state: DuelingDreamState) -> tuple[Any, ...]:
        """As of `PlayThenFit`."""
        return state, self.mixture.players

    @functools.partial(jax.jit, static_argnums=0)
    def generate(
        self, state: DuelingDreamState, players: tuple[Policy, ...] = ()
    ) -> tuple[Replay, dict[str, Array], Counters]:
        """Plays an iteration's games and turns them into examples; returns metrics and counters with them."""
        key, _ = self._keys(state)
        temperature = self._temperature(state.iteration)
        actor = self._actor(self._playing(state), temperature, self.mixture._replace(players=players))
        games = self.config.episodes_per_iteration
        record = self_play.play(self.game, actor, key, games=games, num_envs=self.num_envs)
        scale = schedules.at(self.config.shaping.scale, state.iteration)
        returns, own_reach, weights = self._returns(record, scale)
        d = record.decisions
        examples = Example(d.view, d.legal, d.action, returns, d.extras.policy, weights, own_reach)
        moves, dealt = jnp.sum(record.valid), record.results["games"]
        learned = record.valid & d.extras.is_learner
        metrics = rollout_metrics(
            self.game, results=record.results, moves=moves, learned=learned, phase=d.phase, returns=returns,
            values=d.extras.value, entropies=entropy(d.extras.policy.astype(jnp.float32)),
        )  # fmt: skip
        metrics |= {"temperature": temperature, "shaping_scale": scale}
        counters = Counters(
            episodes=dealt, decisions=jnp.sum(learned), nodes=moves, transitions=moves + dealt, network_rows=moves
        )
        return collect(examples, learned), metrics, counters

    def _keys(self, state: DuelingDreamState) -> Array:
        return jax.random.split(jax.random.fold_in(state.key, state.iteration))

    def _actor(self, params: Any, temperature: Array, mixture: Mixture) -> self_play.Actor:
        weights, explore = self.reader.prepare(params), self.config.exploration

        def start(key: Array) -> _ActorCarry:
            explorer = jax.random.randint(jax.random.fold_in(key, 0), (), 0, self.game.num_players)
            return _ActorCarry(self.reader.start(), explorer, assign_seats(mixture, self.game.num_players, key))

        def act(
            carry: _ActorCarry, view: Any, legal: Array, player: Array, key: Array
        ) -> tuple[Array, _ActorCarry, ActorOutput]:
            outputs, read = self.reader.read(weights, carry.reader, view, player)
            policy = self._policy(outputs, legal, temperature)
            even = legal / jnp.maximum(jnp.sum(legal), 1)  # not `uniform`: its order of sums changes the last bits
            share = explore if self.config.explorers == "all" else jnp.where(player == carry.explorer, explore, 0.0)
            behaviour = (1 - share) * policy + share * even if explore else policy
            learns = is_learner(carry.seating, player)
            action = sample_action(key, policy_at(mixture, carry.seating, player, behaviour, view, legal))
            ratio = jnp.where(learns, policy[action] / behaviour[action], 1.0) if explore else jnp.float32(1)
            output = ActorOutput(policy.astype(jnp.float16), outputs[1], ratio, learns)
            return action, carry._replace(reader=read), output

        return self_play.Actor(start, act)

    def _returns(self, record: self_play.Record, scale: Array) -> tuple[Array, Array, Array]:
        """Returns each decision's training return to the player who took it, and the own and the others' reach ratio.

        All float32[T, lanes], the return discounted, in the unit. Without a correction the ratios are 1.
        """
        config, d = self.config, record.decisions
        rewards = reward_shaping.training_rewards(
            config.shaping, d.rewards, d.potentials, d.done,
            unit=self.game.reward_scale, scale=scale, discount=config.discount,
        )  # fmt: skip
        rewards *= self.game.reward_scale if config.unit == "points" else 1.0
        ends = d.done | ~record.valid
        options = {"discount": config.discount, "gae_lambda": config.gae_lambda}
        if not config.correct_exploration:
            stream = functools.partial(lambda_returns, **options)
            returns = jax.vmap(stream, in_axes=1, out_axes=1)(rewards, ends, d.player, d.extras.value)
            return returns, jnp.ones_like(returns), jnp.ones_like(returns)
        ratio = jnp.where(record.valid, d.extras.ratio, 1.0)
        stream = functools.partial(corrected_lambda_returns, **options)
        returns = jax.vmap(stream, in_axes=1, out_axes=1)(rewards, ends, d.player, d.extras.value, ratio)
        reach = functools.partial(reach_ratios, num_players=self.game.num_players)
        return returns, *jax.vmap(reach, in_axes=1, out_axes=1)(ratio, ends, d.player)

    @functools.partial(jax.jit, static_argnums=0)
    def learn(self, state: DuelingDreamState, replay: Replay) -> tuple[DuelingDreamState, dict[str, Array], Counters]:
        """Fits the network to the examples and moves the target network; returns state, metrics and counters."""
        config = self.config
        _, key = self._keys(state)
        if config.epoch_unit == "passes":
            steps = config.epochs * batches_per_pass(replay, config.batch_size)
        else:
            steps = jnp.int32(config.epochs)

        def batch(n: Array) -> Batch:
            if config.epoch_unit == "passes":
                rows = nth_of_passes(replay, key, n, config.batch_size)
            else:
                rows = sample(replay, jax.random.fold_in(key, n), config.batch_size)
            return self._with_targets(state, rows)

        learning_rate = config.learning_rate * schedules.at(config.learning_rate_decay, state.iteration)
        mirror = {name: schedules.at(getattr(config.mirror, name), state.iteration) for name in ("eta", "alpha")}
        params, optimizer_state, metrics = fit(
            functools.partial(self._loss, **mirror), self.optimizer, state.params, state.optimizer_state, batch,
            learning_rate=learning_rate, steps=steps,
        )  # fmt: skip
        drift = jax.tree.map(jnp.subtract, params, state.target)
        metrics["target_drift"] = optax.tree.norm(drift) / optax.tree.norm(params)
        iteration = state.iteration + 1
        rate = jnp.where(iteration % config.target_update_period == 0, config.tau, 0.0)
        target = optax.incremental_update(params, state.target, rate)
        average, averaged, more = self._averaged(state, replay, jax.random.fold_in(key, steps))
        after = DuelingDreamState(params, target, optimizer_state, state.key, iteration, average)
        reads = 3 if config.baseline == "value" else 2  # of a row: the fit's, the target network's, the value's
        counters = Counters(gradient_steps=steps, network_rows=reads * steps * config.batch_size)
        metrics |= {"learning_rate": learning_rate, **(mirror if self.accumulates else {}), **averaged}
        return after, metrics, counters + more

    def _averaged(
        self, state: DuelingDreamState, replay: Replay, key: Array
    ) -> tuple[Average | None, dict[str, Array], Counters]:
        """Returns the average policy with an iteration's decisions, metrics and counters; `key` is consumed."""
        if self.average is None:
            return None, {}, Counters()
        held = replay.rows
        rows = Played(held.view, held.legal, held.policy, held.own_reach)
        rows = jax.tree.map(lambda x: x[replay.index], rows)
        valid = np.arange(replay.index.shape[0]) < replay.count
        decay = schedules.at(self.config.learning_rate_decay, state.iteration)
        average, loss = self.average.update(state.average, rows, valid, state.iteration, key, decay=decay)
        return average, {"loss_average": loss}, self.average.counters

    def _with_targets(self, state: DuelingDreamState, rows: Example) -> Batch:
        """Returns a minibatch with its targets, by the networks of the iteration's start."""
        legal = jnp.unpackbits(rows.legal, axis=-1, count=self.game.num_actions).astype(bool)
        x = jax.vmap(self.network.inputs.of_view)(rows.view)
        advantages, value = self.network.apply_inputs(state.target, x)[:2]
        action, clip = rows.action.astype(jnp.int32), self.config.advantage_clip
        if self.config.baseline == "value":
            value = self.network.apply_inputs(state.params, x)[1]
            rule = jax.vmap(functools.partial(value_baseline_targets, clip=clip))
            targets = rule(advantages, value, action, rows.returns, legal)
        else:
            rule = jax.vmap(functools.partial(policy_baseline_targets, clip=clip))
            targets = rule(advantages, value, action, rows.returns, rows.policy.astype(jnp.float32), legal)
        taken = jax.nn.one_hot(rows.action, self.game.num_actions, dtype=bool)
        return lax.stop_gradient(Batch(x, legal, taken, targets, rows.returns, rows.policy, rows.weight))

    def _loss(self, params: Any, batch: Batch, *, eta: Any = 0.0, alpha: Any = 0.0) -> tuple[Array, dict[str, Array]]:
        """Returns MSE of the advantages over legal actions + value_weight * MSE of the value, + KL of a policy head."""
        x, legal, taken, targets, returns, played, counts = batch
        outputs = self.network.apply_inputs(params, x)
        advantages, value = outputs[:2]
        weights = jnp.where(legal, jnp.where(taken, 1.0, self.config.untaken_weight), 0.0)
        if self.config.correct_exploration:
            weights *= counts[:, None]
        advantage_loss = jnp.sum(weights * (advantages - targets) ** 2) / jnp.sum(weights)
        value_loss = self._mean((value - returns) ** 2, counts)
        total = advantage_loss + self.config.value_weight * value_loss
        count = jnp.sum(legal)
        metrics = {
            "loss": total,
            "loss_advantage": advantage_loss,
            "loss_value": value_loss,
            "target_rms": jnp.sqrt(jnp.sum(jnp.where(legal, targets, 0.0) ** 2) / count),
            "advantage_rms": jnp.sqrt(jnp.sum(jnp.where(legal, advantages, 0.0) ** 2) / count),
            "target_clipped": jnp.sum(legal & (jnp.abs(targets) >= self.config.advantage_clip)) / count,
        }
        if not self.accumulates:
            return total, metrics
        goal = mirror_descent_policy(played, lax.stop_gradient(advantages), legal, eta=eta, alpha=alpha)
        loss_policy = self._mean(_cross_entropy(goal, outputs[2], legal) - entropy(goal), counts)
        return total + loss_policy, metrics | {"loss": total + loss_policy, "loss_policy": loss_policy}

    def _mean(self, values: Array, counts: Array) -> Array:
        """Returns the mean over rows, each counting what it does where exploration is corrected: float32."""
        return jnp.mean(counts * values if self.config.correct_exploration else values)


def _cross_entropy(goal: Array, logits: Array, legal: Array) -> Array:
    """Returns -sum over legal a of goal(a) log softmax(logits)(a): float32[...]."""
    return -jnp.sum(jnp.where(legal, goal * masked_log_softmax(logits, legal), 0.0), axis=-1)
