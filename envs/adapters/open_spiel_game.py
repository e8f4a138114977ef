"""A game of ours as a pyspiel game: its class, its states and what its players see.

A game that can be enumerated gets a chance node for the deal and one wherever an action has several outcomes; any other
game gets one chance node, the deal. pyspiel is imported when a class is built.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.game import EnumerableGame, Game

DEALS = 1000
"""Outcomes of the deal, for a game that cannot be enumerated."""
_BOUND = 1e3
"""No game that does not say what it pays at worst pays more or less, in units of reward."""


class _Functions:
    """A game's functions, compiled once, on and to NumPy."""

    def __init__(self, game: Game) -> None:
        self.step = jax.jit(game.step)
        self.legal = jax.jit(game.legal_actions)
        self.view = jax.jit(game.view)
        self.encode = jax.jit(game.encode)
        self.init = jax.jit(lambda seed: game.init(jax.random.key(seed)))
        if isinstance(game, EnumerableGame):
            self.outcomes = jax.jit(game.outcomes)


@functools.cache
def _functions(game: Game) -> _Functions:
    return _Functions(game)


class _Kept:
    """A value that copies share, as states are never changed in place, with what has been computed about it."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self._known: dict[Any, Any] = {}

    def once(self, key: Any, compute: Callable[[], Any]) -> Any:
        """Returns what `compute` gave for `key` the first time."""
        if key not in self._known:
            self._known[key] = compute()
        return self._known[key]

    def __deepcopy__(self, memo: Any) -> _Kept:
        return self

    def __reduce__(self) -> tuple[type[_Kept], tuple[Any]]:
        return _Kept, (self.value,)  # what was computed is computed again; compiled functions cannot be pickled


_NOTHING = _Kept([])


@functools.cache
def game_class(ours: Game, deals: int) -> Any:
    """Builds and registers the pyspiel game class of a game.

    Args:
      ours: the game.
      deals: for a game that cannot be enumerated, the outcomes of its chance node.
    Raises:
      ImportError: open_spiel is not installed.
    """
    import pyspiel

    identity = json.dumps([ours.identity, deals], sort_keys=True)
    name = f"dream_{ours.name}_{hashlib.sha256(identity.encode()).hexdigest()[:8]}"
    explicit, utility = isinstance(ours, EnumerableGame), pyspiel.GameType.Utility
    model = pyspiel.GameType.RewardModel
    least, most = _bounds(ours)
    kind = pyspiel.GameType(
        short_name=name,
        long_name=ours.name,
        dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
        chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
        information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
        utility=utility.ZERO_SUM if ours.zero_sum else utility.GENERAL_SUM,
        reward_model=model.TERMINAL if ours.pays_at_end else model.REWARDS,
        max_num_players=ours.num_players,
        min_num_players=ours.num_players,
        provides_information_state_string=explicit,
        provides_information_state_tensor=explicit,
        provides_observation_string=True,
        provides_observation_tensor=True,
        provides_factored_observation_string=False,
    )
    roots, chances = _roots(ours, deals)
    info = pyspiel.GameInfo(
        num_distinct_actions=ours.num_actions,
        max_chance_outcomes=max(len(roots), _most_outcomes(ours, roots)),
        num_players=ours.num_players,
        min_utility=least,
        max_utility=most,
        utility_sum=0.0 if ours.zero_sum else None,
        max_game_length=ours.max_length,
    )

    class _Game(pyspiel.Game):
        def __init__(self, params: Any = None) -> None:
            super().__init__(kind, info, params or {})

        def new_initial_state(self) -> Any:
            return state_class(self)

        def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> Any:
            return _Observer(ours)

    state_class = _state_class(ours, roots, chances)
    pyspiel.register_game(kind, _Game)
    return _Game


def _roots(game: Game, deals: int) -> tuple[list[Any], list[float]]:
    """Lists the starting states, or the seeds they are dealt from, with their probabilities."""
    if not isinstance(game, EnumerableGame):
        return list(range(deals)), [1 / deals] * deals
    states, probs = jax.device_get(game.initial_outcomes())
    listed = [_Kept(jax.tree.map(lambda x, n=n: x[n], states)) for n in np.flatnonzero(probs)]
    kept = probs[probs > 0].astype(float)
    return listed, (kept / kept.sum()).tolist()


def _bounds(game: Game) -> tuple[float, float]:
    """Returns what a player wins at least and at most; infinity where a game with a worst reward has no best one."""
    if game.worst_reward is None:
        return -_BOUND, _BOUND
    least = float(np.float32(game.worst_reward))  # as rewards are
    return least, -least * (game.num_players - 1) if game.zero_sum else math.inf


def _most_outcomes(game: Game, roots: list[Any]) -> int:
    """Returns how many outcomes an action can have."""
    if not isinstance(game, EnumerableGame):
        return 1
    return jax.eval_shape(game.outcomes, roots[0].value, jnp.int32(0))[1].shape[0]


class _Played:
    """What a pyspiel state of one of our games does; `_state_class` joins it to pyspiel.State, which is imported late.

    Attributes:
      ours: the game.
      roots, chances: where it may start, and how likely.
      special: pyspiel.PlayerId, what stands for nobody's turn.
    """

    ours: Game
    roots: list[Any]
    chances: list[float]
    special: Any

    def __init__(self, game: Any) -> None:
        super().__init__(game)
        self.kept = _Kept(None)
        self._pending = _Kept(list(zip(range(len(self.roots)), self.chances, strict=True)))
        self._branches = _Kept([(root, [0.0] * self.ours.num_players, False) for root in self.roots])
        self._returns = [0.0] * self.ours.num_players
        self._paid = [0.0] * self.ours.num_players
        self._over = False

    def current_player(self) -> int:
        if self._over:
            return int(self.special.TERMINAL)
        return int(self.special.CHANCE) if self._pending.value else int(self.kept.value.current_player)

    def _legal_actions(self, player: int) -> list[int]:
        legal = _functions(self.ours).legal
        return list(self.kept.once("legal", lambda: np.flatnonzero(legal(self.kept.value)).tolist()))

    def chance_outcomes(self) -> list[tuple[int, float]]:
        return self._pending.value

    def _apply_action(self, action: int) -> None:
        self._paid = [0.0] * self.ours.num_players
        if self._pending.value:
            self._arrive(*self._branches.value[action])
        elif isinstance(self.ours, EnumerableGame):
            self._branch(self.kept.once(action, lambda: _branches(self.ours, self.kept.value, action)))
        else:
            state, rewards, done = jax.device_get(_functions(self.ours).step(self.kept.value, np.int32(action)))
            self._arrive(_Kept(state), rewards, done)

    def _branch(self, branches: list[tuple]) -> None:
        """Goes to the one outcome there is, or to a chance node over them."""
        if len(branches) == 1:
            self._arrive(*branches[0][1:])
            return
        self._branches = _Kept([branch[1:] for branch in branches])
        self._pending = _Kept([(n, branch[0]) for n, branch in enumerate(branches)])

    def _arrive(self, kept: _Kept, rewards: Any, done: Any) -> None:
        self.kept = _Kept(jax.device_get(_functions(self.ours).init(kept))) if isinstance(kept, int) else kept
        self._pending, self._branches = _NOTHING, _NOTHING
        self._over = bool(done)
        paid = np.asarray(rewards, float)
        if self.ours.zero_sum:  # in float32 those of three players or more do not quite sum to 0
            paid = paid - paid.mean()
        self._paid = paid.tolist()
        self._returns = [was + now for was, now in zip(self._returns, self._paid, strict=True)]

    def _action_to_string(self, player: int, action: int) -> str:
        if player < 0 or self.kept.value is None:
            return f"chance: {action}"
        return f"player {player}: {self.ours.describe_action(self.kept.value, action)}"

    def is_terminal(self) -> bool:
        return self._over

    def rewards(self) -> list[float]:
        return self._paid

    def returns(self) -> list[float]:
        return self._returns

    def __str__(self) -> str:
        history = " ".join(str(entry.action) for entry in self.full_history())
        shown = "" if self.kept.value is None else self.kept.once("shown", lambda: self.ours.render(self.kept.value))
        return f"{self.ours.name}: {history}\n{shown}".rstrip()


def _state_class(ours: Game, roots: list[Any], chances: list[float]) -> Any:
    """Builds the pyspiel state class of a game."""
    import pyspiel

    attributes = {"ours": ours, "roots": roots, "chances": chances, "special": pyspiel.PlayerId}
    return type("_State", (_Played, pyspiel.State), attributes)


def _branches(game: Any, state: Any, action: int) -> list[tuple]:
    """Lists what an action can lead to: (probability, state, rewards, done)."""
    states, probs, rewards, done = jax.device_get(_functions(game).outcomes(state, np.int32(action)))
    possible = np.flatnonzero(probs)
    weights = probs[possible].astype(float)
    return [
        (chance, _Kept(jax.tree.map(lambda x, n=n: x[n], states)), rewards[n], done[n])
        for n, chance in zip(possible, (weights / weights.sum()).tolist(), strict=True)
    ]


class _Observer:
    """What a player sees, as OpenSpiel asks for it: the observation vector, and the view's bytes in hexadecimal."""

    def __init__(self, game: Game) -> None:
        self._game = game
        self.tensor = np.zeros(game.observation_size, np.float32)
        self.dict = {"observation": self.tensor}

    def set_from(self, state: Any, player: int) -> None:
        """Fills `tensor` with what `player` sees; zeros before the deal."""
        view = self._view(state, player)
        self.tensor[:] = 0 if view is None else _functions(self._game).encode(view)

    def string_from(self, state: Any, player: int) -> str:
        """Returns the view of `player` as text, which differs between information states where views do."""
        return state.kept.once(("text", player), lambda: self._text(state, player))

    def _text(self, state: Any, player: int) -> str:
        leaves = jax.tree.leaves(self._view(state, player))
        return f"player {player}: " + b"".join(np.asarray(x).tobytes() for x in leaves).hex()

    def _view(self, state: Any, player: int) -> Any:
        if state.kept.value is None:
            return None
        return jax.device_get(_functions(self._game).view(state.kept.value, np.int32(player)))
