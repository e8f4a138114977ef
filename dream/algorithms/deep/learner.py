"""What the deep regret minimisers share: an iteration of sampling, remembering, fitting and averaging by player.

At iteration t = 1, 2, ... and for each player p in turn, both players' policies being the newest:
  1. games are sampled for p's regrets, p's own policy entering the average with weight t^average.power;
  2. the samples go to p's memory, the opponent's policy at its decisions to the opponent's;
  3. p's regret network is fitted to its memory, and regret matching of it is p's policy.
Then the value of histories learns from the games' moves, where there is one.
Each algorithm's file says what it is made of; its configuration holds its paper's values.
Sources: Brown et al. 2019, "Deep counterfactual regret minimization"; Steinberger 2019, "Single deep CFR"; Steinberger,
Lerer and Brown 2020, "DREAM".
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dream.algorithms.deep import history_values
from dream.algorithms.deep.regret_networks import (
    Batch,
    Row,
    batches_of,
    combined,
    fit_network,
    own_outputs,
    own_policy,
    regret_loss,
    softmax,
    strategy_loss,
    typical_size,
    uniform,
)
from dream.algorithms.deep.samplers import ExternalSampler, OutcomeSampler, Sampled
from dream.algorithms.deep.settings import DeepConfig, HistoryConfig, OutcomeConfig, chance_in_baseline, check
from dream.algorithms.types import Algorithm, Metrics, Resources
from dream.buffers import infoset_sums, reservoir
from dream.buffers.reservoir import Memory
from dream.game_tree.sequence_form import realisation, sequence_form
from dream.game_tree.tabular_policy import normalised, table_index, table_policy
from dream.game_tree.tree import Tree
from dream.networks import Network, make_history_network, make_network
from dream.rollout.self_play import num_envs_for
from envs import EnumerableGame, Game, Policy


class DeepState(NamedTuple):
    """All that a run needs to go on; whatever is for each player has the leading axis [2] or is a pair.

    Attributes:
      networks: of regrets.
      fitted: bool[2], whether they have been fitted.
      scales: float32[2], what their outputs are multiplied by to be regrets.
      memories: of Row, or Sums.
      values: parameters and Adam's state of the value of histories, and its Memory of Transition; None without one.
      plans: float64[I, A], the average's realisation plans; None with a network.
      average: the average networks, whether they are fitted bool, and their memories; None without them.
      key: PRNG key.
      iteration: int32, completed iterations.
    """

    networks: Any
    fitted: Array
    scales: Array
    memories: tuple[Any, Any]
    values: tuple[Any, Any, Memory] | None
    plans: np.ndarray | None
    average: tuple[Any, Array, tuple[Memory, Memory]] | None
    key: Array
    iteration: Array


def make(
    config: DeepConfig, network: Any, game: Game, resources: Resources, *, direct: bool = False, bootstrap: Any = None
) -> Algorithm:
    """Builds a deep regret minimiser.

    Args:
      config: an OutcomeConfig samples outcomes, a HistoryConfig with a value of histories, any other external sampling.
      network: the node of the regret network, which the others take their shape from.
      game: for two players.
      resources: finds the tree.
      direct: whether regrets are read off the value of histories.
      bootstrap: (regrets float32[..., A] so far, iteration int32) -> what this iteration's are added to; the sums are
        fitted, to this iteration's samples alone. None to fit single iterations' regrets, to all samples remembered.
    Raises:
      InputError: settings, network and game that do not fit.
    """
    check(config, game, direct=direct)
    with_values = isinstance(config, HistoryConfig)
    built = make_network(network, game)
    history = make_history_network(network, game) if with_values else None
    learner = _Deep(config, game, built, history, direct, bootstrap, resources)
    return Algorithm(learner.init, learner.iterate, learner.policies)


@dataclasses.dataclass(frozen=True, eq=False)
class _Deep:
    """The parts, put together."""

    config: Any
    game: Game
    network: Network
    history: Network | None
    direct: bool
    bootstrap: Any
    resources: Resources

    @property
    def exact_average(self) -> bool:
        source = self.config.average.source
        return source == "models" or (source == "auto" and isinstance(self.game, EnumerableGame))

    @functools.cached_property
    def tree(self) -> Tree:
        return self.resources.find_tree(self.game)

    @functools.cached_property
    def index(self) -> dict[str, np.ndarray]:
        return table_index(self.tree)

    @functools.cached_property
    def sets(self) -> infoset_sums.Sets:
        with jax.ensure_compile_time_eval():
            return infoset_sums.sets_of(self.tree, self.index)

    @functools.cached_property
    def sampler(self) -> OutcomeSampler | ExternalSampler:
        config = self.config
        if not isinstance(config, OutcomeConfig):
            return ExternalSampler(self.tree, config.traversals, config.weights)
        num_envs, shaping = (
            num_envs_for(config.num_envs, config.traversals),
            config.shaping if config.is_shaped else None,
        )
        return OutcomeSampler(
            self.game, config.traversals, num_envs, config.exploration, config.weights,
            direct=self.direct, chance=chance_in_baseline(config), shaping=shaping,
        )  # fmt: skip

    def init(self, key: Array) -> DeepState:
        """Draws networks; the memories are empty."""
        key, value_key, *keys = jax.random.split(key, 6)
        drawn = jax.vmap(self.network.init)(jnp.stack(keys))
        networks, averages = jax.tree.map(lambda x: x[:2], drawn), jax.tree.map(lambda x: x[2:], drawn)
        row, config = self._row(), self.config

        def memories(capacity: int) -> tuple[Memory, Memory]:
            return reservoir.empty(row, capacity), reservoir.empty(row, capacity)

        values = plans = average = None
        if self.history is not None:
            params = self.history.init(value_key)
            memory = reservoir.empty(self._transition(), config.values.capacity)
            values = (params, history_values.optimizer(config.values).init(params), memory)
        if self.exact_average:
            plans = np.zeros(self.tree.legal.shape)
        else:
            average = (averages, jnp.bool_(False), memories(config.average.capacity))
        sums = config.memory.keep == "sums"
        kept = (infoset_sums.empty(self.tree),) * 2 if sums else memories(config.memory.capacity)
        fitted, scales = jnp.zeros(2, bool), jnp.ones(2)
        return DeepState(networks, fitted, scales, kept, values, plans, average, key, jnp.int32(0))

    def _row(self) -> Row:
        """Returns the shapes of one sample."""

        def one() -> Row:
            state = self.game.init(jax.random.key(0))
            legal = self.game.legal_actions(state)
            numbers = jnp.zeros(self.game.num_actions)
            return Row(self.game.view(state, jnp.int32(0)), jnp.packbits(legal), numbers, jnp.float32(0))

        return jax.eval_shape(one)

    def _transition(self) -> history_values.Transition:
        """Returns the shapes of one move."""
        row = self._row()
        pair = jax.tree.map(lambda x: jax.ShapeDtypeStruct((2, *x.shape), x.dtype), row.view)
        one = functools.partial(jax.ShapeDtypeStruct, ())
        return history_values.Transition(
            pair, row.legal, one(jnp.int16), one(jnp.float32), one(jnp.bool_),
            pair, row.legal, one(jnp.int8), row.target,
        )  # fmt: skip

    def iterate(self, state: DeepState) -> tuple[DeepState, Metrics]:
        seconds = {"seconds_generate": 0.0, "seconds_fit": 0.0}
        told: list[dict[str, Array]] = []
        for player in range(2):
            began = time.perf_counter()
            sampled = jax.block_until_ready(self._sampled(state, player))
            generated = time.perf_counter()
            state = self._averaged(state, player)
            state, fitted = self._learned(state, player, sampled)
            told.append(jax.device_get(sampled.told | fitted))
            seconds["seconds_generate"] += generated - began
            seconds["seconds_fit"] += time.perf_counter() - generated
        began = time.perf_counter()
        state, more = jax.block_until_ready(self._finished(state))
        seconds["seconds_fit"] += time.perf_counter() - began
        counters = ("episodes", "decisions", "nodes", "transitions", "network_rows", "gradient_steps")
        both = {name: float(told[0][name] + told[1][name]) for name in told[0] if name in counters}
        means = {name: float(told[0][name] + told[1][name]) / 2 for name in told[0] if name not in counters}
        for name, x in jax.device_get(more).items():
            both[name] = both.get(name, 0.0) + float(x)
        return state, {**means, **both, **seconds}

    def _sampled(self, state: DeepState, player: int) -> Sampled:
        """Samples games for a player's regrets."""
        key = self._key(state, player)
        if isinstance(self.sampler, ExternalSampler):
            return self.sampler(self._table(state.networks, state.fitted), player, state.iteration, key)
        params = None if state.values is None else state.values[0]
        return self._outcomes(state.networks, state.fitted, params, jnp.int32(player), state.iteration, key)

    @functools.partial(jax.jit, static_argnums=0)
    def _outcomes(
        self, networks: Any, fitted: Array, values: Any, player: Array, iteration: Array, key: Array
    ) -> Sampled:
        rated = None
        if self.history is not None:
            rated = functools.partial(history_values.action_values, self.history, values)
        return self.sampler(self._policy_of(networks, fitted), rated, player, iteration, key)

    def _policy_of(self, networks: Any, fitted: Array) -> Any:
        """Returns (view, legal, player) -> float32[A], the players' policies."""
        return functools.partial(own_policy, self.network, self.config.regrets, networks, fitted)

    @functools.partial(jax.jit, static_argnums=0)
    def _table(self, networks: Any, fitted: Array) -> Array:
        """Returns both players' policies at all information sets: float32[I, A]."""
        policy = self._policy_of(networks, fitted)
        owners = jnp.asarray(self.tree.owner, jnp.int32)
        return jax.vmap(policy)(jax.tree.map(jnp.asarray, self.tree.views), jnp.asarray(self.tree.legal), owners)

    def _key(self, state: DeepState, part: int) -> Array:
        return jax.random.fold_in(jax.random.fold_in(state.key, state.iteration), part)

    def _averaged(self, state: DeepState, player: int) -> DeepState:
        """Adds the policy that a player has just played to the exact average."""
        if state.plans is None:
            return state
        side = sequence_form(self.tree)[player]
        with jax.enable_x64(True):
            table = jnp.asarray(np.asarray(self._table(state.networks, state.fitted)), jnp.float64)
            plan = np.asarray(_realised(side, table))
        plans = np.array(state.plans)
        plans[side.first : side.first + len(plan)] += (int(state.iteration) + 1.0) ** self.config.average.power * plan
        return state._replace(plans=plans)

    def _learned(self, state: DeepState, player: int, sampled: Sampled) -> tuple[DeepState, dict[str, Array]]:
        """Remembers what was sampled and fits the player's network."""
        key, iteration, other = self._key(state, 2 + player), state.iteration, 1 - player
        memory = state.memories[player]
        own = jax.tree.map(lambda x: x[player], state.networks)
        own, scale, memory, told = self._fit_regrets(
            own, state.fitted[player], state.scales[player], memory, sampled.regrets, sampled.own, jnp.int32(player),
            iteration, key,
        )  # fmt: skip
        state = state._replace(
            networks=jax.tree.map(lambda both, x: both.at[player].set(x), state.networks, own),
            fitted=state.fitted.at[player].set(True),
            scales=state.scales.at[player].set(scale),
            memories=_with(state.memories, player, memory),
        )
        if state.average is not None:
            networks, fitted, memories = state.average
            memory = self._remember_strategy(
                memories[other], sampled.strategy, sampled.others, iteration, self._key(state, 6 + player)
            )
            state = state._replace(average=(networks, fitted, _with(memories, other, memory)))
        if state.values is not None:
            moves = _add_newest(state.values[2], sampled.moves, sampled.moved)
            state = state._replace(values=(*state.values[:2], moves))
        fits, read = self.config.fit, 2 if state.values is None else 3
        acted = int(told.pop("acted")) + int(jnp.sum(sampled.others))
        sums = self.config.memory.keep == "sums"
        rows = fits.steps * (self.sets.rows.shape[1] if sums else fits.batch_size) + read * acted
        return state, told | {"gradient_steps": fits.steps, "network_rows": rows}

    @functools.partial(jax.jit, static_argnums=0)
    def _fit_regrets(
        self, own: Any, fitted: Array, scale: Array, memory: Any, rows: Row, valid: Array, player: Array,
        iteration: Array, key: Array,
    ) -> tuple[Any, Array, Any, dict[str, Array]]:  # fmt: skip
        """Returns a player's network, scale and memory after new samples."""
        config, (add_key, draw_key, fit_key) = self.config, jax.random.split(key, 3)
        if self.bootstrap is not None:
            rows = self._summed(own, fitted, scale, rows, iteration)
            memory = jax.tree.map(jnp.zeros_like, memory)
        if config.memory.keep == "sums":
            memory = infoset_sums.add(memory, self.sets, rows, valid)
            typical, batch = self._whole_batch(memory, player)
        else:
            memory = reservoir.add(memory, rows, valid, add_key, keep=config.memory.keep)
            kept, weights = memory.rows, jnp.where(reservoir.held(memory), memory.rows.weight, 0.0)
            typical = typical_size(weights, kept.target, self._unpacked(kept.legal))
            batch = batches_of(self.network, memory, config.fit.batch_size, draw_key)
        scale = typical if self.bootstrap is None else jnp.where(fitted, scale, typical)
        loss = functools.partial(regret_loss, config.regrets.head, scale=scale)
        own, told = fit_network(self.network, config.fit, loss, own, batch, fit_key)
        told |= {"samples": memory.seen, "target_scale": scale, "acted": jnp.sum(valid)}
        return own, scale, memory, told

    def _whole_batch(self, sums: infoset_sums.Sums, player: Array) -> tuple[Array, Callable[[Array], Batch]]:
        """Returns the targets' typical size, and all of a player's information sets as the batch of every step."""
        views, legal, targets, weights = infoset_sums.rows_of(sums, self.sets, player)
        x = jax.vmap(self.network.inputs.of_view)(views)
        rows = x, legal, targets, weights / jnp.maximum(jnp.mean(weights), 1e-30)
        return typical_size(weights, targets, legal), lambda step: rows

    def _summed(self, own: Any, fitted: Array, scale: Array, rows: Row, iteration: Array) -> Row:
        """Returns the rows with what the player's network told before added to this iteration's regrets."""
        legal = self._unpacked(rows.legal)
        outputs = self.network.apply_inputs(own, jax.vmap(self.network.inputs.of_view)(rows.view))
        before = self.bootstrap(scale * combined(self.config.regrets.head, outputs, legal), iteration)
        return rows._replace(target=rows.target + jnp.where(fitted, before, 0.0))

    def _unpacked(self, legal: Array) -> Array:
        return jnp.unpackbits(legal, axis=-1, count=self.game.num_actions).astype(bool)

    @functools.partial(jax.jit, static_argnums=0)
    def _remember_strategy(self, memory: Memory, rows: Row, valid: Array, iteration: Array, key: Array) -> Memory:
        power = self.config.average.power - self.config.weights.power
        rows = rows._replace(weight=rows.weight * (iteration + 1.0) ** power)
        return reservoir.add(memory, rows, valid, key, keep="reservoir")

    def _finished(self, state: DeepState) -> tuple[DeepState, dict[str, Array]]:
        """Fits what both players share, and counts the iteration."""
        more: dict[str, Array] = {}
        if state.values is not None:
            fitted = self._fit_values(state.networks, state.fitted, state.values, self._key(state, 4))
            state = state._replace(values=(*fitted[:2], state.values[2]))
            config = self.config.values
            rows = 2 * config.steps * config.batch_size
            more = fitted[2] | {"gradient_steps": config.steps, "network_rows": rows}
        state = state._replace(iteration=state.iteration + 1)
        average = self.config.average
        if state.average is not None and int(state.iteration) % average.every == 0:
            state = state._replace(average=self._fit_average(state.average, self._key(state, 5)))
            steps = 2 * average.fit.steps
            more["gradient_steps"] = more.get("gradient_steps", 0) + steps
            more["network_rows"] = more.get("network_rows", 0) + steps * average.fit.batch_size
        return state, more

    @functools.partial(jax.jit, static_argnums=0)
    def _fit_values(self, networks: Any, fitted: Array, values: Any, key: Array) -> tuple[Any, ...]:
        params, optimizer_state, memory = values
        policy = self._policy_of(networks, fitted)
        return history_values.learn(self.history, self.config.values, params, optimizer_state, memory, policy, key)

    @functools.partial(jax.jit, static_argnums=0)
    def _fit_average(self, average: Any, key: Array) -> tuple[Any, ...]:
        """Fits each player's average network to its own decisions."""
        networks, _, memories = average
        for player in range(2):
            own = jax.tree.map(lambda x, player=player: x[player], networks)
            draw_key, fit_key = jax.random.split(jax.random.fold_in(key, player))
            fits = self.config.average.fit
            batch = batches_of(self.network, memories[player], fits.batch_size, draw_key)
            own, _ = fit_network(self.network, fits, strategy_loss, own, batch, fit_key)
            networks = jax.tree.map(lambda both, x, player=player: both.at[player].set(x), networks, own)
        return networks, jnp.bool_(True), memories

    def policies(self, state: DeepState) -> dict[str, Policy]:
        current = Policy(self._play, {"networks": state.networks, "fitted": state.fitted})
        if state.plans is not None:
            average = normalised(jax.device_get(state.plans), self.tree.legal)
            return {"current": current, "average": table_policy(self.index, average)}
        networks, fitted, _ = state.average
        return {"current": current, "average": Policy(self._play_average, {"networks": networks, "fitted": fitted})}

    def _play(self, params: Any, view: Any, legal: Array) -> Array:
        return self._policy_of(params["networks"], params["fitted"])(view, legal, view.seat.astype(jnp.int32))

    def _play_average(self, params: Any, view: Any, legal: Array) -> Array:
        logits, _ = own_outputs(self.network, params["networks"], view, view.seat.astype(jnp.int32))
        return jnp.where(params["fitted"], softmax(logits, legal), uniform(legal))


@jax.jit
def _add_newest(memory: Memory, rows: Any, valid: Array) -> Memory:
    return reservoir.add(memory, rows, valid, jax.random.key(0), keep="window")


@jax.jit
def _realised(side: Any, table: Array) -> Array:
    """Returns a player's realisation plan, float64[J, A], from both players' policies."""
    return side.table(realisation(side, side.rows(table))[1:])


def _with(pair: tuple[Any, Any], player: int, new: Any) -> tuple[Any, Any]:
    """Returns a pair with one player's part replaced."""
    return (new, pair[1]) if player == 0 else (pair[0], new)
