"""What the deep regret minimisers share: an iteration of sampling, storing, fitting and averaging for each player.

At iteration t = 1, 2, ... and for each player p in turn, with the newest policies of both players:
  1. games are sampled for p's regrets; an exact average takes p's policy with weight t^average.power;
  2. the samples are added to p's buffer; for a fitted average the opponent's policy at its decisions is added to the
     opponent's buffer with that weight. Player 0 is fitted first, so that its policy of iteration t + 1 has weight t
     there and its first one is left out, as in Algorithm 1 of Deep CFR;
  3. p's regret network is fitted to p's buffer; regret matching on its output is p's new policy.
Then the history value function, if there is one, learns from the moves of the games.
The file of each algorithm lists its components, recipe.py compares their choices, and the configuration of each
algorithm holds the values of its paper.
Sources: Brown et al. 2019, "Deep counterfactual regret minimization"; Steinberger 2019, "Single deep CFR"; Steinberger,
Lerer and Brown 2020, "DREAM".
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Generator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dream.algorithms.counters import Counters
from dream.algorithms.deep import history_values
from dream.algorithms.deep.average import NetworkAverage, plans_with
from dream.algorithms.deep.history_values import ValueState
from dream.algorithms.deep.recipe import CumulativeTarget, Recipe, make_recipe
from dream.algorithms.deep.regret_fit import PlayerNetwork, RegretFit
from dream.algorithms.deep.regret_networks import own_policy
from dream.algorithms.deep.samplers import ExternalSampler, OutcomeSampler, PolicyOf, Sampled
from dream.algorithms.deep.settings import DeepConfig
from dream.algorithms.deep.state import (
    AverageNetworks,
    DeepState,
    RegretNetworks,
    params_of,
    row_shapes,
    transition_shapes,
    with_params,
    with_player,
)
from dream.algorithms.types import Algorithm, Metrics, Resources
from dream.buffers import reservoir
from dream.buffers.reservoir import ReservoirBuffer
from dream.compiled.bounded import BoundedCalls, in_one_call, whole
from dream.game_tree.tabular_policy import normalised, table_index, table_policy
from dream.game_tree.tree import Tree
from dream.networks import Network, make_history_network, make_network
from dream.rollout.self_play import num_envs_for
from envs import Game, Policy

_SAMPLE, _FIT, _VALUES, _AVERAGE, _STRATEGY, _MOVES = 0, 2, 4, 5, 6, 8
"""Numbers of an iteration's keys; player 1 takes the next number where both players have one."""


def make(
    config: DeepConfig,
    network: Any,
    game: Game,
    resources: Resources,
    *,
    cumulative_target: CumulativeTarget | None = None,
) -> Algorithm:
    """Builds a deep regret minimiser.

    Args:
      config: of the algorithm; its class decides how games are sampled (see recipe.py).
      network: the node of the regret network, which the others take their shape from.
      game: for two players.
      resources: finds the tree.
      cumulative_target: see Recipe.
    Raises:
      InputError: settings, network and game that do not fit.
    """
    recipe = make_recipe(config, game, cumulative_target=cumulative_target)
    built = make_network(network, game)
    history = make_history_network(network, game) if recipe.history_values else None
    learner = _Deep(config, recipe, game, built, history, resources)
    settle = None if recipe.exact_average else learner.settle
    return Algorithm(
        learner.init, learner.iterate, learner.policies, calls=learner.calls, settle=settle,
        traceable=not (recipe.exact_average or recipe.infoset_sums),
    )  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False)
