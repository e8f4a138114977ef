"""A game whose state keeps a typed PRNG key, from which its later chance follows."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs import Game


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class KeyedState:
    """Sums of both players, and the key of the rolls to come."""

    key: Any
    sums: Any
    turn: Any
    current_player: Any


class KeyedView(NamedTuple):
    """All but the key."""

    seat: Any
    sums: Any
    turn: Any


@dataclasses.dataclass(frozen=True)
class KeyedGame(Game):
    """In each of two turns a player takes three or rolls a die; the greater sum wins a point."""

    name = "keyed"
    version = "1"
    num_actions = 2
    observation_size = 5
    max_length = 4
    reward_scale = 1.0
    worst_reward = -1.0

    def init(self, key: Any) -> KeyedState:
        """Keeps the key."""
        return KeyedState(key=key, sums=jnp.zeros(2, jnp.int32), turn=jnp.int32(0), current_player=jnp.int32(0))

    def step(self, state: KeyedState, action: Any) -> tuple[KeyedState, Any, Any]:
        """Takes three, or rolls."""
        over, (key, roll) = state.current_player < 0, jax.random.split(state.key)
        won = jnp.where(action == 1, jax.random.randint(roll, (), 1, 7), 3)
        ends = state.turn == self.max_length - 1
        new = KeyedState(
            key=key,
            sums=state.sums + jnp.where(np.arange(2) == state.current_player, won, 0),
            turn=state.turn + 1,
            current_player=jnp.where(ends, -1, 1 - state.current_player),
        )
        new = jax.tree.map(lambda old, changed: jnp.where(over, old, changed), state, new)
        point = jnp.where(ends & ~over, jnp.sign(new.sums[0] - new.sums[1]), 0)
        return new, point * np.array([1.0, -1.0], np.float32), new.current_player < 0

    def legal_actions(self, state: KeyedState) -> Any:
        """Returns both, while somebody is to act."""
        return jnp.broadcast_to(state.current_player >= 0, (2,))

    def view(self, state: KeyedState, player: Any) -> KeyedView:
        """Returns what all see."""
        small = (x.astype(jnp.uint8) for x in (jnp.asarray(player), state.sums, state.turn))
        return KeyedView(*small)

    def encode(self, view: KeyedView) -> Any:
        """Returns the seat, the sums and the turn."""
        parts = [view.seat == np.arange(2), view.sums / np.float32(12), view.turn[None] / np.float32(4)]
        return jnp.concatenate([part.astype(jnp.float32) for part in parts])

    def to_dict(self, state: KeyedState) -> dict[str, Any]:
        """Returns the sums and who acts."""
        return {"sums": np.asarray(state.sums).tolist(), "current_player": int(state.current_player)}
