"""Proximal policy optimisation on any Game, in self-play, against fixed opponents, or a mixture of both.

Each iteration plays; with G the lambda-return of the player who decided and V the value predicted then,

    A = (G - V), normalised over the minibatch,    rho = pi(a) / pi_then(a),
    loss = -mean min(rho A, clip(rho, 1 - c, 1 + c) A) + w_v mean (V - G)^2 - w_e mean entropy(pi)
           + w_a mean (predicted - game.auxiliary)^2, the last where the network has such a head.

The entropy bonus is one of several regularisers of the policy (regularisation.py); `make_regularised` takes any.

pi is the softmax of the network's advantage head over legal actions, so that the network is the same as that of the
other learners.
Sources: Schulman et al. 2017, eq. 7 and 9; Schulman et al. 2016 (GAE), whose advantage is G - V here; with
`advantage=expected_sarsa` A and G come from a centralised critic instead (dream/algorithms/critic.py). With an
objective over all actions `exploration` mixes uniform play into the games, and the reach ratio of the other players
weights all terms; `optimism` adds the critic's change over past iterations to A.
Iterations consist of whole games (whole_games.py), so that no return is truncated and bootstrapped; or, with
`rollout_length`, of that many decisions of the learner in every game against fixed players (rollouts.py).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

import envs
from dream.algorithms.counters import Counters
from dream.algorithms.critic import Critic
from dream.algorithms.play_then_fit import PlayThenFit
from dream.algorithms.ppo.loss import Example, make_loss
from dream.algorithms.ppo.parts import Generated, Parts
from dream.algorithms.ppo.regularisation import Regulariser, entropy_bonus
from dream.algorithms.ppo.rollouts import make_rollouts, play_rollouts
from dream.algorithms.ppo.settings import PpoConfig, checked_num_envs
from dream.algorithms.ppo.whole_games import play_games
from dream.algorithms.types import Algorithm, Resources, Value
from dream.buffers.replay import Replay, batches_per_pass, nth_of_passes
from dream.compiled.options import jit_brief
from dream.equations import schedules
from dream.equations.reward_shaping import shaping_at
from dream.networks import Network, make_history_network, make_network
from dream.networks.fit import adam, fit
from dream.networks.network import make_reader
from dream.networks.policy import ValuedPolicy, logits_params
from dream.rollout import policy_pool
from dream.rollout.opponents import Mixture, make_mixture
from envs import Game, InputError, Policy
from envs.errors import naming


class PpoState(NamedTuple):
    """All that a run needs to go on.

    Attributes:
      params, optimizer_state: of the network.
      key: not consumed; an iteration's keys follow from it and `iteration`.
      iteration: int32, completed ones.
      lanes: games under way; () where iterations hold whole games.
      pool: PolicyPool of past parameters; () where no past self plays.
      magnet: what the regulariser carries; () for an entropy bonus.
      values: of the critic; () without one.
      average: moving average of the parameters; () where none is kept.
      share: float32, of the run's budget that is spent; () where no schedule follows it.
    """

    params: Any
    optimizer_state: Any
    key: Array
    iteration: Array
    lanes: Any = ()
    pool: Any = ()
    magnet: Any = ()
    values: Any = ()
    average: Any = ()
    share: Any = ()


def make(config: PpoConfig, network: Any, game: Game, resources: Resources) -> Algorithm:
    """Builds the learner.

    Raises:
      InputError: settings that contradict each other, an unknown opponent, or a wrong network node.
    """
    return make_regularised(
        config, network, game, resources, lambda built: entropy_bonus(config.entropy_weight, config.entropy_decay)
    )


def make_regularised(
    config: PpoConfig,
    network: Any,
    game: Game,
    resources: Resources,
    regulariser: Callable[[Network], Regulariser],
) -> Algorithm:
    """Builds the learner with a regulariser of its network in the place of the entropy bonus.

    Raises:
      InputError: settings that contradict each other, an unknown opponent, or a wrong network node.
    """
    mixture = make_mixture(config.opponents, config.shares, game, resources.find_player)
    mixture = mixture._replace(opponent_id_prob=config.opponent_id_prob)
    with naming("algo.start_from"):
        start = None if config.start_from is None else resources.find_player(config.start_from, game)
    return _make(config, network, game, mixture, regulariser, start)


def make_against(config: PpoConfig, network: Any, game: Game, mixture: Mixture) -> Algorithm:
    """Builds the learner against given opponents; `network` is a node or a built Network.

    Raises:
      InputError: settings that contradict each other, `start_from`, an unknown assistant, or a wrong network node.
    """
    if config.start_from is not None:
        raise InputError(
            f"algo.start_from={config.start_from} has no effect here; a best response starts from best_response.start"
        )
    return _make(
        config, network, game, mixture, lambda built: entropy_bonus(config.entropy_weight, config.entropy_decay)
    )


def _make(
    config: PpoConfig,
    network: Any,
    game: Game,
    mixture: Mixture,
    regulariser: Callable[[Network], Regulariser],
    start: Policy | None = None,
) -> Algorithm:
    built = network if isinstance(network, Network) else make_network(network, game)
    num_envs = checked_num_envs(config, game, mixture)
    assistant = None if config.assistant is None else envs.make_assistant(config.assistant, game)
    critic = None
    if config.advantage == "expected_sarsa":
        history = make_history_network(network, game)
        critic = Critic(
            config.critic, history, game, config.discount, config.gae_lambda, config.correction_clip,
            optimism=config.optimism, slow_tau=config.slow_tau,
        )  # fmt: skip
    parts = Parts(config, game, built, make_reader(game, built), mixture, num_envs, assistant, critic)
    learner = _Ppo(parts, regulariser(built), None if start is None else _params_of(start, built, config.start_from))
    return Algorithm(
        learner.init, learner.iterate, learner.policies, learner.value, learner.calls, traceable=True,
        with_share=schedules.share_setter(config),
    )  # fmt: skip


def _params_of(player: Policy, network: Network, name: str) -> Any:
    """Returns the parameters of a player's network; raises InputError where they are not those of this network."""
    found, wanted = logits_params(player), jax.eval_shape(network.init, jax.random.key(0))
    if found is None:
        raise InputError(
            f"algo.start_from={name} does not play by the softmax of one network; it must be a run or an export of "
            "ppo, mmd or behaviour_cloning"
        )
    shapes = [{jax.tree_util.keystr(path): tuple(x.shape) for path, x in jax.tree.leaves_with_path(tree)}
              for tree in (found, wanted)]  # fmt: skip
    if shapes[0] != shapes[1]:
        other = next(key for key in {**shapes[1], **shapes[0]} if shapes[0].get(key) != shapes[1].get(key))
        raise InputError(
            f"algo.start_from={name} has another network: {other} is {shapes[0].get(other, 'missing')} there and "
            f"{shapes[1].get(other, 'missing')} here; give the network's settings it was trained with"
        )
    return jax.tree.map(jnp.asarray, found)


