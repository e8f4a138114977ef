"""Magnetic mirror descent on the full game tree: simultaneous updates; the result is the last iterate.

    log pi(i, a) = (log pi(i, a) + eta alpha log rho(i, a) + eta q(i, a)) / (1 + eta alpha), normalised

with q the counterfactual values, rho the magnet, and at update t

    alpha = magnet_weight / sqrt(1 + t / halving),    eta = learning_rate / sqrt(1 + t / halving) where they decay.

At a fixed alpha the policies converge to the alpha-regularised equilibrium; as alpha decays, or the magnet follows the
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

from dream.algorithms.tabular.cfr import Tabular, TabularWithoutTree, goes_through_tree
from dream.algorithms.tabular.iterations import run_iterations
from dream.algorithms.types import Algorithm, Metrics, Resources
from dream.compiled.bounded import BoundedCalls
from dream.config.settings import number
from dream.equations.mirror_descent import magnetic_logits, magnetic_step
from dream.equations.regret_matching import LOW
from dream.game_tree.placement.form import PlacementForm, Table
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

    def scheduled(self, updates: Any) -> tuple[Any, Any]:
        """Returns eta and alpha after so many updates."""
        factor = 1.0 if self.halving is None else (1.0 + updates / self.halving) ** -0.5
        return self.learning_rate * (factor if self.learning_rate_falls else 1.0), self.magnet_weight * factor


class TabularMmdState(NamedTuple):
    """Logarithms of policy and magnet, float64[I, A] or [E] each, updates so far and completed iterations."""

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
        step, strength = config.scheduled(done.astype(jnp.float64))
        values = _values(form, jnp.where(legal, jnp.exp(logs), 0.0))
        logs = magnetic_step(logs, values, magnet, legal, step=step, strength=strength)
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


def run_updates_without_tree(
    config: TabularMmdConfig, form: PlacementForm, state: TabularMmdState, updates: int
) -> TabularMmdState:
    """Runs updates on a game without a stored tree, on the host; arrays hold both players' entries in turn."""
    logs, magnets = (list(form.halves(np.asarray(x))) for x in (state.logs, state.magnet))
    for done in range(int(state.updates), int(state.updates) + updates):
        step, strength = config.scheduled(float(done))
        policies = [np.exp(x) for x in logs]
        plans = [own.realisation(x) for own, x in zip(form.players, policies, strict=True)]
        for p, own in enumerate(form.players):
            _, q = own.sweep(policies[p], own.terminal_values(plans[1 - p]))
            logs[p] = own.log_normalised(magnetic_logits(logs[p], q, magnets[p], step=step, strength=strength))
            magnets[p] = (1 - config.magnet_tau) * magnets[p] + config.magnet_tau * logs[p]
    done = np.int64(state.updates + updates)
    return TabularMmdState(np.concatenate(logs), np.concatenate(magnets), done, state.iteration)


def make(config: TabularMmdConfig, network: Any, game: Game, resources: Resources) -> Algorithm:
    """Builds the solver; tree or sequences are built when it starts, the network node is not used.

    Raises:
      InputError: the game has no exact form.
    """
    if goes_through_tree(config.name, game):
        return _TabularMmd(config, game, resources).algorithm
    return _TabularMmdWithoutTree(config, game).algorithm


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


class _TabularMmdWithoutTree(TabularWithoutTree):
    """MMD on a game whose payoffs factor."""

    def init(self, key: Array) -> TabularMmdState:
        uniform = np.concatenate([own.uniform() for own in self.form.players])
        return TabularMmdState(np.log(uniform), np.zeros(len(uniform)), np.int64(0), np.int32(0))

    def iterate(self, state: TabularMmdState) -> tuple[TabularMmdState, Metrics]:
        after = run_updates_without_tree(self.config, self.form, state, self.config.updates)
        entropy = -float(np.exp(after.logs) @ after.logs) / self.form.num_infosets
        metrics = {"nodes": self.config.updates * self.form.num_infosets, "entropy": entropy}
        return after._replace(iteration=np.int32(after.iteration + 1)), metrics

    def tables(self, state: TabularMmdState) -> dict[str, Table]:
        """Returns the table of the policy."""
        return {"current": tuple(np.exp(x) for x in self.form.halves(np.asarray(state.logs)))}
