"""What of an observation a network's first layer multiplies: all of it, or its dense part and the newest events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import EventLog, Game


class Inputs(NamedTuple):
    """A selection of the observation, from the vector and from the view.

    Attributes:
      size: numbers selected.
      of_observation: float32[observation_size] -> float32[size].
      of_view: view -> float32[size], equal to of_observation(encode(view)).
      carries_log: whether the selection is the whole observation, whose log's share of a linear layer can be carried
        along a game.
    """

    size: int
    of_observation: Callable[[Array], Array]
    of_view: Callable[[Any], Array]
    carries_log: bool


def whole(game: Game) -> Inputs:
    """Selects everything."""
    return Inputs(game.observation_size, lambda observation: observation, game.encode, game.event_log is not None)


def window(log: EventLog, slots: int) -> Inputs:
    """Selects the dense entries and the newest log slots, newest first, zeros where there are fewer.

    Aligned to the newest event, the same fact always meets the same weights, and a card game's present turn is in its
    last few events: the layer is small and each of its weights sees many examples.

    Args:
      log: of at least `slots` slots.
      slots: how many.
    """
    dense, width = log.dense_indices, log.width
    span = slice(log.offset, log.offset + log.slots * width)
    newest_first = np.arange(slots)

    def of_observation(observation: Array) -> Array:
        rows = observation[span].reshape(log.slots, width)
        places = jnp.sum(jnp.any(rows != 0, axis=1)) - 1 - newest_first
        newest = jnp.where(places[:, None] >= 0, rows[jnp.maximum(places, 0)], 0.0)
        return jnp.concatenate([observation[dense], newest.reshape(-1)])

    def slot(view: Any, place: Array) -> Array:
        rows, values = log.slot(view, jnp.maximum(place, 0))
        columns = rows - log.offset - width * place
        entries = jnp.where(columns[:, None] == np.arange(width), values[:, None], 0.0)
        return jnp.where(place >= 0, jnp.sum(entries, axis=0), 0.0)

    def of_view(view: Any) -> Array:
        newest = jax.vmap(slot, in_axes=(None, 0))(view, log.length(view) - 1 - newest_first)
        return jnp.concatenate([log.dense(view), newest.reshape(-1)])

    return Inputs(len(dense) + slots * width, of_observation, of_view, carries_log=False)


def of_all_players(game: Game, seen: Inputs) -> Inputs:
    """Selects from the observations of all players, put one after the other: a game's history, as far as anyone saw it.

    Args:
      game: what is observed.
      seen: what to select of each player's observation.
    Returns:
      Inputs whose observation is float32[P, observation_size] and whose view has the leading axis [P].
    """

    def of_observation(observations: Array) -> Array:
        return jax.vmap(seen.of_observation)(observations).reshape(-1)

    def of_view(views: Any) -> Array:
        return jax.vmap(seen.of_view)(views).reshape(-1)

    return Inputs(game.num_players * seen.size, of_observation, of_view, carries_log=False)
