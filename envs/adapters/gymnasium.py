"""Gymnasium: one seat of a game against given players, as an environment. gymnasium is imported when one is made."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from envs.adapters.single_game import SingleGame
from envs.errors import InputError
from envs.game import Game, Policy

_BOUND = 16.0
"""No entry of an observation is greater."""


def make_env(game: Game, opponents: Policy | Sequence[Policy], seat: int = 0, worst_reward: float | None = None) -> Any:
    """Returns a gymnasium.Env of one seat.

    Observations are the game's vectors; `info["action_mask"]`, int8[A], tells the legal actions. An action that is
    illegal ends the episode with the worst reward, and `info["illegal_action"]` tells it.

    Args:
      game: of any number of players.
      opponents: the other seats' players in order of seat, or one for all of them.
      seat: the environment's own.
      worst_reward: what an illegal action costs, in units of reward; by default the game's `worst_reward`.
    Raises:
      InputError: a seat the game lacks, another number of opponents, or no worst reward.
      ImportError: gymnasium is not installed.
    """
    others = game.num_players - 1
    players = [opponents] * others if isinstance(opponents, Policy) else list(opponents)
    if not 0 <= seat < game.num_players:
        raise InputError(f"seat={seat} is not valid; {game.name} has seats 0 to {others}")
    if len(players) != others:
        raise InputError(f"{len(players)} opponents are not valid; {game.name} here has {others}")
    worst = getattr(game, "worst_reward", None) if worst_reward is None else worst_reward
    if worst is None:
        raise InputError(f"{game.name} does not tell its worst reward; pass worst_reward")
    return _env_class()(game, [*players[:seat], None, *players[seat:]], seat, float(worst))


@functools.cache
def _env_class() -> type:
    import gymnasium

    return type("SeatEnv", (_Seat, gymnasium.Env), {"__doc__": "One seat of a game."})


class _Seat:
    """One seat of a game; all that is not gymnasium.Env's own."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, game: Game, players: list[Policy | None], seat: int, worst: float) -> None:
        import gymnasium

        self.observation_space = gymnasium.spaces.Box(-_BOUND, _BOUND, (game.observation_size,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(game.num_actions)
        self._play, self._players, self._seat, self._worst = SingleGame(game), players, seat, worst
        self._over = True

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        """Deals and lets the others act; rounds that end before the seat's first turn are dealt again."""
        super().reset(seed=seed)
        self._over = True
        while self._over:
            self._play.deal(int(self.np_random.integers(2**31)))
            self._others()
        return self._play.observe(self._seat), self._info()

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Plays the seat's action and the others' after it."""
        if self._over:
            raise InputError("the episode is over; call reset")
        if not (0 <= int(action) < self.action_space.n and self._play.legal()[int(action)]):
            self._over = True
            info = {**self._info(), "illegal_action": int(action)}
            return self._play.observe(self._seat), self._worst, True, False, info
        before = self._play.rewards[self._seat]
        self._play.step(int(action))
        self._others()
        reward = float(self._play.rewards[self._seat] - before)
        return self._play.observe(self._seat), reward, self._over, False, self._info()

    def _others(self) -> None:
        play = self._play
        while play.current_player not in (-1, self._seat):
            play.step(play.sample(self._players[play.current_player], self.np_random))
        self._over = play.current_player < 0

    def _info(self) -> dict[str, Any]:
        return {"action_mask": (self._play.legal() & (not self._over)).astype(np.int8)}
