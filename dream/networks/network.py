"""What a network is here: pure functions on one observation, and how its first layer reads a view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from dream.networks.inputs import Inputs
from envs import EventLog, Game


class Network(NamedTuple):
    """A network whose first layer is linear in the inputs it selects from the observation.

    apply(params, x) = apply_inputs(params, inputs.of_observation(x))
                     = rest(params, inputs.of_observation(x) @ w + b) with (w, b) = first_layer(params),
    the last only where inputs.carries_log.

    Attributes:
      init: key -> params, a pytree of float32 arrays.
      apply: (params, observation float32[observation_size]) -> outputs.
      inputs: what the first layer sees.
      apply_inputs: (params, inputs float32[inputs.size]) -> outputs.
      first_layer: params -> (w[inputs.size, width] in the dtype of computation, b[width]).
      rest: (params, first layer's sums [width]) -> outputs; both None where the first layer is not linear.
      width: of the first layer.
      rated_by: names in params of the layers whose outputs are the advantages, where these do not start near 0.
      heads: (params, inputs) -> every head's output by its name, where the outputs are not all there is; else None.
      auxiliary_prediction: (params, inputs) -> (outputs, float32 prediction of game.auxiliary); None without that head.
    """

    init: Callable[[Array], Any]
    apply: Callable[[Any, Array], Any]
    inputs: Inputs
    apply_inputs: Callable[[Any, Array], Any]
    first_layer: Callable[[Any], tuple[Array, Array]] | None
    rest: Callable[[Any, Array], Any] | None
    width: int
    rated_by: tuple[str, ...] = ()
    heads: Callable[[Any, Array], dict[str, Array]] | None = None
    auxiliary_prediction: Callable[[Any, Array], tuple[Any, Array]] | None = None


class Carried(NamedTuple):
    """The first layer's sums over each player's log, carried along a game.

    Attributes:
      sums: float32[P, width].
      lengths: int32[P], log slots they cover.
    """

    sums: Array
    lengths: Array


class Reader(NamedTuple):
    """A network that reads the views of one game in order.

    Attributes:
      start: () -> memory, at the deal.
      prepare: params -> weights; outside the loop over decisions.
      read: (weights, memory, view, player) -> (outputs, memory).
    """

    start: Callable[[], Any]
    prepare: Callable[[Any], Any]
    read: Callable[[Any, Any, Any, Array], tuple[Any, Any]]


def make_reader(game: Game, network: Network) -> Reader:
    """Returns the cheapest reader: one that carries the log's share where the network sees the whole log.

    Args:
      game: whose views are read.
      network: on the game's observations.
    Returns:
      A Reader whose `read` equals network.apply(params, game.encode(view)) up to the order of summation.
    """
    return _log_reader(game, network) if network.inputs.carries_log else dense_reader(network)


def dense_reader(network: Network) -> Reader:
    """Returns the reader that multiplies all inputs at every decision."""

    def read(params: Any, memory: tuple[()], view: Any, player: Array) -> tuple[Any, tuple[()]]:
        return network.apply_inputs(params, network.inputs.of_view(view)), memory

    return Reader(lambda: (), lambda params: params, read)


def _log_reader(game: Game, network: Network) -> Reader:
    """Splits the first layer into the game's dense entries and a carried sum over its log.

    x @ w = dense(view) @ w[dense_indices] + sum over log slots t and entries r of values[t, r] * w[rows[t, r]],
    and a player's later view only adds slots, at most `growth` of them (see envs.EventLog).
    """
    log = game.event_log

    def prepare(params: Any) -> Any:
        w, b = network.first_layer(params)
        return params, w, w[log.dense_indices], b

    def start() -> Carried:
        return Carried(jnp.zeros((game.num_players, network.width)), jnp.zeros(game.num_players, jnp.int32))

    def read(weights: Any, carried: Carried, view: Any, player: Array) -> tuple[Any, Carried]:
        params, w, w_dense, b = weights
        carried, own = _extend(log, w, carried, view, player)
        dense = jnp.matmul(log.dense(view).astype(w.dtype), w_dense, preferred_element_type=jnp.float32)
        sums = dense + b + own
        return network.rest(params, sums), carried

    return Reader(start, prepare, read)


def _extend(log: EventLog, w: Array, carried: Carried, view: Any, player: Array) -> tuple[Carried, Array]:
    """Adds a view's new log slots to its player's sum; returns all sums and this one."""
    covered, length = carried.lengths[player], log.length(view)
    own = carried.sums[player]
    for new in range(log.growth):
        rows, values = log.slot(view, jnp.minimum(covered + new, log.slots - 1))
        values = jnp.where(covered + new < length, values, 0)
        # One row at a time into one player's sum: a CPU fuses this into a single pass, unlike a gather of all rows.
        for row, value in zip(rows, values, strict=True):
            own = own + value * w.at[row].get(mode="promise_in_bounds").astype(jnp.float32)
    sums = carried.sums.at[player].set(own)
    return Carried(sums, carried.lengths.at[player].set(length)), sums[player]