class _Deep:
    """The learner.

    Attributes:
      config: settings, of the algorithm's own class.
      recipe: its choices.
      game: what is played.
      network: of regrets, and of the average where that is a network.
      history: of the history value function; None without one.
      resources: finds the tree.
    """

    config: DeepConfig
    recipe: Recipe
    game: Game
    network: Network
    history: Network | None
    resources: Resources

    @functools.cached_property
    def tree(self) -> Tree:
        return self.resources.find_tree(self.game)

    @functools.cached_property
    def index(self) -> dict[str, np.ndarray]:
        return table_index(self.tree)

    @functools.cached_property
    def regret_fit(self) -> RegretFit:
        return RegretFit(self.config, self.recipe, self.network, self.game.num_actions, lambda: (self.tree, self.index))

    @functools.cached_property
    def network_average(self) -> NetworkAverage:
        return NetworkAverage(self.config, self.network)

    @functools.cached_property
    def sampler(self) -> OutcomeSampler | ExternalSampler:
        config = self.config
        if not self.recipe.outcome_sampling:
            return ExternalSampler(self.tree, config.traversals, config.weights, config.average.weights)
        return OutcomeSampler(
            self.game,
            config.traversals,
            num_envs_for(config.num_envs, config.traversals, "traversals"),
            config.exploration,
            config.weights,
            config.average.weights,
            correction=self.recipe.correction,
            chance_in_baseline=self.recipe.chance_in_baseline,
            shaping=config.shaping if config.is_shaped else None,
        )

    @functools.cached_property
    def _sample_calls(self) -> BoundedCalls:
        return BoundedCalls.of(self._sample_outcomes, game=self.game)

    @functools.cached_property
    def _regret_fit_calls(self) -> Callable[..., Generator[None, None, Any]]:
        if self.recipe.infoset_sums:  # on a game's whole tree: short, and cut into calls its last bits would differ
            return in_one_call(self.regret_fit)
        return BoundedCalls.of(self.regret_fit.__call__, game=self.game)

    @functools.cached_property
    def _value_fit_calls(self) -> BoundedCalls:
        return BoundedCalls.of(self._fit_values, game=self.game)

    @functools.cached_property
    def _average_fit_calls(self) -> BoundedCalls:
        return BoundedCalls.of(self.network_average.fit, game=self.game)

    def init(self, key: Array) -> DeepState:
        """Initialises networks; the buffers are empty."""
        key, value_key, *keys = jax.random.split(key, 6)
        drawn = jax.vmap(self.network.init)(jnp.stack(keys))
        regret_params, average_params = params_of(drawn, slice(2)), params_of(drawn, slice(2, None))
        row, config = row_shapes(self.game), self.config
        values = plans = average = None
        if self.history is not None:
            params = self.history.init(value_key)
            buffer = reservoir.empty(transition_shapes(self.game), config.values.capacity)
            values = ValueState(params, history_values.optimizer(config.values).init(params), buffer)
        if self.recipe.exact_average:
            plans = np.zeros(self.tree.legal.shape)
        else:
            buffers = tuple(reservoir.empty(row, config.average.capacity) for _ in range(2))
            average = AverageNetworks(average_params, jnp.bool_(False), buffers)
        networks = RegretNetworks(regret_params, jnp.zeros(2, bool), jnp.ones(2, jnp.float32))
        buffers = tuple(self.regret_fit.empty(row) for _ in range(2))
        return DeepState(networks, buffers, values, plans, average, key, jnp.int32(0))

    def iterate(self, state: DeepState) -> tuple[DeepState, Metrics]:
        return whole(self.calls(state))

    def calls(self, state: DeepState) -> Generator[None, None, tuple[DeepState, Metrics]]:
        seconds = {"seconds_generate": 0.0, "seconds_fit": 0.0}
        counters, by_player = Counters(), []
        for player in range(2):
            began = time.perf_counter()
            sampled = jax.block_until_ready((yield from self._sample(state, player)))
            played = time.perf_counter()
            state = self._with_average(state, player, sampled)
            state, metrics = yield from self._fit_player(state, player, sampled)
            by_player.append(jax.device_get(sampled.metrics | metrics))
            counters += self._counted(player, sampled)
            seconds["seconds_generate"] += played - began
            seconds["seconds_fit"] += time.perf_counter() - played
        began = time.perf_counter()
        state, metrics, shared = jax.block_until_ready((yield from self._fit_shared(state)))
        seconds["seconds_fit"] += time.perf_counter() - began
        means = {name: float(by_player[0][name] + by_player[1][name]) / 2 for name in by_player[0]}
        numbers = {name: float(x) for name, x in jax.device_get(metrics | (counters + shared).metrics()).items()}
        return state, {**means, **numbers, **seconds}

    def _sample(self, state: DeepState, player: int) -> Generator[None, None, Sampled]:
        """Samples games for a player's regrets; external sampling is one call."""
        key = self._key(state, _SAMPLE + player)
        if isinstance(self.sampler, ExternalSampler):
            return self.sampler(self._table(state.networks), player, state.iteration, key)
        value_params = None if state.values is None else state.values.params
        return (yield from self._sample_calls(state.networks, value_params, jnp.int32(player), state.iteration, key))

    @functools.partial(jax.jit, static_argnums=0)
    def _sample_outcomes(
        self, networks: RegretNetworks, value_params: Any, player: Array, iteration: Array, key: Array
    ) -> Sampled:
        q_values = None
        if self.history is not None:
            q_values = functools.partial(history_values.action_values, self.history, value_params)
        return self.sampler(self._policy_of(networks), q_values, player, iteration, key)

    def _policy_of(self, networks: RegretNetworks) -> PolicyOf:
        """Returns (view, legal, player) -> float32[A], the players' policies."""
        return functools.partial(own_policy, self.network, self.config.regrets, networks.params, networks.fitted)

    def _table(self, networks: RegretNetworks) -> Array:
        """Returns both players' policies at all information sets: float32[I, A]."""
        return self._policies_at(networks, self._infosets)

    @functools.cached_property
    def _infosets(self) -> tuple[Any, Array, Array]:
        """(view, legal actions, player) of all information sets; XLA would compute with constants while it compiles."""
        legal, owners = jnp.asarray(self.tree.legal), jnp.asarray(self.tree.owner, jnp.int32)
        return jax.tree.map(jnp.asarray, self.tree.views), legal, owners

    @functools.partial(jax.jit, static_argnums=0)
    def _policies_at(self, networks: RegretNetworks, infosets: tuple[Any, Array, Array]) -> Array:
        """Returns the policies at information sets: float32[I, A]."""
        return jax.vmap(self._policy_of(networks))(*infosets)

    def _key(self, state: DeepState, part: int) -> Array:
        return jax.random.fold_in(jax.random.fold_in(state.key, state.iteration), part)

    def _with_average(self, state: DeepState, player: int, sampled: Sampled) -> DeepState:
        """Adds the policies that were just played to the average: the player's own, or the opponent's as sampled."""
        if self.recipe.exact_average:
            weight = (int(state.iteration) + 1.0) ** self.config.average.power
            with jax.enable_x64(True):  # plans are float64, so uniform play in them is too
                table = np.asarray(self._table(state.networks))
            return state._replace(plans=plans_with(state.plans, self.tree, player, table, weight))
        other, average = 1 - player, state.average
        buffer = self.network_average.add(
            average.buffers[other], sampled.strategy, sampled.others, self._key(state, _STRATEGY + player)
        )
        return state._replace(average=average._replace(buffers=with_player(average.buffers, other, buffer)))

    def _fit_player(
        self, state: DeepState, player: int, sampled: Sampled
    ) -> Generator[None, None, tuple[DeepState, dict[str, Array]]]:
        """Keeps what was sampled and fits the player's network."""
        params, fitted, scales = state.networks
        own = PlayerNetwork(params_of(params, player), fitted[player], scales[player], state.buffers[player])
        own, metrics = yield from self._regret_fit_calls(
            own, sampled.regrets, sampled.own, jnp.int32(player), state.iteration, self._key(state, _FIT + player)
        )
        networks = RegretNetworks(
            with_params(params, player, own.params), fitted.at[player].set(own.fitted), scales.at[player].set(own.scale)
        )
        state = state._replace(networks=networks, buffers=with_player(state.buffers, player, own.buffer))
        if state.values is not None:
            moves = _add_newest(state.values.buffer, sampled.moves, sampled.moved, self._key(state, _MOVES + player))
            state = state._replace(values=state.values._replace(buffer=moves))
        return state, metrics

    def _counted(self, player: int, sampled: Sampled) -> Counters:
        """Counts what one player's part of an iteration did."""
        counters = Counters(*jax.device_get(tuple(sampled.counters)))
        # Whole tables hold the outputs of both players' networks at every information set.
        tables = int(not self.recipe.outcome_sampling) + int(self.recipe.exact_average)
        table_rows = 2 * self.tree.num_infosets * tables if tables else 0
        return counters + self.regret_fit.counters(player, int(counters.decisions)) + Counters(network_rows=table_rows)

    def _fit_shared(self, state: DeepState) -> Generator[None, None, tuple[DeepState, dict[str, Array], Counters]]:
        """Fits what both players share, and ends the iteration."""
        metrics, counters = {}, Counters()
        if state.values is not None:
            key = self._key(state, _VALUES)
            values, metrics = yield from self._value_fit_calls(state.networks, state.values, key)
            state, config = state._replace(values=values), self.config.values
            steps, rows = history_values.gradient_steps(config), history_values.network_rows(config, policy_networks=2)
            counters += Counters(gradient_steps=steps, network_rows=rows)
        state = state._replace(iteration=state.iteration + 1)
        if state.average is not None and not self._average_is_behind(state):
            state = yield from self._fit_average(state)
            counters += self.network_average.fit_counters
        return state, metrics, counters

    def _average_is_behind(self, state: DeepState) -> bool:
        """Returns whether the average networks know less than all iterations."""
        return int(state.iteration) % self.config.average.every != 0

    def _fit_average(self, state: DeepState) -> Generator[None, None, DeepState]:
        average = yield from self._average_fit_calls(state.average, self._key(state, _AVERAGE))
        return state._replace(average=average)

    def settle(self, state: DeepState) -> Generator[None, None, tuple[DeepState, Metrics]]:
        """Fits the average networks where the last iteration was not one that does."""
        if not self._average_is_behind(state):
            return state, {}
        state = yield from self._fit_average(state)
        return state, {name: float(x) for name, x in self.network_average.fit_counters.metrics().items()}

    @functools.partial(jax.jit, static_argnums=0)
    def _fit_values(
        self, networks: RegretNetworks, values: ValueState, key: Array
    ) -> tuple[ValueState, dict[str, Array]]:
        return history_values.learn(self.history, self.config.values, values, self._policy_of(networks), key)

    def policies(self, state: DeepState) -> dict[str, Policy]:
        params, fitted, _ = state.networks
        current = Policy(self._play, {"networks": params, "fitted": fitted})
        if self.recipe.exact_average:
            average = normalised(jax.device_get(state.plans), self.tree.legal)
            return {"current": current, "average": table_policy(self.index, average)}
        params = {"networks": state.average.params, "fitted": state.average.fitted}
        return {"current": current, "average": Policy(self.network_average.play, params)}

    def _play(self, params: Any, view: Any, legal: Array) -> Array:
        return own_policy(
            self.network, self.config.regrets, params["networks"], params["fitted"], view, legal,
            view.seat.astype(jnp.int32),
        )  # fmt: skip


@jax.jit
def _add_newest(buffer: ReservoirBuffer, rows: Any, valid: Array, key: Array) -> ReservoirBuffer:
    return reservoir.add(buffer, rows, valid, key, kind="fifo")
