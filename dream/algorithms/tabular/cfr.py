"""Counterfactual regret minimisation on the full game tree: CFR, CFR+, linear and discounted CFR, predictive CFR+.

One iteration updates player 0, then player 1, each against the newest policy of the other:

    policy(i, a) = [R(i, a)]+ / sum over b of [R(i, b)]+        (uniform where the sum is 0)
    r(i, a)      = Q(i, a) - sum over b of policy(i, b) Q(i, b)
    R            = d(R) + r, and [.]+ of it in the plus variants
    C(i, a)      = c C(i, a) + w X(i, a),  with average policy C / sum over b of C(i, b)

with Q the counterfactual values and X the player's own realisation plan (dream/game_tree/sequence_form.py).
Sources: Zinkevich et al. 2007; Tammelin 2014 (CFR+: w = t); Brown and Sandholm 2019 (discounts d and c);
Farina et al. 2021 (PCFR+: regret matching on R plus the last r, w = t^2).
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
from collections.abc import Generator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dream.algorithms.tabular.iterations import MOST, run_iterations
from dream.algorithms.types import Algorithm, Metrics, Resources, needs_tree
from dream.compiled.bounded import BoundedCalls, whole
from dream.config.settings import number
from dream.equations.regret_matching import regret_matching
from dream.game_tree.exact import OwnSequences, is_exact
from dream.game_tree.placement.form import PlacementForm, Table, kept_form
from dream.game_tree.sequence_form import SequenceForm, sequence_form
from dream.game_tree.tabular_policy import normalised, table_index, table_policy
from dream.game_tree.tree import Tree
from envs import EnumerableGame, Game, InputError, Policy

MOST_POWER = 20
"""Of an iteration's number: higher ones are more than a float64 holds."""


@dataclasses.dataclass(frozen=True)
class CfrConfig:
    """Settings of tabular CFR; each variant's file in conf/algo holds its own.

    Attributes:
      name: the variant's.
      updates: CFR iterations in one iteration of the run.
      plus: whether regrets are floored at 0.
      predictive: whether the last regret is expected to come again.
      average_power: the policy of iteration t enters the average with weight t^average_power.
      positive_power, negative_power: alpha and beta of discounted CFR: before the regret of iteration t + 1 is added,
        those of t iterations are multiplied by t^power / (t^power + 1); None for no discount. Both may be infinite.
    """

    name: str
    updates: int = number(1, 1)
    plus: bool = False
    predictive: bool = False
    average_power: float = number(0.0, 0, MOST_POWER)
    positive_power: float | None = None
    negative_power: float | None = None


class CfrState(NamedTuple):
    """Regrets and average, float64[I, A] each; `last` is the newest instantaneous regret, `iteration` the run's."""

    regrets: Array
    weights: Array
    last: Array
    updates: Array
    iteration: Array


class _Sums(NamedTuple):
    """One player's entries of the state's arrays."""

    regrets: Array
    weights: Array
    last: Array


class _PlayerState(NamedTuple):
    """One player's sums, the policy its regrets stand for and that policy's realisation plan."""

    sums: _Sums
    policy: Array
    plan: Array


def _player_state(config: CfrConfig, player: OwnSequences, sums: _Sums) -> _PlayerState:
    matched = sums.regrets + sums.last if config.predictive else sums.regrets
    policy = player.normalised(matched.clip(min=0))
    return _PlayerState(sums, policy, player.realisation(policy))


def _updated(config: CfrConfig, player: OwnSequences, own: _PlayerState, other: _PlayerState, t: Array) -> _PlayerState:
    _, q = player.sweep(own.policy, player.terminal_values(other.plan))
    regret = player.legal_only(q - player.total(own.policy * q))
    regrets = _discounted(config, own.sums.regrets, t) + regret
    regrets = regrets.clip(min=0) if config.plus else regrets
    weights = own.sums.weights + t**config.average_power * own.plan[1:]
    return _player_state(config, player, _Sums(regrets, weights, regret))


