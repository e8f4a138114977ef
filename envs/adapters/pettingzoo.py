"""PettingZoo: a game as an AEC environment. pettingzoo is imported when one is made."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from envs.adapters.gymnasium import observation_box
from envs.adapters.single_game import RENDER_MODES, SingleGame, check_mode
from envs.errors import InputError, refuse_name, unknown, whole_number
from envs.game import Game


def aec_env(game: Game, render_mode: str | None = None) -> Any:
    """Returns a pettingzoo.AECEnv with agents player_0, player_1, ...

    An observation is {"observation": the game's vector, "action_mask": int8[A]}, the mask all zero while others act.
    An illegal action raises InputError.

    Args:
      game: of any number of players.
      render_mode: "human" prints all cards after every step, "ansi" has render() return them, "svg" a drawing.
    Raises:
      InputError: an unknown render mode, or a name in the place of a game.
      ImportError: pettingzoo is not installed.
    """
    refuse_name(game, "game")
    return _env_class()(game, check_mode(render_mode))


@functools.cache
def _env_class() -> type:
    import pettingzoo

    return type("GameEnv", (_Agents, pettingzoo.AECEnv), {"__doc__": "A game, agent by agent."})


def _bare() -> Any:
    """Returns an environment without attributes."""
    return object.__new__(_env_class())


class _Agents:
    """A game agent by agent; all that is not AECEnv's own."""

    def __init__(self, game: Game, render_mode: str | None) -> None:
        import gymnasium

        super().__init__()
        named = {"name": f"{game.name}_v{game.version}", "is_parallelizable": False}
        self.metadata = {**named, "render_modes": list(RENDER_MODES), "render_fps": 1}
        self.render_mode = render_mode
        self.possible_agents = [f"player_{seat}" for seat in range(game.num_players)]
        self._play = SingleGame(game)
        self._rng = np.random.default_rng()
        seen = observation_box(game)
        mask = gymnasium.spaces.Box(0, 1, (game.num_actions,), np.int8)
        space = gymnasium.spaces.Dict({"observation": seen, "action_mask": mask})
        self.observation_spaces = dict.fromkeys(self.possible_agents, space)
        self.action_spaces = {agent: gymnasium.spaces.Discrete(game.num_actions) for agent in self.possible_agents}

    def __reduce__(self) -> tuple[Any, ...]:
        """Says how copies and pickles are made, as the class has no place in a module."""
        return _bare, (), vars(self)

    def observation_space(self, agent: str) -> Any:
        """Returns an agent's space, the same object every time."""
        return self.observation_spaces[self._known(agent)]

    def action_space(self, agent: str) -> Any:
        """Returns an agent's space, the same object every time."""
        return self.action_spaces[self._known(agent)]

    def _known(self, agent: str) -> str:
        if agent not in self.possible_agents:
            raise unknown("agent", agent, self.possible_agents)
        return agent

    def reset(self, seed: int | None = None, options: dict | None = None) -> None:
        """Deals."""
        if seed is not None:
            if (number := whole_number("seed", seed, "at least 0")) < 0:
                raise InputError(f"seed={seed} is out of range; it must be at least 0")
            self._rng = np.random.default_rng(number)
        self._play.deal(int(self._rng.integers(2**31)))
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {} for agent in self.agents}
        self.agent_selection = self.agents[self._play.current_player]
        self._show()

    def observe(self, agent: str) -> dict[str, np.ndarray]:
        """Returns what an agent sees, and what it may do."""
        self._play.check_dealt()
        seat = self.possible_agents.index(self._known(agent))
        mask = self._play.legal() & (self._play.current_player == seat)
        return {"observation": self._play.observe(seat), "action_mask": mask.astype(np.int8)}

    def last(self, observe: bool = True) -> tuple[dict[str, np.ndarray] | None, float, bool, bool, dict[str, Any]]:
        """Returns what the selected agent sees, its rewards since it last acted, whether the game is over, and more."""
        self._check_agents()
        return super().last(observe)

    def step(self, action: int | None) -> None:
        """Plays the selected agent's action; once the game is over, None retires agent by agent."""
        self._check_agents()
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        legal = self._play.legal()
        number = -1 if action is None else whole_number("action", action, f"0 to {len(legal) - 1}")
        if not (0 <= number < len(legal) and legal[number]):
            allowed = self._play.named(np.flatnonzero(legal))
            raise InputError(f"illegal action {action} of {agent}; legal: {allowed}")
        self._cumulative_rewards[agent] = 0.0
        paid = self._play.step(number)
        self.rewards = {name: float(paid[i]) for i, name in enumerate(self.possible_agents)}
        self._accumulate_rewards()
        if self._play.current_player < 0:
            self.terminations = dict.fromkeys(self.agents, True)
        else:
            self.agent_selection = self.possible_agents[self._play.current_player]
        self._show()

    def _check_agents(self) -> None:
        """Raises InputError before the first deal, and once every agent has retired from a game that is over."""
        self._play.check_dealt()
        if not self.agents:
            raise InputError("the game is over and every agent has retired; call reset")

    def render(self) -> str | None:
        """Shows all cards, and the legal actions by name, as the render mode says."""
        return self._play.rendered(self.render_mode)

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()

    def close(self) -> None:
        """Has nothing to free."""
