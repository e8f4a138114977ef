"""Counterfactual regret minimisation on the whole tree: CFR, CFR+, linear and discounted CFR, predictive CFR+.

One iteration updates player 0, then player 1, each against the other's newest policy:

    policy(i, a) = [R(i, a)]+ / sum over b of [R(i, b)]+        (uniform where the sum is 0)
    r(i, a)      = Q(i, a) - sum over b of policy(i, b) Q(i, b)
    R            = d(R) + r, and [.]+ of it in the plus variants
    C(i, a)      = c C(i, a) + w X(i, a),  the average policy is C / sum over b of C(i, b)

with Q the counterfactual values and X the player's own realisation plan (dream/game_tree/sequence_form.py).
Sources: Zinkevich et al. 2007; Tammelin 2014 (CFR+: w = t); Brown and Sandholm 2019 (discounts d and c);
Farina et al. 2021 (PCFR+: the policy is matched to R plus the last r, w = t^2).
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

from dream.algorithms.types import Algorithm, Metrics, Resources, needs_tree
from dream.compiled.bounded import BoundedCalls, long_loop, whole
from dream.config.settings import number
from dream.equations.regret_matching import regret_matching
from dream.game_tree.sequence_form import (
    PlayerSequences,
    SequenceForm,
    counterfactual_values,
    over_actions,
    realisation,
    sequence_form,
)
from dream.game_tree.tabular_policy import normalised, table_index, table_policy
from dream.game_tree.tree import Tree
from envs import Game, Policy


@dataclasses.dataclass(frozen=True)
class CfrConfig:
    """Settings of tabular CFR; each variant's file in conf/algo holds its own.

    Attributes:
      name: the variant's.
      updates: CFR iterations in one iteration of the run.
      plus: whether regrets are floored at 0.
      predictive: whether the last regret is expected to come again.
      average_power: the policy of iteration t enters the average with weight t^average_power.
      positive_power, negative_power: alpha and beta of discounted CFR: before each iteration's regret is added,
        regrets are multiplied by t^power / (t^power + 1); None for no discount.
    """

    name: str
    updates: int = number(1, 1)
    plus: bool = False
    predictive: bool = False
    average_power: float = number(0.0, 0)
    positive_power: float | None = None
    negative_power: float | None = None


class CfrState(NamedTuple):
    """Regrets and average, float64[I, A] each; `last` is the newest instantaneous regret, `iteration` the run's."""

    regrets: Array
    weights: Array
    last: Array
    updates: Array
    iteration: Array


class _PlayerState(NamedTuple):
    """One player's entries of the state, the policy its regrets stand for and that policy's realisation plan."""

    regrets: Array
    weights: Array
    last: Array
    policy: Array
    plan: Array


def _player_state(
    config: CfrConfig, player: PlayerSequences, regrets: Array, weights: Array, last: Array
) -> _PlayerState:
    matched = regrets + last if config.predictive else regrets
    positive = jnp.maximum(matched, 0)
    total = over_actions(jnp.add, player.every_block, positive)[player.infoset_of]
    policy = jnp.where(total > 0, positive / jnp.where(total > 0, total, 1), player.uniform)
    return _PlayerState(regrets, weights, last, policy, realisation(player, policy))


def _updated(
    config: CfrConfig, player: PlayerSequences, own: _PlayerState, other: _PlayerState, t: Array
) -> _PlayerState:
    _, q = counterfactual_values(player, own.policy, other.plan)
    value = over_actions(jnp.add, player.every_block, own.policy * q)[player.infoset_of]
    regret = jnp.where(player.uniform > 0, q - value, 0)
    regrets = _discounted(config, own.regrets, t) + regret
    regrets = jnp.maximum(regrets, 0) if config.plus else regrets
    return _player_state(config, player, regrets, own.weights + t**config.average_power * own.plan[1:], regret)


def _discounted(config: CfrConfig, regrets: Array, t: Array) -> Array:
    """Returns the regrets before iteration t, discounted; nothing is lost before the first."""

    def factor(power: float | None) -> Array | float:
        return 1.0 if power is None else (t - 1) ** power / ((t - 1) ** power + 1)

    return regrets * jnp.where(regrets > 0, factor(config.positive_power), factor(config.negative_power))


