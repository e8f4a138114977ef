"""The state of a deep regret minimiser, and the shapes of the rows that it keeps."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dream.algorithms.deep.history_values import Transition, ValueState
from dream.algorithms.deep.regret_networks import Row
from dream.buffers.reservoir import ReservoirBuffer
from envs import Game


class RegretNetworks(NamedTuple):
    """Both players' regret networks.

    Attributes:
      params: leading axis [2].
      fitted: bool[2], whether they have been fitted.
      scales: float32[2], what their outputs are multiplied by to be regrets.
    """

    params: Any
    fitted: Array
    scales: Array


class AverageNetworks(NamedTuple):
    """Both players' average networks.

    Attributes:
      params: leading axis [2].
      fitted: bool, whether they have been fitted.
      buffers: of Row, the decisions they are fitted to, one for each player.
    """

    params: Any
    fitted: Array
    buffers: tuple[ReservoirBuffer, ReservoirBuffer]


class DeepState(NamedTuple):
    """All that a run needs to go on.

    Attributes:
      networks: of regrets.
      buffers: samples of regrets, one for each player: ReservoirBuffer of Row, or Sums.
      values: the history value function; None without one.
      plans: float64[I, A], the exact average's realisation plans; None with average networks.
      average: the average networks; None with an exact average.
      key: PRNG key.
      iteration: int32, completed iterations.
    """

    networks: RegretNetworks
    buffers: tuple[Any, Any]
    values: ValueState | None
    plans: np.ndarray | None
    average: AverageNetworks | None
    key: Array
    iteration: Array


def row_shapes(game: Game) -> Row:
    """Returns the shapes of one sample."""

    def one() -> Row:
        state = game.init(jax.random.key(0))
        view, legal = game.view(state, jnp.int32(0)), jnp.packbits(game.legal_actions(state))
        return Row(view, legal, jnp.zeros(game.num_actions, jnp.float32), jnp.float32(0))

    return jax.eval_shape(one)


def transition_shapes(game: Game) -> Transition:
    """Returns the shapes of one move."""
    row = row_shapes(game)
    views = jax.tree.map(lambda x: jax.ShapeDtypeStruct((2, *x.shape), x.dtype), row.view)
    one = functools.partial(jax.ShapeDtypeStruct, ())
    return Transition(
        views=views,
        legal=row.legal,
        action=one(jnp.int16),
        reward=one(jnp.float32),
        done=one(jnp.bool_),
        next_views=views,
        next_legal=row.legal,
        next_player=one(jnp.int8),
        next_policy=row.target,
    )


def with_player(pair: tuple[Any, Any], player: int, new: Any) -> tuple[Any, Any]:
    """Returns a pair with one player's part replaced."""
    return (new, pair[1]) if player == 0 else (pair[0], new)


def params_of(params: Any, player: Any) -> Any:
    """Returns one player's parameters, from those of both."""
    return jax.tree.map(lambda both: both[player], params)


def with_params(params: Any, player: Any, own: Any) -> Any:
    """Returns both players' parameters with one player's replaced."""
    return jax.tree.map(lambda both, x: both.at[player].set(x), params, own)
