"""Gymnasium: one seat of a game against given players, as an environment. gymnasium is imported when one is made."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs import registry
from envs.adapters.packed_state import packed, unpacked
from envs.adapters.seat_play import MOST_DEALS, Table, advance, deal, make_table, no_answer, no_turn
from envs.adapters.single_game import RENDER_MODES, SingleGame, check_mode
from envs.batching import QUICK
from envs.errors import InputError, whole_number
from envs.game import Game, Policy, State

_BOUND = 16.0
"""No entry of an observation of this package's games is greater."""
_NO_ACTION = -1


def single_player_env(
    game: Game,
    opponent: str | Policy | Sequence[str | Policy] = "random",
    seat: int = 0,
    render_mode: str | None = None,
) -> Any:
    """Returns a gymnasium.Env of one seat of a game, the others played by frozen policies.

    Observations are the game's vectors; `info["action_mask"]`, int8[A], has the legal actions. An illegal action ends
    the episode with the game's worst reward, added to what was paid before the seat's first turn where it is the first,
    and `info["illegal_action"]` names it.

    Args:
      game: of any number of players.
      opponent: who has all the other seats, or one player for each of them in order of seat; rule-based
        players by name.
      seat: the environment's own.
      render_mode: "human" prints what the seat sees after every step, "ansi" has render() return it, "svg" a drawing.
    Raises:
      InputError: a seat the game lacks, another number of opponents, an unknown player or render mode.
      ImportError: gymnasium is not installed.
    """
    return _env_class()(make_table(game, opponent, seat), check_mode(render_mode))


def observation_box(game: Game) -> Any:
    """Returns the gymnasium.spaces.Box of a game's observations; that of a game from outside has no bounds."""
    import gymnasium

    bound = _BOUND if registry.is_own(game) else np.inf
    return gymnasium.spaces.Box(-bound, bound, (game.observation_size,), np.float32)


@functools.cache
def _env_class() -> type:
    import gymnasium

    return type("SeatEnv", (_Seat, gymnasium.Env), {"__doc__": "One seat of a game."})


def _bare() -> Any:
    """Returns an environment without attributes."""
    return object.__new__(_env_class())


class _Seat:
    """One seat of a game; all that is not gymnasium.Env's own."""

    metadata = {"render_modes": list(RENDER_MODES), "render_fps": 1}  # noqa: RUF012

    def __init__(self, table: Table, render_mode: str | None) -> None:
        import gymnasium

        game = table.game
        self.observation_space = observation_box(game)
        self.action_space = gymnasium.spaces.Discrete(game.num_actions)
        self._table, self._state, self._host = table, None, SingleGame(game)
        self.render_mode = render_mode
        self._over, self._mask = True, np.zeros(game.num_actions, np.int8)
        self._seed, self._calls, self._owed = 0, 0, 0.0

    def __reduce__(self) -> tuple[Any, ...]:
        """Says how copies and pickles are made, as the class has no place in a module."""
        return _bare, (), vars(self)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        """Deals and lets the others act; rounds that end before the seat's first turn are dealt again."""
        super().reset(seed=seed)
        self._over = True
        for _ in range(MOST_DEALS):
            self._seed, self._calls, self._owed = int(self.np_random.integers(2**32)), 0, 0.0
            observation, player, _ = self._take(_dealt(self._table, np.uint32(self._seed)))
            if player not in (-1, self._table.seat):
                observation, player, self._owed = self._call(_NO_ACTION)  # rewarded with the seat's first turn
            self._over = player < 0
            if not self._over:
                break
        else:
            raise no_turn(self._table)
        self._show()
        return observation, self._info()

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Plays the seat's action and the others' after it."""
        if self._over:
            raise InputError("the episode is over; call reset")
        action = self._number(action)
        known = 0 <= action < self.action_space.n
        if not (known and self._mask[action]):
            name = self._table.game.action_name(action) if known else "no action"
            self._over, self._mask = True, np.zeros_like(self._mask)
            info = {**self._info(), "illegal_action": action, "illegal_action_name": name}
            seen = self._shown().observe(self._table.seat)
            return seen, self._table.game.worst_reward + self._owed, True, False, info
        observation, player, reward = self._call(action)
        reward, self._owed = reward + self._owed, 0.0
        self._over = player < 0
        self._show()
        return observation, reward, self._over, False, self._info()

    def render(self) -> str | None:
        """Shows what the seat sees, and its legal actions by name, as the render mode says."""
        return self._shown().rendered(self.render_mode, self._table.seat)

    def action_name(self, action: int) -> str:
        """Returns what an action does in the present state."""
        shown = self._shown()
        shown.check_dealt()
        return self._table.game.describe_action(shown.state, self._number(action), self._table.seat)

    def _number(self, action: int) -> int:
        return whole_number("action", action, f"0 to {self.action_space.n - 1}")

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()

    def _shown(self) -> SingleGame:
        """Returns the game as it is, to be shown."""
        if self._state is not None:
            self._host.state = _unpacked(self._table, self._state)
        return self._host

    def _call(self, action: int) -> tuple[np.ndarray, int, float]:
        self._calls += 1
        words = np.array([action % 2**32, self._seed, self._calls], np.uint32)
        return self._take(_advanced(self._table, self._state, words))

    def _take(self, result: tuple[Array, Array]) -> tuple[np.ndarray, int, float]:
        """Takes over a state; returns the seat's observation, who is to act and what the seat was paid."""
        self._state, report = result
        numbers, (size,) = np.array(report), self.observation_space.shape
        self._mask, reward = numbers[size:-2].astype(np.int8), float(numbers[-1])
        if math.isnan(reward):
            self._over = True
            raise no_answer(self._table)
        return numbers[:size], int(numbers[-2]), reward

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self._mask.copy()}


@functools.partial(jax.jit, compiler_options=QUICK)
def _dealt(table: Table, seed: Array) -> tuple[Array, Array]:
    state = deal(table.game, seed)
    return packed(state), _report(table, state, jnp.float32(0))


@jax.jit
def _advanced(table: Table, state: Array, words: Array) -> tuple[Array, Array]:
    """Returns (packed state, report) from a packed state and uint32[3]: the action, the game's seed, the call."""
    action, seed, call = lax.bitcast_convert_type(words[0], jnp.int32), words[1], words[2]
    moved = advance(table, unpacked(table.game, state), action, seed, call)
    return packed(moved.state), _report(table, moved.state, moved.reward)


@functools.partial(jax.jit, compiler_options=QUICK)
def _unpacked(table: Table, state: Array) -> State:
    return unpacked(table.game, state)


def _report(table: Table, state: State, reward: Array) -> Array:
    """Returns all that a step reports as one array, thus one transfer: float32[observation_size + A + 2].

    The seat's observation, its legal actions, who is to act, and the reward.
    """
    own = state.current_player == table.seat
    legal, ends = table.game.legal_actions(state) & own, jnp.stack([jnp.float32(state.current_player), reward])
    return jnp.concatenate([table.game.observe(state, jnp.int32(table.seat)), legal.astype(jnp.float32), ends])
