"""The average policy: the exact mixture of all policies so far on a game's tree, or networks fitted to samples."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dream.algorithms.counters import Counters
from dream.algorithms.deep.regret_networks import Row, batches_of, fit_network, own_outputs, strategy_loss
from dream.algorithms.deep.settings import DeepConfig
from dream.algorithms.deep.state import AverageNetworks, params_of, with_params
from dream.buffers import reservoir
from dream.buffers.reservoir import ReservoirBuffer
from dream.equations.regret_matching import masked_softmax
from dream.game_tree.sequence_form import PlayerSequences, realisation, sequence_form
from dream.game_tree.tree import Tree
from dream.networks import Network
from envs.random_play import uniform


def plans_with(plans: np.ndarray, tree: Tree, player: int, table: np.ndarray, weight: float) -> np.ndarray:
    """Returns the average's realisation plans with a player's policy added.

    Args:
      plans: float64[I, A], sums so far.
      tree: the game's.
      player: whose policy is added.
      table: float[I, A], the policies of both players.
      weight: of the policy.
    """
    own = sequence_form(tree)[player]
    with jax.enable_x64(True):
        plan = np.asarray(_realised(own, jnp.asarray(table, jnp.float64)))
    plans = np.array(plans)
    plans[own.first_infoset : own.first_infoset + len(plan)] += weight * plan
    return plans


@jax.jit
def _realised(own: PlayerSequences, table: Array) -> Array:
    """Returns a player's realisation plan, float64[J, A], from both players' policies."""
    return own.table(realisation(own, own.entries(table))[1:])


@dataclasses.dataclass(frozen=True, eq=False)
class NetworkAverage:
    """Fits average networks to sampled decisions.

    Attributes:
      config: of the learner.
      network: of the average, one for each player.
    """

    config: DeepConfig
    network: Network

    @functools.partial(jax.jit, static_argnums=0)
    def add(self, buffer: ReservoirBuffer, rows: Row, valid: Array, key: Array) -> ReservoirBuffer:
        """Offers decisions, rows of a policy, to a player's buffer; `key` is consumed."""
        return reservoir.add(buffer, rows, valid, key, kind="reservoir")

    @functools.partial(jax.jit, static_argnums=0)
    def fit(self, average: AverageNetworks, key: Array) -> AverageNetworks:
        """Fits each player's network to its own decisions; `key` is consumed."""
        params, _, buffers = average
        config = self.config.average.fit
        for player in range(2):
            sample_key, fit_key = jax.random.split(jax.random.fold_in(key, player))
            batch = batches_of(self.network, buffers[player], config.batch_size, sample_key)
            old = params_of(params, player)
            own, _ = fit_network(self.network, config, strategy_loss, old, batch, fit_key)
            own = jax.tree.map(functools.partial(jnp.where, buffers[player].seen > 0), own, old)
            params = with_params(params, player, own)
        return AverageNetworks(params, jnp.bool_(True), buffers)

    @property
    def fit_counters(self) -> Counters:
        """Counts one fit of both players' networks."""
        steps = 2 * self.config.average.fit.steps
        return Counters(gradient_steps=steps, network_rows=steps * self.config.average.fit.batch_size)

    def play(self, params: Any, view: Any, legal: Array) -> Array:
        """Returns the average policy, uniform until it is first fitted: float32[A]."""
        logits, _ = own_outputs(self.network, params["networks"], view, view.seat.astype(jnp.int32))
        return jnp.where(params["fitted"], masked_softmax(logits, legal), uniform(legal).astype(logits.dtype))
