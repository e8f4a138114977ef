"""Magnetic mirror descent on the whole tree: both players step at once, and the last policy is the answer.

    log pi(i, a) = (log pi(i, a) + eta alpha log rho(i, a) + eta q(i, a)) / (1 + eta alpha), normalised

with q the counterfactual values, rho the magnet, and at update t

    alpha = magnet_weight / sqrt(1 + t / halving),    eta = learning_rate / sqrt(1 + t / halving) for falling ones.

At a fixed alpha the policies go to the alpha-regularised equilibrium; as alpha falls, or the magnet moves after the
policy, to an equilibrium of the game.
Source: Sokota et al. 2023, "A unified approach to reinforcement learning, quantal response equilibria, and two-player
zero-sum games", sections 3.3 and 4.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Generator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dream.algorithms.tabular.cfr import Tabular
from dream.algorithms.tabular.iterations import run_iterations
from dream.algorithms.types import Algorithm, Metrics, Resources, needs_tree
from dream.compiled.bounded import BoundedCalls
from dream.config.settings import number
from dream.equations.mirror_descent import magnetic_step
from dream.equations.regret_matching import LOW
from dream.game_tree.sequence_form import SequenceForm, counterfactual_values, realisation, sequence_form
from dream.game_tree.tabular_policy import table_policy
from envs import Game, Policy


@dataclasses.dataclass(frozen=True)
class TabularMmdConfig:
    """Settings of tabular MMD.

    Attributes:
      updates: steps in one iteration of the run.
      learning_rate: eta at the start, in 1 / units of reward.
      magnet_weight: alpha at the start, in units of reward.
      halving: updates after which alpha has fallen by the square root of 2; None where it is constant.
      learning_rate_falls: whether eta falls as alpha does.
      magnet_tau: rate at which the magnet's logits follow the policy's at every update; 0 leaves it uniform.
    """

    name: str = "tabular_mmd"
    updates: int = number(1, 1)
    learning_rate: float = number(1.0, 0, above=True)
    magnet_weight: float = number(0.1, 0)
    halving: float | None = number(10.0, 0, above=True)
    learning_rate_falls: bool = False
    magnet_tau: float = number(0.0, 0, 1)


class TabularMmdState(NamedTuple):
    """Logarithms of policy and magnet, float64[I, A] each, updates so far and completed iterations."""

    logs: Array
    magnet: Array
    updates: Array
    iteration: Array


@functools.partial(jax.jit, static_argnums=0)
def run_updates(
    config: TabularMmdConfig, form: SequenceForm, legal: Array, state: TabularMmdState, iterations: Array | int
) -> tuple[TabularMmdState, Array]:
    """Runs iterations of `config.updates` each, in one compiled loop (float64: under jax.enable_x64).

    Returns:
      (the state after them, the policy's entropy in a mean information set after each, float64[MOST]).
    """

    def update(at: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        done, logs, magnet = at
        t = done.astype(jnp.float64)
        factor = 1.0 if config.halving is None else 1.0 / jnp.sqrt(1.0 + t / config.halving)
        step = config.learning_rate * (factor if config.learning_rate_falls else 1.0)
        values = _values(form, jnp.where(legal, jnp.exp(logs), 0.0))
        logs = magnetic_step(logs, values, magnet, legal, step=step, strength=config.magnet_weight * factor)
        return done + 1, logs, jnp.where(legal, (1 - config.magnet_tau) * magnet + config.magnet_tau * logs, 0.0)

    def entropy(at: tuple[Array, Array, Array]) -> Array:
        return -jnp.mean(jnp.sum(jnp.where(legal, jnp.exp(at[1]) * at[1], 0.0), axis=1))

    first = state.updates, state.logs, state.magnet
    (done, logs, magnet), reports = run_iterations(update, entropy, first, config.updates, iterations)
    return TabularMmdState(logs, magnet, done, (state.iteration + iterations).astype(jnp.int32)), reports


def _values(form: SequenceForm, policy: Array) -> Array:
    """Returns both players' counterfactual values of a table: float64[I, A], 0 at illegal actions."""
    entries = [own.entries(policy) for own in form]
    plans = [realisation(own, x) for own, x in zip(form, entries, strict=True)]
    tables = [own.table(counterfactual_values(own, entries[p], plans[1 - p])[1]) for p, own in enumerate(form)]
    return jnp.concatenate(tables)


@functools.lru_cache(maxsize=64)
def _update_calls(config: TabularMmdConfig) -> BoundedCalls:
    return BoundedCalls(functools.partial(inspect.unwrap(run_updates), config), x64=True)


def make(config: TabularMmdConfig, network: Any, game: Game, resources: Resources) -> Algorithm:
    """Builds the solver; the tree is expanded when it starts, the network node is not used.

    Raises:
      InputError: the game is not enumerable.
    """
    needs_tree(config.name, game)
    solver = _TabularMmd(config, game, resources)
    return solver.algorithm


class _TabularMmd(Tabular):
    """MMD on the whole tree."""

    def init(self, key: Array) -> TabularMmdState:
        legal = self.tree.legal
        uniform = np.where(legal, -np.log(np.maximum(legal.sum(axis=1, keepdims=True), 1)), LOW)
        return TabularMmdState(uniform, np.zeros(legal.shape), np.int64(0), np.int32(0))

    @functools.cached_property
    def legal(self) -> Array:
        """Legal actions by information set: bool[I, A]."""
        return jnp.asarray(self.tree.legal)

    def several(
        self, state: TabularMmdState, iterations: int
    ) -> Generator[None, None, tuple[TabularMmdState, list[Metrics]]]:
        calls = _update_calls(self.config)(sequence_form(self.tree), self.legal, state, np.int64(iterations))
        after, entropy = jax.device_get((yield from calls))
        passes = self.config.updates
        counts = {"nodes": passes * self.decisions, "transitions": passes * self.tree.num_histories}
        return after, [counts | {"entropy": x} for x in entropy[:iterations].tolist()]

    def policies(self, state: TabularMmdState) -> dict[str, Policy]:
        logs = jax.device_get(state.logs)
        return {"current": table_policy(self.index, np.where(self.tree.legal, np.exp(logs), 0.0))}
