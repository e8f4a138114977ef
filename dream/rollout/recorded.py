"""Recorded games as decisions to learn from: each is played through its game, and every decision kept as a view."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dream.equations.returns import lambda_returns
from envs import Game, InputError
from envs.records import Record, replay

_AT_ONCE = 64
"""Games played through in one call."""


class Shown(NamedTuple):
    """One decision that somebody made; every field has a leading axis.

    Attributes:
      view: what the player saw.
      legal: uint8[ceil(A / 8)], the legal actions, packed by jnp.packbits.
      action: int16, the one taken.
      returns: float32, what the player's rewards came to from there on, this action's among them.
    """

    view: Any
    legal: Array
    action: Array
    returns: Array


def own_returns(rewards: Array, dones: Array, players: Array) -> Array:
    """Returns what whoever decided earns from each transition of a stream to its game's end: float32[T].

    Args:
      rewards: float32[T, P], paid on transition t.
      dones: bool[T], whether transition t ended a game.
      players: int32[T], who decided.
    """
    return lambda_returns(rewards, dones, players, jnp.zeros(len(dones), rewards.dtype), discount=1.0, gae_lambda=1.0)


def decisions(game: Game, records: Sequence[Record], players: Collection[str] | None = None) -> tuple[Shown, Any]:
    """Returns the decisions of recorded games, in order.

    Args:
      game: whose games they are; its payoffs count.
      records: of finished games, each checked as `envs.records.replay` does.
      players: names of those whose decisions are kept; None: everyone's.
    Returns:
      (NumPy arrays of Shown, leading axis [N]; number of each one's record, int32[N]).
    Raises:
      InputError: a record that is not what it says, by name.
    """
    parts, numbers = [], []
    for start in range(0, len(records), _AT_ONCE):
        some = records[start : start + _AT_ONCE]
        states, actions = _stacked(game, some)
        rows, seats = jax.device_get(_walk(game, states, actions))
        wanted = np.zeros(seats.shape, bool)
        for n, one in enumerate(some):
            own = [players is None or (seat < len(one.players) and one.players[seat] in players)
                   for seat in range(game.num_players)]  # fmt: skip
            wanted[n, : len(one.actions)] = np.array(own)[seats[n, : len(one.actions)]]
        parts.append(jax.tree.map(lambda x, wanted=wanted: x[wanted], rows))
        numbers.append(np.broadcast_to(start + np.arange(len(wanted))[:, None], wanted.shape)[wanted])
    return jax.tree.map(lambda *xs: np.concatenate(xs), *parts), np.concatenate(numbers).astype(np.int32)


def _stacked(game: Game, records: Sequence[Record]) -> tuple[Any, np.ndarray]:
    """Returns the deals and the actions int32[_AT_ONCE, max_length] of checked records, the first one's repeated."""
    deals, actions = [], np.zeros((_AT_ONCE, game.max_length), np.int32)
    for n, one in enumerate(records):
        replay(one)
        try:
            deals.append(jax.device_get(game.from_deal(one.deal)))
        except InputError as error:
            raise InputError(f"{one.place}: {error}") from error
        actions[n, : len(one.actions)] = one.actions
    deals += [deals[0]] * (_AT_ONCE - len(deals))
    return jax.tree.map(lambda *xs: np.stack(xs), *deals), actions


@functools.partial(jax.jit, static_argnums=0)
def _walk(game: Game, states: Any, actions: Array) -> tuple[Shown, Array]:
    """Plays games at once: (Shown, who decided), leading axes [games, max_length]; nothing is meant after the end."""

    def one(state: Any, actions: Array) -> tuple[Shown, Array]:
        def body(state: Any, action: Array) -> tuple[Any, tuple[Any, ...]]:
            player = jnp.maximum(state.current_player.astype(jnp.int32), 0)
            seen = game.view(state, player), jnp.packbits(game.legal_actions(state))
            after, rewards, done = game.step(state, action)
            return after, (*seen, action.astype(jnp.int16), rewards, done, player)

        view, legal, taken, rewards, dones, players = lax.scan(body, state, actions)[1]
        return Shown(view, legal, taken, own_returns(rewards, dones, players)), players

    return jax.vmap(one)(states, actions)