@functools.partial(jax.jit, static_argnums=0)
def run_updates(config: CfrConfig, form: SequenceForm, state: CfrState, updates: Array | int) -> CfrState:
    """Runs some CFR iterations, both players in turn in each, in one compiled loop (float64: under jax.enable_x64)."""
    sums = jax.tree.map(jnp.asarray, (state.regrets, state.weights, state.last))

    def update(at: tuple[Array, _PlayerState, _PlayerState]) -> tuple[Array, _PlayerState, _PlayerState]:
        n, first, second = at
        t = (state.updates + 1 + n).astype(jnp.float64)
        first = _updated(config, form[0], first, second, t)
        return n + 1, first, _updated(config, form[1], second, first, t)

    start = tuple(_player_state(config, player, *(player.entries(x) for x in sums)) for player in form)
    _, *after = long_loop(lambda at: at[0] < updates, update, (jnp.int64(0), *start))
    tables = [
        [player.table(x) for x in (one.regrets, one.weights, one.last)] for player, one in zip(form, after, strict=True)
    ]
    regrets, weights, last = (jnp.concatenate(parts) for parts in zip(*tables, strict=True))
    return CfrState(regrets, weights, last, state.updates + updates, state.iteration)


@functools.lru_cache(maxsize=64)
def _update_calls(config: CfrConfig) -> BoundedCalls:
    return BoundedCalls(functools.partial(inspect.unwrap(run_updates), config), x64=True)


def make(config: CfrConfig, network: Any, game: Game, resources: Resources) -> Algorithm:
    """Builds the solver; the tree is expanded when it starts, the network node is not used.

    Raises:
      InputError: the game is not enumerable.
    """
    needs_tree(config.name, game)
    solver = _Cfr(config, game, resources)
    return Algorithm(solver.init, solver.iterate, solver.policies, calls=solver.calls)


@dataclasses.dataclass(frozen=True, eq=False)
class Tabular:
    """What solvers of regrets in a table share: the tree, built when first asked for, and tables played as policies."""

    config: Any
    game: Game
    resources: Resources

    @functools.cached_property
    def tree(self) -> Tree:
        """The game's tree."""
        return self.resources.find_tree(self.game)

    @functools.cached_property
    def index(self) -> dict[str, np.ndarray]:
        """The index a policy finds its rows by."""
        return table_index(self.tree)

    def iterate(self, state: Any) -> tuple[Any, Metrics]:
        """Returns the state after an iteration, and its metrics."""
        return whole(self.calls(state))

    def policies_of(self, regrets: Array, weights: Array) -> dict[str, Policy]:
        """Returns the policies of regrets, "current", and of the average's weights, "average"."""
        with jax.enable_x64(True):
            current = np.asarray(regret_matching(jnp.asarray(regrets), self.tree.legal))
        mean = normalised(np.asarray(weights), self.tree.legal)
        return {"current": table_policy(self.index, current), "average": table_policy(self.index, mean)}


class _Cfr(Tabular):
    """CFR on the whole tree."""

    def init(self, key: Array) -> CfrState:
        zeros = np.zeros(self.tree.legal.shape)
        return CfrState(zeros, zeros, zeros, np.int64(0), np.int32(0))

    def calls(self, state: CfrState) -> Generator[None, None, tuple[CfrState, Metrics]]:
        with jax.enable_x64(True):
            form = sequence_form(self.tree)
        after = yield from _update_calls(self.config)(form, state, self.config.updates)
        with jax.enable_x64(True):
            after = jax.device_get(after._replace(iteration=after.iteration + 1))
        passes = 2 * self.config.updates
        nodes, transitions = passes * int(np.sum(self.tree.player >= 0)), passes * self.tree.num_histories
        positive = float(np.maximum(after.regrets, 0).sum())
        return after, {"nodes": nodes, "transitions": transitions, "regret_positive": positive}

    def policies(self, state: CfrState) -> dict[str, Policy]:
        regrets, last, weights = jax.device_get((state.regrets, state.last, state.weights))
        return self.policies_of(regrets + last if self.config.predictive else regrets, weights)
