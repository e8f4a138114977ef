"""Who sits opposite the learner: itself, fixed players, or a mixture drawn anew for every game."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dream.policies import find_player
from envs import Game, InputError, Policy
from envs.batching import where_needed

SELF = "self"
"""The name of the learner as its own opponent."""


class Mixture(NamedTuple):
    """A mixture of opponents.

    Attributes:
      players: the fixed ones.
      chances: float32[1 + players], the chance of the learner itself, then of each fixed player.
    """

    players: tuple[Policy, ...]
    chances: np.ndarray


class Table(NamedTuple):
    """Who plays one game: the learner's seat int32, and its opponent int32, 0 for itself."""

    seat: Array
    opponent: Array


def make_mixture(names: tuple[str, ...], shares: tuple[float, ...] | None, game: Game) -> Mixture:
    """Builds a mixture.

    Args:
      names: SELF, rule-based players by name, or paths of runs and checkpoints.
      shares: of games, one a name, not all 0; None for equal ones.
      game: what they play.
    Raises:
      InputError: an unknown player, or shares that do not fit.
    """
    shares = shares or (1.0,) * len(names)
    if len(shares) != len(names) or not sum(shares) > 0:
        raise InputError(
            f"algo.shares={list(shares)} does not fit algo.opponents={list(names)}; "
            "it must give each opponent a share, not all 0"
        )
    fixed = [(find_player(name, game), share) for name, share in zip(names, shares, strict=True) if name != SELF]
    own = sum(share for name, share in zip(names, shares, strict=True) if name == SELF)
    chances = np.array([own, *(share for _, share in fixed)], np.float32) / sum(shares)
    return Mixture(tuple(player for player, _ in fixed), chances)


def seat(mixture: Mixture, players: int, key: Array) -> Table:
    """Draws who plays a game: the learner's seat with equal chances, its opponent by share; `key` is consumed.

    With more than two players, one opponent has all the other seats.
    """
    seat_key, opponent_key = jax.random.split(key)
    drawn = jax.random.uniform(opponent_key)
    opponent = jnp.sum(drawn >= np.cumsum(mixture.chances)[:-1], dtype=jnp.int32)
    return Table(jax.random.randint(seat_key, (), 0, players, jnp.int32), opponent)


def is_learner(table: Table, player: Array) -> Array:
    """Returns whether a player is the learner: bool."""
    return (table.opponent == 0) | (table.seat == player)


def policy_at(mixture: Mixture, table: Table, player: Array, own: Array, view: Any, legal: Array) -> Array:
    """Returns the policy of whoever decides: float32[A]; fixed players run only in the lanes that need them.

    Args:
      mixture: the fixed players.
      table: who plays this game.
      player: int32, who decides.
      own: float32[A], the learner's policy.
      view: what the player sees.
      legal: bool[A].
    """
    others = ~is_learner(table, player)
    for n, fixed in enumerate(mixture.players, start=1):
        own = where_needed(others & (table.opponent == n), fixed, own, view, legal)
    return own
