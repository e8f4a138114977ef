"""Gymnasium: one seat of a game against given players, as an environment. gymnasium is imported when one is made."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from envs.adapters.single_game import RENDER_MODES, SingleGame, check_mode
from envs.errors import InputError
from envs.game import Game, Policy

_BOUND = 16.0
"""No entry of an observation is greater."""


def single_player_env(
    game: Game, opponent: Policy | Sequence[Policy], seat: int = 0, render_mode: str | None = None
) -> Any:
    """Returns a gymnasium.Env of one seat of a game, the others played by frozen policies.

    Observations are the game's vectors; `info["action_mask"]`, int8[A], has the legal actions. An illegal action ends
    the episode with the game's worst reward, and `info["illegal_action"]` names it.

    Args:
      game: of any number of players.
      opponent: who has all the other seats, or one player for each of them in order of seat.
      seat: the environment's own.
      render_mode: "human" prints what the seat sees after every step, "ansi" has render() return it, "svg" a drawing.
    Raises:
      InputError: a seat the game lacks, another number of opponents, or an unknown render mode.
      ImportError: gymnasium is not installed.
    """
    others = game.num_players - 1
    players = [opponent] * others if isinstance(opponent, Policy) else list(opponent)
    if not 0 <= seat < game.num_players:
        raise InputError(f"seat={seat} is not valid; {game.name} has seats 0 to {others}")
    if len(players) != others:
        raise InputError(f"{len(players)} opponents are not valid; {game.name} here has {others}")
    return _env_class()(game, [*players[:seat], None, *players[seat:]], seat, check_mode(render_mode))


@functools.cache
def _env_class() -> type:
    import gymnasium

    return type("SeatEnv", (_Seat, gymnasium.Env), {"__doc__": "One seat of a game."})


class _Seat:
    """One seat of a game; all that is not gymnasium.Env's own."""

    metadata = {"render_modes": list(RENDER_MODES), "render_fps": 1}  # noqa: RUF012

    def __init__(self, game: Game, players: list[Policy | None], seat: int, render_mode: str | None) -> None:
        import gymnasium

        self.observation_space = gymnasium.spaces.Box(-_BOUND, _BOUND, (game.observation_size,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(game.num_actions)
        self._play, self._players, self._seat = SingleGame(game), players, seat
        self.render_mode = render_mode
        self._over = True

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        """Deals and lets the others act; rounds that end before the seat's first turn are dealt again."""
        super().reset(seed=seed)
        self._over = True
        while self._over:
            self._play.deal(int(self.np_random.integers(2**31)))
            self._others()
        self._show()
        return self._play.observe(self._seat), self._info()

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Plays the seat's action and the others' after it."""
        if self._over:
            raise InputError("the episode is over; call reset")
        if not (0 <= int(action) < self.action_space.n and self._play.legal()[int(action)]):
            self._over = True
            known = 0 <= int(action) < self.action_space.n
            name = self._play.game.action_name(int(action)) if known else "no action"
            info = {**self._info(), "illegal_action": int(action), "illegal_action_name": name}
            return self._play.observe(self._seat), self._play.game.worst_reward, True, False, info
        before = self._play.rewards[self._seat]
        self._play.step(int(action))
        self._others()
        self._show()
        reward = float(self._play.rewards[self._seat] - before)
        return self._play.observe(self._seat), reward, self._over, False, self._info()

    def render(self) -> str | None:
        """Shows what the seat sees, and its legal actions by name, as the render mode says."""
        return self._play.rendered(self.render_mode, self._seat)

    def action_name(self, action: int) -> str:
        """Returns what an action does in the present state."""
        return self._play.game.describe_action(self._play.state, int(action))

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()

    def _others(self) -> None:
        play = self._play
        while play.current_player not in (-1, self._seat):
            play.step(play.sample(self._players[play.current_player], self.np_random))
        self._over = play.current_player < 0

    def _info(self) -> dict[str, Any]:
        return {"action_mask": (self._play.legal() & (not self._over)).astype(np.int8)}
