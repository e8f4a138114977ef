"""Random phantom games, played by pyspiel and by ours."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import numpy as np
import pyspiel
from jax import Array, lax

from envs.game import Game

NAMES = {
    "phantom_ttt": "phantom_ttt(obstype=reveal-nothing,gameversion={version})",
    "dark_hex": "dark_hex(board_size={board_size},obstype=reveal-nothing,gameversion={version})",
}
_HEX_VERSION = {"classical": "cdh", "abrupt": "adh"}
_SEATS = np.arange(2, dtype=np.int32)


@dataclasses.dataclass(frozen=True)
class Games:
    """Random games, padded to the longest; T steps and one more for the start.

    Attributes:
      actions: int32[N, T], -1 past the end.
      players: int32[N, T + 1], -1 once over.
      legal: bool[N, T + 1, A].
      tensors: bool[N, T + 1, 2, observation_size], the information-state tensors.
      returns: float32[N, 2].
      strings: of each decision, [N][t], the information-state string of the player to act.
    """

    actions: np.ndarray
    players: np.ndarray
    legal: np.ndarray
    tensors: np.ndarray
    returns: np.ndarray
    strings: list[list[str]]


def theirs(game: Game) -> Any:
    """Returns pyspiel's game of the same rules."""
    rules = dataclasses.asdict(game.rules)
    if game.name == "dark_hex":
        rules["version"] = _HEX_VERSION[rules["version"]]
    return pyspiel.load_game(NAMES[game.name].format(**rules))


def play(game: Game, num_games: int, seed: int) -> Games:
    """Plays games of pyspiel uniformly at random."""
    root, rng, steps = theirs(game).new_initial_state(), np.random.default_rng(seed), game.max_length
    record = Games(
        actions=np.full((num_games, steps), -1, np.int32),
        players=np.full((num_games, steps + 1), -1, np.int32),
        legal=np.zeros((num_games, steps + 1, game.num_actions), bool),
        tensors=np.zeros((num_games, steps + 1, 2, game.observation_size), bool),
        returns=np.zeros((num_games, 2), np.float32),
        strings=[[] for _ in range(num_games)],
    )
    for n in range(num_games):
        state, t = root.clone(), 0
        while not state.is_terminal():
            _note(record, state, n, t)
            legal = state.legal_actions()
            record.actions[n, t] = legal[rng.integers(len(legal))]
            record.players[n, t] = state.current_player()
            record.legal[n, t, legal] = True
            record.strings[n].append(state.information_state_string())
            state.apply_action(int(record.actions[n, t]))
            t += 1
        _note(record, state, n, t)
        record.tensors[n, t + 1 :] = record.tensors[n, t]
        record.returns[n] = state.returns()
    return record


def _note(record: Games, state: Any, n: int, t: int) -> None:
    for seat in range(2):
        record.tensors[n, t, seat] = state.information_state_tensor(seat)


@functools.partial(jax.jit, static_argnums=0)
def replay(game: Game, actions: Array) -> tuple[Any, Array, Array, Array, Array]:
    """Plays the same actions on ours.

    Returns:
      (views of both players, players, legal actions, observations of both players as bool, rewards), each with leading
      axes [T + 1, N] but the rewards, [T, N, 2].
    """

    def look(state: Any) -> tuple[Any, Array, Array, Array]:
        views = jax.vmap(lambda seat: game.view(state, seat))(_SEATS)
        seen = jax.vmap(lambda seat: game.observe(state, seat))(_SEATS)
        return views, state.current_player, game.legal_actions(state), seen

    def one(state: Any, action: Array) -> tuple[Any, tuple]:
        after, rewards, _ = game.step(state, jax.numpy.maximum(action, 0))
        return after, (*look(after), rewards)

    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), len(actions)))
    _, (views, players, legal, seen, rewards) = lax.scan(jax.vmap(one), states, actions.T)
    first = jax.vmap(look)(states)
    parts = jax.tree.map(lambda a, b: jax.numpy.concatenate([a[None], b]), first, (views, players, legal, seen))
    return *parts, rewards
