"""Nim, an example of a game from outside the package: players take 1 to `most` counters of a heap; the last one wins.

The observation, float32[2 + heap + 1 + heap * most]: the player, one-hot; what is left of the heap, one-hot; for each
move so far what it took, one-hot.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

import envs


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class NimState:
    """The whole state: what each move took, uint8[heap], 0 where there was none yet; how many moves; who acts."""

    taken: Array
    moves: Array
    current_player: Array


class NimView(NamedTuple):
    """What one player may know, which in nim is everything: its seat and the moves so far."""

    seat: Array
    taken: Array


@dataclasses.dataclass(frozen=True)
class Nim(envs.EnumerableGame):
    """The game; its fields are the rules.

    Attributes:
      heap: counters at the start.
      most: counters that a player may take at once.
    """

    heap: int = 6
    most: int = 2
    name = "nim"
    version = "1"
    unit = "games"
    reward_scale = 1.0  # a reward of 1 is one game won
    worst_reward = -1.0

    def __post_init__(self) -> None:
        """Checks the rules."""
        if not 1 <= self.most <= self.heap <= 20:
            raise envs.InputError(
                f"heap={self.heap}, most={self.most} is not valid; it must be 1 <= most <= heap <= 20"
            )

    @property
    def num_actions(self) -> int:
        """Action a takes a + 1 counters."""
        return self.most

    @property
    def observation_size(self) -> int:
        """See the module."""
        return 2 + self.heap + 1 + self.heap * self.most

    @property
    def max_length(self) -> int:
        """A game in which each move takes one counter."""
        return self.heap

    def init(self, key: Array) -> NimState:
        """Returns the full heap; there is no chance in nim."""
        return NimState(jnp.zeros(self.heap, jnp.uint8), jnp.int32(0), jnp.int32(0))

    def _left(self, taken: Array) -> Array:
        return self.heap - jnp.sum(taken.astype(jnp.int32))

    def step(self, state: NimState, action: Array) -> tuple[NimState, Array, Array]:
        """Takes action + 1 counters; a step after the end changes nothing and pays 0."""
        was_over, player = state.current_player < 0, state.current_player
        taken = state.taken.at[state.moves].set((jnp.asarray(action, jnp.int32) + 1).astype(jnp.uint8))
        ends = self._left(taken) <= 0
        new = NimState(taken, state.moves + 1, jnp.where(ends, -1, 1 - player))
        new = jax.tree.map(lambda old, changed: jnp.where(was_over, old, changed), state, new)
        won = jnp.where(np.arange(2) == player, 1.0, -1.0)
        return new, jnp.where(ends & ~was_over, won, 0.0).astype(jnp.float32), new.current_player < 0

    def legal_actions(self, state: NimState) -> Array:
        """Returns bool[most]: not more than is left."""
        return (np.arange(self.most) < self._left(state.taken)) & (state.current_player >= 0)

    def view(self, state: NimState, player: Array) -> NimView:
        """Returns the seat and all moves, so that a player remembers what it did."""
        return NimView(jnp.asarray(player).astype(jnp.uint8), state.taken)

    def encode(self, view: NimView) -> Array:
        """Returns the observation of the module's table."""
        seat = view.seat == np.arange(2)
        left = self._left(view.taken) == np.arange(self.heap + 1)
        moves = view.taken[:, None] == np.arange(1, self.most + 1)
        return jnp.concatenate([seat, left, moves.reshape(-1)]).astype(jnp.float32)

    def to_dict(self, state: NimState) -> dict[str, Any]:
        """Describes a state in words."""
        taken = [int(count) for count in np.asarray(state.taken) if count]
        return {"taken": taken, "left": self.heap - sum(taken), "current_player": int(state.current_player)}

    def initial_outcomes(self) -> tuple[NimState, Array]:
        """Returns the one start, of probability 1."""
        return jax.tree.map(lambda x: x[None], self.init(jax.random.key(0))), jnp.ones(1, jnp.float32)

    def outcomes(self, state: NimState, action: Array) -> tuple[NimState, Array, Array, Array]:
        """Returns the one outcome of an action."""
        after, rewards, done = jax.tree.map(lambda x: x[None], self.step(state, action))
        return after, jnp.ones(1, jnp.float32), rewards, done


def make(**rules: Any) -> Nim:
    """Builds the game; `rules` are those of `env.rules` on the command line."""
    return Nim(**rules)


def expert(game: Nim) -> envs.Policy:
    """Returns the player that leaves a multiple of most + 1 where it can, and takes one counter elsewhere."""

    def play(params: tuple[()], view: NimView, legal: Array) -> Array:
        wanted = game._left(view.taken) % (game.most + 1)
        return (np.arange(game.most) == jnp.maximum(wanted, 1) - 1).astype(jnp.float32)

    return envs.Policy(play)


def register() -> None:
    """Makes the game and its player known to a program; an installed package does it by its entry points."""
    envs.register("nim", make, bots={"expert": expert})
