"""Who sits opposite the learner: itself, fixed players, or a mixture of them, sampled anew for every game."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import Game, InputError, Policy, make_bot
from envs.batching import where_needed
from envs.errors import naming

SELF = "self"
"""The name of the learner as its own opponent."""
PAST_SELF = "past_self"
"""The name of the learner as it was some iterations before; see `policy_pool`."""


class Mixture(NamedTuple):
    """A mixture of opponents; opponent 0 is the learner itself, opponent n is players[n - 1].

    Attributes:
      players: the fixed ones; None stands for PAST_SELF, which the learner puts in.
      probabilities: float32[1 + players], of the learner itself, then of each fixed player.
      opponent_id_prob: share of games in which the observation names the learner's opponent, where the game's
        observation has room for it.
      past_selves: opponents that are past selves.
    """

    players: tuple[Policy | None, ...]
    probabilities: np.ndarray
    opponent_id_prob: float = 0.0
    past_selves: tuple[int, ...] = ()

    def with_past_self(self, policy: Policy) -> Mixture:
        """Returns the mixture with a past self put in."""
        return self._replace(players=tuple(policy if player is None else player for player in self.players))


class Seating(NamedTuple):
    """Who plays one game.

    Attributes:
      seat: int32, the learner's.
      opponent: int32, 0 for the learner itself.
      opponent_id: int32, the opponent as the observation names it, 0 for not at all.
    """

    seat: Array
    opponent: Array
    opponent_id: Array


def make_mixture(
    names: tuple[str, ...],
    shares: tuple[float, ...] | None,
    game: Game,
    find_player: Callable[[str, Game], Policy] = make_bot,
) -> Mixture:
    """Builds a mixture.

    Args:
      names: SELF, PAST_SELF, rule-based players by name, or paths of runs and checkpoints.
      shares: of games, one for each name, not all 0; None for equal ones.
      game: what they play.
      find_player: (name, game) -> Policy; by default rule-based players alone.
    Raises:
      InputError: no player, an unknown one, or shares that do not fit.
    """
    if not names:
        raise InputError("algo.opponents=[] is empty; it must name one opponent at least, such as self")
    shares = (1.0,) * len(names) if shares is None else shares
    if len(shares) != len(names) or not sum(shares) > 0:
        raise InputError(
            f"algo.shares={list(shares)} does not fit algo.opponents={list(names)}; "
            "it must give each opponent a share, not all 0"
        )
    with naming("algo.opponents"):
        found = {name: None if name == PAST_SELF else find_player(name, game) for name in names if name != SELF}
    fixed = [(found[name], share) for name, share in zip(names, shares, strict=True) if name != SELF]
    own = sum(share for name, share in zip(names, shares, strict=True) if name == SELF)
    probabilities = np.array([own, *(share for _, share in fixed)], np.float32) / sum(shares)
    players = tuple(player for player, _ in fixed)
    past_selves = tuple(n for n, player in enumerate(players, start=1) if player is None)
    return Mixture(players, probabilities, past_selves=past_selves)


def assign_seats(mixture: Mixture, num_players: int, key: Array) -> Seating:
    """Samples who plays a game: the learner's seat uniformly, its opponent by share; `key` is consumed.

    With more than two players, one opponent has all the other seats.
    """
    seat_key, opponent_key = jax.random.split(key)
    threshold = jax.random.uniform(opponent_key)
    opponent = jnp.sum(threshold >= np.cumsum(mixture.probabilities)[:-1], dtype=jnp.int32)
    opponent_id = jnp.int32(0)
    if mixture.opponent_id_prob:
        id_key, seat_key = jax.random.split(seat_key)
        opponent_id = jnp.where(jax.random.uniform(id_key) < mixture.opponent_id_prob, opponent, 0)
    return Seating(jax.random.randint(seat_key, (), 0, num_players, jnp.int32), opponent, opponent_id)


def is_learner(seating: Seating, player: Array) -> Array:
    """Returns whether a player is the learner: bool."""
    return (seating.opponent == 0) | (seating.seat == player)


def is_past_self(mixture: Mixture, seating: Seating, player: Array) -> Array:
    """Returns whether a player is the learner as it was: bool."""
    past = jnp.bool_(False)
    for n in mixture.past_selves:
        past |= seating.opponent == n
    return past & ~is_learner(seating, player)


def policy_at(
    mixture: Mixture, seating: Seating, player: Array, own: Array, view: Any, legal: Array, acts: Array | bool = True
) -> Array:
    """Returns the policy of whoever decides: float32[A]; fixed players run only in the games that need them.

    Args:
      mixture: the fixed players.
      seating: who plays this game.
      player: int32, who decides.
      own: float32[A], the learner's policy.
      view: what the player sees.
      legal: bool[A].
      acts: bool, whether anybody is to act here.
    """
    others = acts & ~is_learner(seating, player)
    for n, fixed in enumerate(mixture.players, start=1):
        share = float(mixture.probabilities[n])
        own = where_needed(others & (seating.opponent == n), fixed, own, view, legal, share=share)
    return own
