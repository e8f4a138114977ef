"""One player's fit: new samples are kept, and the regret network is fitted to what is kept."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dream.algorithms.counters import Counters
from dream.algorithms.deep.recipe import Recipe
from dream.algorithms.deep.regret_networks import (
    Batch,
    Row,
    batches_of,
    combined,
    fit_network,
    regret_loss,
    typical_size,
)
from dream.algorithms.deep.settings import DeepConfig
from dream.buffers import infoset_sums, reservoir
from dream.compiled.bounded import settled
from dream.game_tree.tree import Tree
from dream.networks import Network


class PlayerNetwork(NamedTuple):
    """One player's regret network and what it is fitted to; attributes as in RegretNetworks and DeepState."""

    params: Any
    fitted: Array
    scale: Array
    buffer: Any


@dataclasses.dataclass(frozen=True, eq=False)
class RegretFit:
    """Keeps samples and fits regret networks to them.

    Attributes:
      config: of the learner.
      recipe: its choices.
      network: of regrets.
      num_actions: A.
      find_tree: () -> (the game's tree, its table_index); asked for where samples are kept as sums by information set.
    """

    config: DeepConfig
    recipe: Recipe
    network: Network
    num_actions: int
    find_tree: Callable[[], tuple[Tree, dict[str, np.ndarray]]]

    @functools.cached_property
    def sets(self) -> infoset_sums.Sets:
        """The information sets as the network is fitted on them."""
        with jax.ensure_compile_time_eval():
            return infoset_sums.sets_of(*self.find_tree())

    def empty(self, row: Row) -> Any:
        """Returns a buffer without samples, from the shapes of one."""
        if self.recipe.infoset_sums:
            return infoset_sums.empty(self.find_tree()[0])
        return reservoir.empty(row, self.config.memory.capacity)

    def counters(self, player: int, decisions: int) -> Counters:
        """Counts one fit after a number of new decisions."""
        steps, rows = self.config.fit.steps, self.config.fit.batch_size
        if self.recipe.infoset_sums:
            rows = int(np.sum(self.sets.real[player]))
        read_before = decisions if self.recipe.cumulative_target is not None else 0
        return Counters(gradient_steps=steps, network_rows=steps * rows + read_before)

    @functools.partial(jax.jit, static_argnums=0)
    def __call__(
        self, own: PlayerNetwork, rows: Row, valid: Array, player: Array, iteration: Array, key: Array
    ) -> tuple[PlayerNetwork, dict[str, Array]]:
        """Keeps new samples and fits.

        Args:
          own: the player's network and buffer.
          rows: new samples, leading axis [N].
          valid: bool[N].
          player: int32.
          iteration: int32, from 0.
          key: consumed.
        Returns:
          (network and buffer, metrics: loss, gradient_norm, samples, target_scale).
        """
        add_key, sample_key, fit_key = jax.random.split(key, 3)
        params, fitted, scale, buffer = own
        if self.recipe.cumulative_target is not None:
            rows = self._cumulative(own, rows, iteration)
            buffer = jax.tree.map(jnp.zeros_like, buffer)
        if self.recipe.infoset_sums:
            buffer = infoset_sums.add(buffer, self.sets, rows, valid)
            typical, batch = self._whole_batch(buffer, player)
        else:
            buffer = settled(reservoir.add(buffer, rows, valid, add_key, kind=self.recipe.row_buffer))
            kept, weights = buffer.rows, jnp.where(reservoir.held(buffer), buffer.rows.weight, 0.0)
            typical = typical_size(weights, kept.target, self._unpacked(kept.legal))
            batch = batches_of(self.network, buffer, self.config.fit.batch_size, sample_key)
        scale = typical if self.recipe.cumulative_target is None else jnp.where(fitted, scale, typical)
        loss = functools.partial(regret_loss, self.config.regrets.head, scale=scale)
        new, metrics = fit_network(self.network, self.config.fit, loss, params, batch, fit_key)
        # Without samples the network stays as it is, even where each fit begins with fresh parameters.
        has_samples = buffer.seen > 0
        params = jax.tree.map(functools.partial(jnp.where, has_samples), new, params)
        metrics |= {"samples": buffer.seen, "target_scale": scale}
        return PlayerNetwork(params, fitted | has_samples, scale, buffer), metrics

    def _whole_batch(self, sums: infoset_sums.Sums, player: Array) -> tuple[Array, Callable[[Array], Batch]]:
        """Returns the targets' typical size, and all of a player's information sets as the batch of every step."""
        views, legal, targets, weights = infoset_sums.rows_of(sums, self.sets, player)
        x = jax.vmap(self.network.inputs.of_view)(views)
        batch = Batch(x, legal, targets, weights / jnp.maximum(jnp.mean(weights), 1e-30))
        return typical_size(weights, targets, legal), lambda step: batch

    def _cumulative(self, own: PlayerNetwork, rows: Row, iteration: Array) -> Row:
        """Returns the rows with what the network predicted before, discounted, added to this iteration's regrets."""
        legal = self._unpacked(rows.legal)
        outputs = self.network.apply_inputs(own.params, jax.vmap(self.network.inputs.of_view)(rows.view))
        predicted = own.scale * combined(self.config.regrets.head, outputs, legal)
        before = self.recipe.cumulative_target(predicted, iteration)
        return rows._replace(target=rows.target + jnp.where(own.fitted, before, 0.0))

    def _unpacked(self, legal: Array) -> Array:
        return jnp.unpackbits(legal, axis=-1, count=self.num_actions).astype(bool)
