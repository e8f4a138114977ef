"""What a network is here: pure functions on one observation, and how its first layer reads a view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from envs import Game


class Network(NamedTuple):
    """A network whose first layer is linear.

    apply(params, x) = rest(params, x @ w + b) with (w, b) = first_layer(params).

    Attributes:
      init: key -> params, a pytree of float32 arrays.
      apply: (params, observation float32[N]) -> outputs.
      first_layer: params -> (w[N, width], b[width]), in the dtype of computation.
      rest: (params, first layer's sums [width]) -> outputs.
      width: of the first layer.
    """

    init: Callable[[Array], Any]
    apply: Callable[[Any, Array], Any]
    first_layer: Callable[[Any], tuple[Array, Array]]
    rest: Callable[[Any, Array], Any]
    width: int


class Carried(NamedTuple):
    """The first layer's sums over each player's log, carried along a game.

    Attributes:
      sums: float[P, width].
      lengths: int32[P], log slots they cover.
    """

    sums: Array
    lengths: Array


class LogReader(NamedTuple):
    """A network that reads views and multiplies only what is new in their logs.

    Attributes:
      start: () -> Carried, at the deal.
      prepare: params -> weights; outside the loop over decisions.
      read: (weights, Carried, view, player) -> (outputs, Carried).
    """

    start: Callable[[], Carried]
    prepare: Callable[[Any], Any]
    read: Callable[[Any, Carried, Any, Array], tuple[Any, Carried]]


def log_reader(game: Game, network: Network) -> LogReader:
    """Splits a network's first layer into the game's dense entries and a carried sum over its log.

    x @ w = dense(view) @ w[dense_indices] + sum over log slots t and entries r of values[t, r] * w[rows[t, r]],
    and a player's later view only adds slots, at most game.log_growth of them.

    Args:
      game: tells the parts of its observation (see envs.Game.log_slot).
      network: on the game's observations.
    Returns:
      A LogReader whose `read` equals network.apply(params, game.encode(view)) up to the order of summation.
    """

    def prepare(params: Any) -> Any:
        w, b = network.first_layer(params)
        return params, w, w[game.dense_indices], b

    def start() -> Carried:
        return Carried(jnp.zeros((game.num_players, network.width)), jnp.zeros(game.num_players, jnp.int32))

    def read(weights: Any, carried: Carried, view: Any, player: Array) -> tuple[Any, Carried]:
        params, w, w_dense, b = weights
        sums = game.dense(view).astype(w.dtype) @ w_dense + b
        if game.log_slots:
            carried, own = _extend(game, w, carried, view, player)
            sums = sums + own.astype(w.dtype)
        return network.rest(params, sums), carried

    return LogReader(start, prepare, read)


def _extend(game: Game, w: Array, carried: Carried, view: Any, player: Array) -> tuple[Carried, Array]:
    """Adds a view's new log slots to its player's sum; returns all sums and this one."""
    covered, length = carried.lengths[player], game.log_length(view)
    own = carried.sums[player]
    for new in range(game.log_growth):
        rows, values = game.log_slot(view, jnp.minimum(covered + new, game.log_slots - 1))
        values = jnp.where(covered + new < length, values, 0)
        # One row at a time into one player's sum: a CPU fuses this into a single pass, unlike a gather of all rows.
        for row, value in zip(rows, values, strict=True):
            own = own + value * w.at[row].get(mode="promise_in_bounds").astype(jnp.float32)
    sums = carried.sums.at[player].set(own)
    return Carried(sums, carried.lengths.at[player].set(length)), sums[player]
