"""pgx's interface: `init(key)` and `step(state, action)` on one State, pure, to be vmapped and jitted; without pgx.

As there, the state has `current_player`, `observation` (of that player), `rewards`, `terminated`, `truncated` and
`legal_action_mask`; once terminated nothing changes, nothing is paid and every action counts as legal. An illegal
action terminates the game: the player gets the game's worst reward, which the others share.
Deviation from pgx 2.6: there the penalty is 1 and each other player gets one for every opponent.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs.adapters.single_game import check_worst_reward
from envs.game import Game


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State:
    """A game in play, as pgx holds it.

    Attributes:
      current_player: int32, who acts; once terminated, who acted last.
      observation: float32[observation_size], what that player sees.
      rewards: float32[P], paid by the last step.
      terminated: bool.
      truncated: bool, always False.
      legal_action_mask: bool[A].
      game_state: the game's own state.
    """

    current_player: Array
    observation: Array
    rewards: Array
    terminated: Array
    truncated: Array
    legal_action_mask: Array
    game_state: Any
    _step_count: Array

    def replace(self, **changes: Any) -> State:
        """Returns the state with fields replaced."""
        return dataclasses.replace(self, **changes)


@dataclasses.dataclass(frozen=True)
class Env:
    """A game with pgx's functions; hashable, so usable as a static argument."""

    game: Game

    @property
    def id(self) -> str:
        """The game's name."""
        return self.game.name

    @property
    def version(self) -> str:
        """The game's version."""
        return self.game.version

    @property
    def num_players(self) -> int:
        """Players of a game."""
        return self.game.num_players

    @property
    def num_actions(self) -> int:
        """Actions, legal or not."""
        return self.game.num_actions

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """The observation's shape."""
        return (self.game.observation_size,)

    def init(self, key: Array) -> State:
        """Deals; `key` is consumed."""
        game = self.game
        state = game.init(key)
        player = jnp.asarray(state.current_player, jnp.int32)
        return State(
            current_player=player,
            observation=game.observe(state, player),
            rewards=jnp.zeros(game.num_players),
            terminated=jnp.bool_(False),
            truncated=jnp.bool_(False),
            legal_action_mask=game.legal_actions(state),
            game_state=state,
            _step_count=jnp.int32(0),
        )

    def step(self, state: State, action: Array, key: Array | None = None) -> State:
        """Plays an action.

        Args:
          state: one state.
          action: int32; what is not in [0, A) is illegal too, such as -1.
          key: unused, as a game's chance is decided at the deal.
        Returns:
          The state after it.
        """
        game, player = self.game, state.current_player
        after, paid, done = game.step(state.game_state, action)
        illegal = ~jnp.any(state.legal_action_mask & (np.arange(game.num_actions) == action))
        worst = np.float32(game.worst_reward)
        fine = jnp.where(np.arange(game.num_players) == player, worst, -worst / (game.num_players - 1))
        over = state.terminated | illegal | done
        after = jax.tree.map(lambda old, new: jnp.where(state.terminated | illegal, old, new), state.game_state, after)
        # Whoever is named as acting must be a seat; a game that is over has none.
        acting = jnp.where(over, player, after.current_player).astype(jnp.int32)
        return State(
            current_player=acting,
            observation=game.observe(after, acting),
            rewards=jnp.where(state.terminated, 0.0, jnp.where(illegal, fine, paid)).astype(jnp.float32),
            terminated=over,
            truncated=jnp.bool_(False),
            legal_action_mask=over | game.legal_actions(after),
            game_state=after,
            _step_count=state._step_count + ~state.terminated,
        )

    def observe(self, state: State, player_id: Array | None = None) -> Array:
        """Returns what a player, by default the one to act, sees: float32[observation_size]."""
        return self.game.observe(state.game_state, state.current_player if player_id is None else player_id)


def env(game: Game) -> Env:
    """Returns a game through pgx's functions; raises InputError where it does not say its worst reward."""
    check_worst_reward(game)
    return Env(game)
