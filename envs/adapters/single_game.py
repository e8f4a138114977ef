"""One game at a time on the host, for the adapters: a game's functions compiled once, on and to NumPy."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import jax
import numpy as np

from envs.errors import InputError, refuse_name, unknown
from envs.game import Game, Policy

RENDER_MODES = ("human", "ansi", "svg")
"""How environments can be shown: printed after every step, as text, as an SVG element."""


class SingleGame:
    """A game in play, and the draws of its players.

    Attributes:
      game: its rules.
      state: the state.
      rewards: float32[P], paid so far.
    """

    def __init__(self, game: Game) -> None:
        """Takes a game; `deal` starts it."""
        self.game, self._functions = game, _compiled(game)
        self.state: Any = None
        self.rewards = np.zeros(game.num_players, np.float32)

    def __getstate__(self) -> dict[str, Any]:
        """Leaves out the compiled functions, which cannot be pickled."""
        return {name: value for name, value in vars(self).items() if name != "_functions"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Takes the compiled functions of an equal game."""
        vars(self).update(state, _functions=_compiled(state["game"]))

    def deal(self, seed: int) -> None:
        """Deals anew from a seed."""
        self.state = self._functions["init"](np.uint32(seed))
        self.rewards = np.zeros(self.game.num_players, np.float32)

    def check_dealt(self) -> None:
        """Raises InputError before the first deal."""
        if self.state is None:
            raise InputError("no game has been dealt; call reset")

    @property
    def current_player(self) -> int:
        """Who is to act, -1 once the game is over."""
        return int(self.state.current_player)

    def legal(self) -> np.ndarray:
        """Returns the legal actions: bool[A]."""
        return np.asarray(self._functions["legal"](self.state))

    def observe(self, player: int) -> np.ndarray:
        """Returns a player's observation: float32[observation_size]."""
        return np.array(self._functions["observe"](self.state, np.int32(player)))

    def view(self, player: int) -> Any:
        """Returns what a player may know."""
        return jax.device_get(self._functions["view"](self.state, np.int32(player)))

    def step(self, action: int) -> np.ndarray:
        """Plays a legal action and returns what it paid: float32[P]."""
        self.state, paid, _ = self._functions["step"](self.state, np.int32(action))
        self.rewards = self.rewards + np.asarray(paid)
        return np.asarray(paid)

    def named(self, actions: Iterable[int], viewer: int | None = None) -> str:
        """Returns actions of the player to act by number and name, the cards as the viewer calls them."""
        describe = self.game.describe_action
        return ", ".join(f"{action} {describe(self.state, int(action), viewer)}" for action in actions)

    def text(self, viewer: int | None = None) -> str:
        """Returns the state as text, and where the viewer (or anyone, with None) is to act, what may be done."""
        shown = self.game.render(self.state, viewer)
        if self.current_player < 0 or viewer not in (None, self.current_player):
            return shown
        return f"{shown}\nlegal: {self.named(np.flatnonzero(self.legal()), viewer)}"

    def sample(self, policy: Policy, rng: np.random.Generator) -> int:
        """Draws an action of the player to act from a policy."""
        view = self._functions["view"](self.state, np.int32(self.current_player))
        probs = np.asarray(_apply(policy.apply)(policy.params, view, self.legal()), np.float64)
        return int(rng.choice(len(probs), p=probs / probs.sum()))

    def rendered(self, mode: str | None, viewer: int | None = None) -> str | None:
        """Returns what `render()` of an environment does: text for "ansi", a drawing for "svg"; "human" prints."""
        if mode is not None:
            self.check_dealt()
        if mode == "human":
            print(self.text(viewer))
        shown = {"ansi": self.text, "svg": lambda seen: self.game.render_svg(self.state, seen)}
        return shown[mode](viewer) if mode in shown else None


def check_worst_reward(game: Game) -> None:
    """Raises InputError where a game does not say what an illegal action is to cost, and for a name."""
    refuse_name(game, "game")
    worst = game.worst_reward
    if isinstance(worst, bool) or not isinstance(worst, int | float | np.number) or not np.isfinite(worst):
        raise InputError(
            f"game {game.name!r}: worst_reward is {worst!r}; it must be a number, as an illegal action costs that"
        )


def check_mode(mode: str | None) -> str | None:
    """Returns a render mode; raises InputError where there is none of that name."""
    if mode is not None and mode not in RENDER_MODES:
        raise unknown("render_mode", mode, RENDER_MODES)
    return mode


@functools.cache
def _compiled(game: Game) -> dict[str, Callable[..., Any]]:
    functions = {"step": game.step, "legal": game.legal_actions, "view": game.view, "observe": game.observe}
    functions["init"] = lambda seed: game.init(jax.random.key(seed))
    return {name: jax.jit(function) for name, function in functions.items()}


@functools.cache
def _apply(apply: Callable[..., Any]) -> Callable[..., Any]:
    return jax.jit(apply)
