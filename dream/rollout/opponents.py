"""Who sits opposite the learner: itself, fixed players, or a mixture drawn anew for every game."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import Game, InputError, Policy, make_bot
from envs.batching import where_needed

SELF = "self"
"""The name of the learner as its own opponent."""
FROZEN = "frozen"
"""The name of the learner as it was at some iteration before; see `Ring`."""


class Mixture(NamedTuple):
    """A mixture of opponents.

    Attributes:
      players: the fixed ones; None stands for FROZEN, to be put in by the learner.
      chances: float32[1 + players], the chance of the learner itself, then of each fixed player.
      told: share of games in which the learner is told whom it faces, where the game's observation has room for that.
    """

    players: tuple[Policy | None, ...]
    chances: np.ndarray
    told: float = 0.0

    @property
    def has_frozen(self) -> bool:
        """Whether the learner's past selves are among the players."""
        return None in self.players

    def with_frozen(self, policy: Policy) -> Mixture:
        """Returns the mixture with a past self put in."""
        return self._replace(players=tuple(policy if player is None else player for player in self.players))


class Ring(NamedTuple):
    """Past parameters of a learner, the latest in the place of the oldest.

    Attributes:
      params: pytree with leading axis [slots].
      pushed: int32, how often parameters were put in; at first every slot holds those put in first.
    """

    params: Any
    pushed: Array


def make_ring(params: Any, slots: int) -> Ring:
    """Returns a ring that holds one set of parameters in every slot."""
    return Ring(jax.tree.map(lambda x: jnp.repeat(x[None], slots, axis=0), params), jnp.int32(1))


def push(ring: Ring, params: Any, when: Array) -> Ring:
    """Puts parameters in the oldest's place where `when`, bool, says so."""
    slots = jax.tree.leaves(ring.params)[0].shape[0]
    here = (np.arange(slots) == ring.pushed % slots) & when

    def put(old: Array, new: Array) -> Array:
        return jnp.where(here.reshape((-1,) + (1,) * new.ndim), new, old)

    return Ring(jax.tree.map(put, ring.params, params), ring.pushed + when)


def draw_past(ring: Ring, key: Array) -> Any:
    """Draws one of the parameters put in and not yet overwritten, with equal chances; `key` is consumed."""
    slots = jax.tree.leaves(ring.params)[0].shape[0]
    slot = jax.random.randint(key, (), 0, jnp.minimum(ring.pushed, slots))
    return jax.tree.map(lambda x: x[slot], ring.params)


class Table(NamedTuple):
    """Who plays one game.

    Attributes:
      seat: int32, the learner's.
      opponent: int32, 0 for itself.
      named: int32, the opponent as the learner is told of it, 0 for not at all.
    """

    seat: Array
    opponent: Array
    named: Array


def make_mixture(
    names: tuple[str, ...],
    shares: tuple[float, ...] | None,
    game: Game,
    find_player: Callable[[str, Game], Policy] = make_bot,
) -> Mixture:
    """Builds a mixture.

    Args:
      names: SELF, FROZEN, rule-based players by name, or paths of runs and checkpoints.
      shares: of games, one a name, not all 0; None for equal ones.
      game: what they play.
      find_player: (name, game) -> Policy; by default rule-based players alone.
    Raises:
      InputError: an unknown player, or shares that do not fit.
    """
    shares = shares or (1.0,) * len(names)
    if len(shares) != len(names) or not sum(shares) > 0:
        raise InputError(
            f"algo.shares={list(shares)} does not fit algo.opponents={list(names)}; "
            "it must give each opponent a share, not all 0"
        )
    found = {name: None if name == FROZEN else find_player(name, game) for name in names if name != SELF}
    fixed = [(found[name], share) for name, share in zip(names, shares, strict=True) if name != SELF]
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
    named = jnp.int32(0)
    if mixture.told:
        told_key, seat_key = jax.random.split(seat_key)
        named = jnp.where(jax.random.uniform(told_key) < mixture.told, opponent, 0)
    return Table(jax.random.randint(seat_key, (), 0, players, jnp.int32), opponent, named)


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