@dataclasses.dataclass(frozen=True, eq=False)
class _Ppo(PlayThenFit):
    """The learner; `players` are handed to compiled functions as arguments, so that their arrays are no constants.

    Attributes:
      parts: what it is made of.
      regulariser: of its policy.
      start: parameters to start from; None: the network's own initial ones.
    """

    parts: Parts
    regulariser: Regulariser
    start: Any = None

    @property
    def game(self) -> Game:
        return self.parts.game

    @functools.cached_property
    def optimizer(self) -> optax.GradientTransformation:
        return adam(max_grad_norm=self.parts.config.max_grad_norm, l2=0.0, epsilon=self.parts.config.adam_epsilon)

    def init(self, key: Array) -> PpoState:
        """Initialises a network, and deals where games go on from one iteration to the next."""
        return self._init(key, self.start)

    @jit_brief(lambda learner: learner.game, static_argnums=0)
    def _init(self, key: Array, start: Any) -> PpoState:
        parts = self.parts
        key, network_key, lanes_key, critic_key = jax.random.split(key, 4)
        params = parts.network.init(network_key) if start is None else start
        pool = policy_pool.make_pool(params, parts.config.pool_size) if parts.mixture.past_selves else ()
        magnet = self.regulariser.init(params)
        values = () if parts.critic is None else parts.critic.init(critic_key)
        average = () if parts.config.average_tau is None else jax.tree.map(jnp.copy, params)
        state = PpoState(
            params, self.optimizer.init(params), key, jnp.int32(0), pool=pool, magnet=magnet, values=values,
            average=average, share=schedules.share_of(parts.config),
        )  # fmt: skip
        if parts.config.rollout_length is None:
            return state
        rollouts = make_rollouts(parts, parts.mixture)  # nobody plays yet
        return state._replace(lanes=rollouts.start(lanes_key, parts.num_envs))

    def _opponents(self, state: PpoState, players: tuple[Policy | None, ...]) -> Mixture:
        """Returns the mixture of an iteration, one past self put in."""
        mixture = self.parts.mixture._replace(players=players)
        if not mixture.past_selves:
            return mixture
        # A third key, next to the two that `_keys` splits off.
        key = jax.random.fold_in(jax.random.fold_in(state.key, state.iteration), 2)
        past = policy_pool.sample(state.pool, key)
        return mixture.with_past_self(Policy(self.parts.play, {"network": past, "temperature": jnp.float32(1.0)}))

    def play_arguments(self, state: PpoState) -> tuple[Any, ...]:
        return state, self.parts.mixture.players

    def fit_arguments(self, state: PpoState, played: Generated) -> tuple[Any, ...]:
        return state._replace(lanes=played.lanes, values=played.values), played.replay

    def policies(self, state: PpoState) -> dict[str, Policy]:
        temperature = self.parts.config.play_temperature or 1.0
        value = self.parts.value if self.parts.learns_rewards(state.iteration) else None
        bonus = self.parts.bonus(state.iteration)
        networks = {"current": state.params} | ({} if state.average == () else {"average": state.average})
        return {
            name: ValuedPolicy(
                self.parts.play,
                {"network": network, "temperature": jnp.float32(temperature)},
                value=value,
                win_bonus=bonus,
            )
            for name, network in networks.items()
        }

    def value(self, state: PpoState) -> Value:
        return Value(self._value, state.params)

    def _value(self, params: Any, view: Any) -> Array:
        network = self.parts.network
        return network.apply_inputs(params, network.inputs.of_view(view))[1]

    def _keys(self, state: PpoState) -> Array:
        return jax.random.split(jax.random.fold_in(state.key, state.iteration))

    @functools.partial(jax.jit, static_argnums=0)
    def generate(
        self, state: PpoState, players: tuple[Policy | None, ...]
    ) -> tuple[Generated, dict[str, Array], Counters]:
        """Plays an iteration's games and turns the learner's decisions into examples; metrics and counters too."""
        config, (key, _) = self.parts.config, self._keys(state)
        mixture = self._opponents(state, players)
        shaping = shaping_at(config.shaping, state.iteration, state.share)
        if config.rollout_length is None:
            return play_games(self.parts, state.params, state.values, mixture, key, shaping)
        generated, metrics, counters = play_rollouts(self.parts, state.params, state.lanes, mixture, key, shaping)
        first_deals = jnp.where(state.iteration == 0, self.parts.num_envs, 0)  # `init` dealt them
        return generated, metrics, counters + Counters(transitions=first_deals)

    @functools.partial(jax.jit, static_argnums=0)
    def learn(self, state: PpoState, replay: Replay) -> tuple[PpoState, dict[str, Array], Counters]:
        """Fits the network to the examples, `epochs` passes over them; returns state, metrics and counters."""
        config, (_, key) = self.parts.config, self._keys(state)
        steps = config.epochs * batches_per_pass(replay, config.batch_size)
        at = functools.partial(schedules.at, iteration=state.iteration, share=state.share)
        learning_rate = config.learning_rate * at(config.learning_rate_decay)

        def batch(n: Array) -> Example:
            return nth_of_passes(replay, key, n, config.batch_size)

        params, optimizer_state, metrics = fit(
            make_loss(
                config,
                self.parts.network,
                self.parts.game.num_actions,
                functools.partial(self.regulariser.penalty, state.magnet, at),
            ),
            self.optimizer,
            state.params,
            state.optimizer_state,
            batch,
            learning_rate=learning_rate,
            steps=steps,
        )
        done, pool = state.iteration + 1, state.pool
        if self.parts.mixture.past_selves:
            pool = policy_pool.add(pool, params, done % config.pool_every == 0)
        magnet = self.regulariser.update(state.magnet, params)
        average = state.average
        if config.average_tau is not None:
            average = optax.incremental_update(params, average, config.average_tau)
        after = state._replace(
            params=params, optimizer_state=optimizer_state, iteration=done, pool=pool, magnet=magnet, average=average
        )
        counters = Counters(gradient_steps=steps, network_rows=config.epochs * replay.count * self.regulariser.networks)
        return after, metrics | {"learning_rate": learning_rate}, counters
