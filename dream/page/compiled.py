"""A game and its players as compiled functions on the host: quick to compile, for one round at a time."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from dream.equations.distributions import faults
from dream.evaluation.validity import refuse_faults
from dream.storage.policies import find_player
from envs import Game, Policy, records
from envs.batching import QUICK
from envs.game import State, View


class Position(NamedTuple):
    """A state, and what is known of it on the host.

    Attributes:
      state: of the game.
      rewards: float[P], of the step that led here.
      done: whether the round is over.
      current: seat of the player to act, -1 once over.
      legal: bool[A].
      views: what each player may know, by seat.
    """

    state: State
    rewards: np.ndarray
    done: bool
    current: int
    legal: np.ndarray
    views: tuple[View, ...]


class CompiledGame:
    """A game's functions, compiled when they are first used."""

    def __init__(self, game: Game) -> None:
        """Compiles nothing yet."""
        self.game = game
        self._deal = jax.jit(self._dealt, compiler_options=QUICK)
        self._look = jax.jit(self._looked_at, compiler_options=QUICK)
        self._step = jax.jit(self._stepped, compiler_options=QUICK)
        self._points = jax.jit(functools.partial(records.points_of, game), compiler_options=QUICK)
        state = jax.eval_shape(game.init, jax.random.key(0))
        has_scores = "score" in jax.eval_shape(lambda one: game.result(one, 0), state)
        self._scores = jax.jit(self._scored, compiler_options=QUICK) if has_scores else None

    def _dealt(self, key: jax.Array, first: jax.Array) -> Any:
        deal = self.game.init(key)
        if self.game.begun_by is not None:
            deal = self.game.begun_by(deal, jax.numpy.where(first < 0, deal.current_player, first))
        return self._looked_at(deal)

    def _looked_at(self, state: State) -> Any:
        game = self.game
        views = tuple(game.view(state, player) for player in range(game.num_players))
        return state, state.current_player, game.legal_actions(state), views

    def _scored(self, state: State) -> Any:
        return [self.game.result(state, np.int32(player))["score"] for player in range(self.game.num_players)]

    def _stepped(self, state: State, action: jax.Array) -> Any:
        after, rewards, done = self.game.step(state, action)
        return rewards, done, self._looked_at(after)

    def deal(self, seed: int, first: int | None = None) -> Position:
        """Deals a round; where a lot draws who acts first, a seat that is given takes its place."""
        looked = self._deal(jax.random.key(seed), np.int32(-1 if first is None else first))
        return self._position(np.zeros(self.game.num_players), False, looked)

    def look(self, state: State) -> Position:
        """Returns a state in play with what is known of it."""
        return self._position(np.zeros(self.game.num_players), False, self._look(state))

    def step(self, position: Position, action: int) -> Position:
        """Plays an action, which must be legal."""
        rewards, done, looked = self._step(position.state, np.int32(action))
        return self._position(rewards, done, looked)

    def points(self, state: State, paid: np.ndarray) -> np.ndarray:
        """Returns what a finished round won: float[P], by seat, from its end and all rewards paid."""
        return np.round(np.asarray(self._points(state, paid), float), 4)

    def scores(self, state: State) -> list[float] | None:
        """Returns what a round adds to a running score, by seat; None where that is the points won."""
        if self._scores is None:
            return None
        return [round(float(score), 4) for score in jax.device_get(self._scores(state))]

    def _position(self, rewards: Any, done: Any, looked: Any) -> Position:
        state, *rest = looked
        rewards, done, (current, legal, views) = jax.device_get((rewards, done, rest))
        return Position(state, np.asarray(rewards, float), bool(done), int(current), legal, views)


class Player:
    """A player of a game: its policy, compiled, and how long it thinks.

    Attributes:
      name: as it was found by.
      policy: the Policy.
      seconds: the longest of its last decisions; None before the first, which compiles.
    """

    def __init__(self, name: str, policy: Policy) -> None:
        """Compiles nothing yet."""
        self.name, self.policy = name, policy
        self.seconds: float | None = None
        self._apply = jax.jit(self._checked, compiler_options=QUICK)

    def _checked(self, params: Any, view: View, legal: jax.Array) -> tuple[jax.Array, jax.Array]:
        probs = self.policy.apply(params, view, legal)
        return probs, faults(probs, legal)

    def probabilities(self, view: View, legal: np.ndarray) -> np.ndarray:
        """Returns the action probabilities: float64[A], summing to one.

        Raises:
          InputError: the policy gives no distribution over the legal actions.
        """
        started = time.perf_counter()
        first = self.seconds is None
        probs, found = jax.device_get(self._apply(self.policy.params, view, legal))
        spent = time.perf_counter() - started
        self.seconds = 0.0 if first else max(spent, 0.9 * (self.seconds or 0.0))
        refuse_faults(found[None], (self.name,))
        probs = probs.astype(np.float64)
        return probs / probs.sum()

    @property
    def is_quick(self) -> bool:
        """Whether it answers at once: it is compiled, and its decisions take less than 50 ms."""
        return self.seconds is not None and self.seconds < 0.05


class Shelf:
    """Compiled games and players, the least recently used given up first."""

    def __init__(self, most: int = 24) -> None:
        """Keeps so many games, and twice as many players."""
        self._lock = threading.Lock()
        self._locks: dict[Any, threading.Lock] = {}
        self.game: Callable[[Game], CompiledGame] = self._locked(functools.lru_cache(most)(CompiledGame))
        self.player: Callable[[str, Game], Player] = self._locked(functools.lru_cache(2 * most)(_found))

    def _locked(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a function of which one call with the same arguments runs at a time: nothing is built twice."""

        def locked(*arguments: Any) -> Any:
            with self._lock:
                own = self._locks.setdefault((function, arguments), threading.Lock())
            with own:  # a game that takes long to solve keeps no other table waiting
                return function(*arguments)

        return locked


def _found(reference: str, game: Game) -> Player:
    return Player(reference, find_player(reference, game))