def _discounted(config: CfrConfig, regrets: Array, t: Array) -> Array:
    """Returns the regrets before iteration t, discounted; nothing is lost before the first."""
    if config.positive_power is None and config.negative_power is None:
        return regrets

    before = t - 1 + (t <= 1)  # what was before the first iteration is 0, whatever the factor

    def factor(power: float | None) -> Array | float:
        if power is None:
            return 1.0
        return 1 / (1 + before**-power) if power > MOST_POWER else before**power / (before**power + 1)

    positive, negative = factor(config.positive_power), factor(config.negative_power)
    return positive * regrets.clip(min=0) + negative * regrets.clip(max=0)


def _iteration(
    config: CfrConfig, form: tuple[OwnSequences, OwnSequences], players: tuple[_PlayerState, _PlayerState], t: Array
) -> tuple[_PlayerState, _PlayerState]:
    """Updates player 0, then player 1 against its newest policy; t counts iterations from 1."""
    first = _updated(config, form[0], players[0], players[1], t)
    return first, _updated(config, form[1], players[1], first, t)


@functools.partial(jax.jit, static_argnums=0)
def run_updates(
    config: CfrConfig, form: SequenceForm, state: CfrState, iterations: Array | int
) -> tuple[CfrState, Array]:
    """Runs iterations of `config.updates` each, in one compiled loop (float64: under jax.enable_x64).

    Returns:
      (the state after them, the sum of positive regrets after each, float64[MOST]).
    """
    tables = state.regrets, state.weights, state.last
    start = tuple(_Sums(*(player.entries(x) for x in tables)) for player in form)

    def update(at: tuple[Array, tuple[_Sums, _Sums]]) -> tuple[Array, tuple[_Sums, _Sums]]:
        done, sums = at
        players = tuple(_player_state(config, own, x) for own, x in zip(form, sums, strict=True))
        after = _iteration(config, form, players, (done + 1).astype(jnp.float64))
        return done + 1, tuple(one.sums for one in after)

    def positive(at: tuple[Array, tuple[_Sums, _Sums]]) -> Array:
        return sum(jnp.sum(x.regrets.clip(min=0)) for x in at[1])

    (done, sums), reports = run_iterations(update, positive, (state.updates, start), config.updates, iterations)
    parts = [[own.table(x) for x in one] for own, one in zip(form, sums, strict=True)]
    after = _Sums(*(jnp.concatenate(halves) for halves in zip(*parts, strict=True)))
    return CfrState(*after, done, (state.iteration + iterations).astype(jnp.int32)), reports


@functools.lru_cache(maxsize=64)
def _update_calls(config: CfrConfig) -> BoundedCalls:
    return BoundedCalls(functools.partial(inspect.unwrap(run_updates), config), x64=True)


def run_updates_without_tree(config: CfrConfig, form: PlacementForm, state: CfrState, updates: int) -> CfrState:
    """The same for a game without a stored tree: on the host, the state's arrays both players' entries in turn."""
    start = zip(*map(form.halves, (state.regrets, state.weights, state.last)), strict=True)
    players = tuple(_player_state(config, own, _Sums(*parts)) for own, parts in zip(form.players, start, strict=True))
    for n in range(updates):
        players = _iteration(config, form.players, players, float(state.updates + 1 + n))
    regrets, weights, last = (np.concatenate([getattr(one.sums, name) for one in players]) for name in _Sums._fields)
    return CfrState(regrets, weights, last, state.updates + updates, state.iteration)


def make(config: CfrConfig, network: Any, game: Game, resources: Resources) -> Algorithm:
    """Builds the solver; tree or sequences are built when it starts, the network node is not used.

    Raises:
      InputError: the game has no exact form, or a power is no number.
    """
    for name in ("positive_power", "negative_power"):
        if math.isnan(getattr(config, name) or 0.0):
            raise InputError(f"algo.{name}=nan is not a number; it must be a number, which may be infinite, or null")
    if goes_through_tree(config.name, game):
        return _Cfr(config, game, resources).algorithm
    return _CfrWithoutTree(config, game).algorithm


