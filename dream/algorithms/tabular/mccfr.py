"""Monte Carlo counterfactual regret minimisation: external and outcome sampling, with or without a baseline.

One update samples B traversals for player 0, then B for player 1 against the newest policy of the other, and adds the
mean of their estimates (dream/game_tree/sampling.py defines w, u and b):

    R(I, a) += mean over traversals of sum over own h met in I of w(h) (u(h, a) - u(h)),
    C(I, a) += t^power * mean over traversals of sum over the opponent's h met in I of w(h) policy(I, a);

the policy is regret matching on R, and the average policy is C / sum over b of C(I, b). Both estimates are unbiased:
the first of CFR's regret, the second of the realisation plan times a constant of the set. The second is the
stochastically weighted averaging of Lanctot (own reach over the probability of being sampled), computed where the
player is the opponent: there its actions are sampled from its own policy, so its reach cancels and w, at most
prod |A| / exploration, is left.

All B traversals use the same policy, so an update makes less progress than B updates of one traversal, and costs less.
Averaging over them makes regrets comparable with CFR's and changes no policy, as regret matching is scale-invariant.

Baselines are moved towards u(c), the value after the action that was followed, by the share 1 - (1 - rate)^n of the
distance to the mean of an update's n samples, as by n steps of size `rate`.
Sources: Lanctot et al. 2009; Lanctot 2013, "Monte Carlo sampling and regret minimization", section 4.6 (averaging);
Schmid et al. 2019 (baselines; theirs are updated with u(h, a), which divides by xi, these with u(c); `plus` with
average_power 1 is their VR-MCCFR+); Davis et al. 2020 (baselines by history).
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

from dream.algorithms.tabular.cfr import MOST_POWER, Tabular
from dream.algorithms.tabular.iterations import run_iterations
from dream.algorithms.types import Algorithm, Metrics, Resources, needs_tree
from dream.compiled.bounded import BoundedCalls
from dream.config.settings import choice, number
from dream.game_tree.sampling import BASELINES, SamplingTree, Scheme, Visits, sampling_tree, traverse
from envs import Game, Policy
from envs.errors import InputError


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExternalConfig:
    """Settings of external sampling; conf/algo/external_mccfr.yaml says what each does."""

    name: str = "external_mccfr"
    trajectories: int = number(1024, 1)
    batch: int = number(64, 1)
    baseline: str = choice("none", *BASELINES)
    baseline_rate: float = number(0.5, 0, 1, above=True)
    plus: bool = False
    average_power: float = number(0.0, 0, MOST_POWER)


@dataclasses.dataclass(frozen=True, kw_only=True)
class OutcomeConfig(ExternalConfig):
    """Settings of outcome sampling; conf/algo/outcome_mccfr.yaml says what each does."""

    name: str = "outcome_mccfr"
    exploration: float = number(0.6, 0, 1, above=True)


class MccfrState(NamedTuple):
    """All that a run needs to go on.

    Attributes:
      regrets, weights: float64[I, A], R and C.
      baseline: float64[I, A] by information set, [N + 1] by history, [1] where there is none.
      counts: int64[3], histories met so far: those that gave a regret, those in play, all.
      updates: int64, done so far.
      key: PRNG key, the run's.
      iteration: int32, the run's.
    """

    regrets: Array
    weights: Array
    baseline: Array
    counts: Array
    updates: Array
    key: Array
    iteration: Array


def scheme_of(config: ExternalConfig) -> Scheme:
    """Returns how a configuration samples."""
    exploration = getattr(config, "exploration", None)
    return Scheme(exploration is None, exploration or 0.0, config.baseline)


def update(config: ExternalConfig, tree: SamplingTree, state: MccfrState) -> MccfrState:
    """Samples and learns from one batch of traversals for each player in turn."""
    key = jax.random.fold_in(state.key, state.updates)
    bits = jax.random.bits(key, (2, tree.num_draws, config.batch), jnp.uint32)
    for player in range(2):
        draws = bits[player].astype(jnp.float64) * 2.0**-32
        levels = traverse(scheme_of(config), tree, state.regrets, state.baseline, player, draws)
        state = learn(config, tree, state, levels, player)
    return state._replace(updates=state.updates + 1)


def learn(
    config: ExternalConfig, tree: SamplingTree, state: MccfrState, levels: list[Visits], player: int
) -> MccfrState:
    """Adds what a batch of traversals for a player met to regrets, average and baseline."""
    regrets, weights, nowhere = state.regrets, state.weights, tree.num_infosets
    time = (state.updates + 1).astype(jnp.float64) ** config.average_power
    own = [jnp.where(visits.own, visits.infoset, nowhere) for visits in levels]
    for visits, mine, actors in zip(levels, own, tree.actors, strict=True):
        weight = visits.weight[:, :, None] / config.batch
        if actors[player]:
            value = jnp.sum(visits.policy * visits.values, axis=2, keepdims=True)
            regret = jnp.where(visits.legal, weight * (visits.values - value), 0.0)
            regrets = regrets.at[mine].add(regret, mode="drop")
        if actors[1 - player]:
            others = jnp.where(visits.own, nowhere, visits.infoset)
            weights = weights.at[others].add(time * weight * visits.policy, mode="drop")
    if config.plus:
        for mine in own:
            regrets = regrets.at[mine].max(0.0, mode="drop")
    decisions = sum(jnp.sum(visits.own) for visits in levels)
    nodes = sum(jnp.sum(visits.infoset < nowhere) for visits in levels)
    followed = sum(jnp.sum(visits.followed > 0) for visits in levels)
    return state._replace(
        regrets=regrets,
        weights=weights,
        baseline=_moved(config, state.baseline, levels, player),
        counts=state.counts + jnp.stack([decisions, nodes, config.batch + followed]),
    )


def _moved(config: ExternalConfig, baseline: Array, levels: list[Visits], player: int) -> Array:
    """Returns the baseline, moved towards the values below the actions that were followed."""
    if config.baseline == "none":
        return baseline
    entries, samples = [], []
    for visits in levels:
        entry, sign = visits.child, 1.0 - 2.0 * player
        if config.baseline == "average":
            actions = visits.policy.shape[2]
            entry = visits.infoset[:, :, None] * actions + np.arange(actions, dtype=np.int32)
            sign = jnp.where(visits.own, 1.0, -1.0)[:, :, None]
        entries.append(jnp.where(visits.followed > 0, entry, baseline.size).reshape(-1))
        samples.append((sign * visits.below).reshape(-1))
    entry, sample, flat = jnp.concatenate(entries), jnp.concatenate(samples), baseline.reshape(-1)
    count = jnp.zeros(flat.shape).at[entry].add(1.0, mode="drop")[entry]
    step = (1 - (1 - config.baseline_rate) ** count) / jnp.maximum(count, 1.0)
    return flat.at[entry].add(step * (sample - flat[entry]), mode="drop").reshape(baseline.shape)


@functools.partial(jax.jit, static_argnums=0)
def run_updates(
    config: ExternalConfig, tree: SamplingTree, state: MccfrState, iterations: Array | int
) -> tuple[MccfrState, tuple[Array, Array]]:
    """Runs iterations of `trajectories / batch` updates each, in one compiled loop (float64: under jax.enable_x64).

    Returns:
      (the state after them; of each the state's `counts` and the sum of positive regrets: int64[MOST, 3],
      float64[MOST]).
    """

    def report(state: MccfrState) -> tuple[Array, Array]:
        return state.counts, jnp.sum(state.regrets.clip(min=0))

    updates = config.trajectories // config.batch
    after, reports = run_iterations(lambda at: update(config, tree, at), report, state, updates, iterations)
    return after._replace(iteration=(state.iteration + iterations).astype(jnp.int32)), reports


@functools.lru_cache(maxsize=64)
def _update_calls(config: ExternalConfig) -> BoundedCalls:
    return BoundedCalls(functools.partial(inspect.unwrap(run_updates), config), x64=True)


def make(config: ExternalConfig, network: Any, game: Game, resources: Resources) -> Algorithm:
    """Builds the solver; the tree is expanded when it starts, the network node is not used.

    Raises:
      InputError: the game is not enumerable, or the batch does not divide the trajectories.
    """
    if config.trajectories % config.batch:
        raise InputError(
            f"algo.trajectories={config.trajectories} is not valid; it must be a multiple of algo.batch={config.batch}"
        )
    needs_tree(config.name, game)
    solver = _Mccfr(config, game, resources)
    return solver.algorithm


class _Mccfr(Tabular):
    """MCCFR on the tree's arrays."""

    counts = ("nodes", "episodes")

    def init(self, key: Array) -> MccfrState:
        zeros = np.zeros(self.tree.legal.shape)
        sizes = {"none": 1, "average": zeros.shape, "history": self.tree.num_histories + 1}
        baseline = np.zeros(sizes[self.config.baseline])
        return MccfrState(zeros, zeros, baseline, np.zeros(3, np.int64), np.int64(0), key, np.int32(0))

    def several(self, state: MccfrState, iterations: int) -> Generator[None, None, tuple[MccfrState, list[Metrics]]]:
        with jax.enable_x64(True):
            tree = sampling_tree(self.tree)
        after, reports = yield from _update_calls(self.config)(tree, state, np.int64(iterations))
        after, (counts, positive) = jax.device_get((after._replace(key=None), reports))
        done = np.diff(counts[:iterations], axis=0, prepend=np.asarray(state.counts)[None])
        metrics = [
            {
                "episodes": 2 * self.config.trajectories,
                **dict(zip(("decisions", "nodes", "transitions"), counted, strict=True)),
                "regret_positive": regret,
            }
            for counted, regret in zip(done.tolist(), positive[:iterations].tolist(), strict=True)
        ]
        return after._replace(key=state.key), metrics

    def policies(self, state: MccfrState) -> dict[str, Policy]:
        return self.policies_of(*jax.device_get((state.regrets, state.weights)))
