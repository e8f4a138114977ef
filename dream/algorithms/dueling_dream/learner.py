"""The dueling DREAM agent: self-play, soft regret matching, and a dueling network fitted to one-sample advantages.

Each iteration plays new games with the target network, a slowly moving copy of the online network, computes targets
with it, and fits the online network to them.

accumulate: none            as in the document: the policy is soft regret matching on the current advantages. No regret
                            is accumulated and no policy averaged, so play cycles where an equilibrium is mixed.
accumulate: mirror_descent  a third head holds the policy, the softmax of its logits. It is fitted to one step of mirror
                            descent from the policy that played, softmax of (log pi + eta q) / (1 + eta alpha), with
                            q the advantages of the online network. The steps accumulate in this head.
Sources: the DREAM document, with deviations as settings whose defaults are its values. Mirror descent:
dream/equations/mirror_descent.py; fitting a head to it is this project's.

With `advantage: expected_sarsa` targets for all actions come from a critic that sees all hands in training
(dream/algorithms/critic.py), instead of one sampled return per decision.

With `opponents` a share of the games is against fixed players; only the learner's decisions in them are learned from.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from dream.algorithms.average_policy import Average, AveragePolicy, Played
from dream.algorithms.counters import Counters
from dream.algorithms.critic import Critic, check_critic
from dream.algorithms.dueling_dream import settings
from dream.algorithms.dueling_dream.games import play_games
from dream.algorithms.dueling_dream.loss import Batch, dueling_loss, with_targets
from dream.algorithms.dueling_dream.parts import Generated, Parts
from dream.algorithms.dueling_dream.settings import DuelingDreamConfig
from dream.algorithms.play_then_fit import PlayThenFit
from dream.algorithms.types import Algorithm, Resources
from dream.buffers.replay import Replay, batches_per_pass, nth_of_passes, sample
from dream.equations import schedules
from dream.equations.reward_shaping import check_tie_penalty, check_win_bonus, shaping_at
from dream.networks import make_history_network, make_network, make_policy_network
from dream.networks.fit import adam, fit
from dream.networks.network import make_reader
from dream.rollout.opponents import make_mixture
from dream.rollout.self_play import num_envs_for
from envs import Game, Policy

_HOTTEST = float(np.finfo(np.float32).max)
"""Temperature of uniform play in a policy that is kept: exports hold finite numbers."""


class DuelingDreamState(NamedTuple):
    """All that a run needs to go on; one iteration's games are not in it, as every one plays its own.

    Attributes:
      params, target: the network's and its slow copy's.
      optimizer_state: Adam's.
      key: PRNG key.
      iteration: int32, completed iterations.
      average: the average policy; None without one.
      values: of the critic; () without one.
      share: float32, of the run's budget that is spent; () where no schedule follows it.
    """

    params: Any
    target: Any
    optimizer_state: Any
    key: Array
    iteration: Array
    average: Average | None = None
    values: Any = ()
    share: Any = ()


def make(config: DuelingDreamConfig, network: Any, game: Game, resources: Resources) -> Algorithm:
    """Builds the learner.

    Raises:
      InputError: settings that contradict each other, or a wrong network node.
    """
    settings.check(config)
    check_win_bonus(config.shaping, game)
    check_tie_penalty(config.shaping, game)
    num_envs = num_envs_for(config.num_envs, config.episodes_per_iteration)
    built = (make_policy_network if config.accumulates else make_network)(network, game)
    mixture = make_mixture(config.opponents, config.shares, game, resources.find_player)
    average = AveragePolicy(config.average, game, make_network(network, game)) if config.average.capacity else None
    critic = None
    if config.advantage == "expected_sarsa":
        check_critic(config.critic, config.shaping, game, mixture, config.discount, {})
        history = make_history_network(network, game)
        critic = Critic(config.critic, history, game, config.discount, config.gae_lambda, config.correction_clip)
    learner = _DuelingDream(Parts(config, game, built, make_reader(game, built), mixture, num_envs, critic), average)
    return Algorithm(
        learner.init, learner.iterate, learner.policies, calls=learner.calls, traceable=True,
        with_share=schedules.share_setter(config),
    )  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False)
class _DuelingDream(PlayThenFit):
    """The learner; opponents are handed to compiled functions as arguments, so that their arrays are no constants.

    Attributes:
      parts: what it is made of.
      average: of its policies, where one is kept.
    """

    parts: Parts
    average: AveragePolicy | None

    @property
    def game(self) -> Game:
        return self.parts.game

    @functools.cached_property
    def optimizer(self) -> optax.GradientTransformation:
        config = self.parts.config
        return adam(max_grad_norm=config.max_grad_norm, l2=config.l2)

    @functools.partial(jax.jit, static_argnums=0)
    def init(self, key: Array) -> DuelingDreamState:
        """Initialises a network and its target, a copy.

        The advantages start near 0: the target's first guesses are what untaken actions are fitted to for long.
        """
        key, network_key, average_key, critic_key = jax.random.split(key, 4)
        average = self.average.init(average_key) if self.average else None
        params = dict(self.parts.network.init(network_key))
        for name in self.parts.network.rated_by:
            params[name] = jax.tree.map(lambda x: self.parts.config.initial_scale * x, params[name])
        critic = self.parts.critic
        values = () if critic is None else critic.init(critic_key)
        share = schedules.share_of(self.parts.config)
        return DuelingDreamState(params, params, self.optimizer.init(params), key, jnp.int32(0), average, values, share)

    def policies(self, state: DuelingDreamState) -> dict[str, Policy]:
        average = {"average": Policy(self.average.play, state.average.params)} if self.average else {}
        parts = self.parts
        temperature = parts.config.play_temperature or jnp.minimum(
            parts.temperature(state.iteration, state.share), _HOTTEST
        )
        params = {"network": self._playing(state), "temperature": jnp.float32(temperature)}
        return {"current": Policy(parts.play, params), **average}

    def _playing(self, state: DuelingDreamState) -> Any:
        """Returns the parameters of the network that plays and is kept."""
        return state.target if self.parts.config.actor == "target" else state.params

    def play_arguments(self, state: DuelingDreamState) -> tuple[Any, ...]:
        """As of `PlayThenFit`."""
        return state, self.parts.mixture.players

    def fit_arguments(self, state: DuelingDreamState, played: Generated) -> tuple[Any, ...]:
        """As of `PlayThenFit`."""
        return state._replace(values=played.values), played.replay

    @functools.partial(jax.jit, static_argnums=0)
    def generate(
        self, state: DuelingDreamState, players: tuple[Policy, ...] = ()
    ) -> tuple[Generated, dict[str, Array], Counters]:
        """Plays one iteration's games and turns them into examples; returns metrics and counters with them."""
        parts, (key, _) = self.parts, self._keys(state)
        return play_games(
            parts, self._playing(state), state.values, parts.mixture._replace(players=players), key,
            temperature=parts.temperature(state.iteration, state.share),
            shaping=shaping_at(parts.config.shaping, state.iteration, state.share),
        )  # fmt: skip

    def _keys(self, state: DuelingDreamState) -> Array:
        return jax.random.split(jax.random.fold_in(state.key, state.iteration))

    @functools.partial(jax.jit, static_argnums=0)
    def learn(self, state: DuelingDreamState, replay: Replay) -> tuple[DuelingDreamState, dict[str, Array], Counters]:
        """Fits the network to the examples and moves the target network; returns state, metrics and counters."""
        config, (_, key) = self.parts.config, self._keys(state)
        if config.epoch_unit == "passes":
            steps, read = config.epochs * batches_per_pass(replay, config.batch_size), config.epochs * replay.count
        else:
            steps, read = jnp.int32(config.epochs), config.epochs * config.batch_size

        def batch(n: Array) -> Batch:
            if config.epoch_unit == "passes":
                rows = nth_of_passes(replay, key, n, config.batch_size)
            else:
                rows = sample(replay, jax.random.fold_in(key, n), config.batch_size)
            return with_targets(self.parts, state.params, state.target, rows)

        at = functools.partial(schedules.at, iteration=state.iteration, share=state.share)
        learning_rate = config.learning_rate * at(config.learning_rate_decay)
        mirror = {name: at(getattr(config.mirror, name)) for name in ("eta", "alpha")}
        params, optimizer_state, metrics = fit(
            functools.partial(dueling_loss, self.parts, **mirror), self.optimizer, state.params, state.optimizer_state,
            batch, learning_rate=learning_rate, steps=steps,
        )  # fmt: skip
        drift = jax.tree.map(jnp.subtract, params, state.target)
        metrics["target_drift"] = optax.tree.norm(drift) / optax.tree.norm(params)
        iteration = state.iteration + 1
        rate = jnp.where(iteration % config.target_update_period == 0, config.tau, 0.0)
        target = optax.incremental_update(params, state.target, rate)
        average, averaged, more = self._averaged(state, replay, jax.random.fold_in(key, steps))
        after = DuelingDreamState(
            params, target, optimizer_state, state.key, iteration, average, state.values, state.share
        )
        counters = Counters(gradient_steps=steps, network_rows=self.parts.reads * read)
        metrics |= {"learning_rate": learning_rate, **(mirror if config.accumulates else {}), **averaged}
        return after, metrics, counters + more

    def _averaged(
        self, state: DuelingDreamState, replay: Replay, key: Array
    ) -> tuple[Average | None, dict[str, Array], Counters]:
        """Returns the average policy with one iteration's decisions, metrics and counters; `key` is consumed."""
        if self.average is None:
            return None, {}, Counters()
        held = replay.rows
        rows = Played(held.view, held.legal, held.policy, held.own_reach)
        rows = jax.tree.map(lambda x: x[replay.index], rows)
        valid = np.arange(replay.index.shape[0]) < replay.count
        decay = schedules.at(self.parts.config.learning_rate_decay, state.iteration, state.share)
        average, loss = self.average.update(state.average, rows, valid, state.iteration, key, decay=decay)
        return average, {"loss_average": loss}, self.average.counters