def goes_through_tree(algorithm: str, game: Game) -> bool:
    """Returns whether a solver goes through a game's tree; False: the game has an exact form without one.

    Raises:
      InputError: the game has neither.
    """
    if not isinstance(game, EnumerableGame) and is_exact(game):
        return False
    needs_tree(algorithm, game)
    return True


@dataclasses.dataclass(frozen=True, eq=False)
class Tabular:
    """What solvers of regrets in a table share: the tree, built when first asked for, and tables played as policies."""

    config: Any
    game: Game
    resources: Resources
    counts = ("nodes",)

    @functools.cached_property
    def tree(self) -> Tree:
        """The game's tree."""
        return self.resources.find_tree(self.game)

    @functools.cached_property
    def index(self) -> dict[str, np.ndarray]:
        """The index a policy finds its rows by."""
        return table_index(self.tree)

    @functools.cached_property
    def decisions(self) -> int:
        """The tree's histories in which a player acts."""
        return int(np.sum(self.tree.player >= 0))

    @property
    def algorithm(self) -> Algorithm:
        """The solver as a learner; it has `init`, `several` and `policies`."""
        return Algorithm(
            self.init,
            self.iterate,
            self.policies,
            several=self.several,
            most=MOST,
            counts=self.counts,
            has_network=False,
        )

    def iterate(self, state: Any) -> tuple[Any, Metrics]:
        """Returns the state after an iteration, and its metrics."""
        state, (metrics,) = whole(self.several(state, 1))
        return state, metrics

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

    def several(self, state: CfrState, iterations: int) -> Generator[None, None, tuple[CfrState, list[Metrics]]]:
        after, positive = yield from _update_calls(self.config)(sequence_form(self.tree), state, np.int64(iterations))
        after, positive = jax.device_get((after, positive))
        passes = 2 * self.config.updates
        counts = {"nodes": passes * self.decisions, "transitions": passes * self.tree.num_histories}
        return after, [counts | {"regret_positive": x} for x in positive[:iterations].tolist()]

    def policies(self, state: CfrState) -> dict[str, Policy]:
        regrets, last, weights = jax.device_get((state.regrets, state.last, state.weights))
        return self.policies_of(regrets + last if self.config.predictive else regrets, weights)


@dataclasses.dataclass(frozen=True, eq=False)
class TabularWithoutTree:
    """What solvers of a game whose payoffs factor share; tables are float64[E], player 0's entries, then player 1's."""

    config: Any
    game: Game

    @functools.cached_property
    def form(self) -> PlacementForm:
        """The game's sequences, built when first asked for."""
        return kept_form(self.game)

    @property
    def algorithm(self) -> Algorithm:
        """The solver as a learner; it has `init`, `iterate` and `tables`."""
        return Algorithm(
            self.init, self.iterate, self.policies, tables=self.tables, counts=("nodes",), has_network=False
        )

    def policies(self, state: Any) -> dict[str, Policy]:
        """Returns the policies that play the tables."""
        return {name: self.form.policy(table) for name, table in self.tables(jax.device_get(state)).items()}


class _CfrWithoutTree(TabularWithoutTree):
    """CFR on a game whose payoffs factor."""

    def init(self, key: Array) -> CfrState:
        entries = sum(own.num_entries for own in self.form.players)
        return CfrState(*np.zeros((3, entries)), np.int64(0), np.int32(0))

    def iterate(self, state: CfrState) -> tuple[CfrState, Metrics]:
        after = run_updates_without_tree(self.config, self.form, state, self.config.updates)
        after = after._replace(iteration=np.int32(after.iteration + 1))
        sets = 2 * self.config.updates * self.form.num_infosets
        return after, {"nodes": sets, "regret_positive": float(after.regrets.clip(min=0).sum())}

    def tables(self, state: CfrState) -> dict[str, Table]:
        """Returns the tables of the regrets, "current", and of the average."""
        regrets = state.regrets + state.last if self.config.predictive else state.regrets
        return {
            name: tuple(own.normalised(x) for own, x in zip(self.form.players, self.form.halves(x), strict=True))
            for name, x in (("current", regrets.clip(min=0)), ("average", np.asarray(state.weights)))
        }
