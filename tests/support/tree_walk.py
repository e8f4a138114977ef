"""The walk over a small game's tree, a level at a time, for tests that go beside it with another engine."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from envs.game import EnumerableGame
from envs.random_play import play_random


class Below(NamedTuple):
    """The histories one action below a level, in the order of parent, action and outcome: M of them.

    Attributes:
      states: ours, [M, ...].
      parents: int[M], the place in the level above.
      actions: int[M], taken there.
      chance: float64[M], probability of the outcome, given the action.
      branches: int[M], how many outcomes of positive probability the action has.
      rewards, done: float32[M, 2] and bool[M].
    """

    states: Any
    parents: np.ndarray
    actions: np.ndarray
    chance: np.ndarray
    branches: np.ndarray
    rewards: np.ndarray
    done: np.ndarray


def below(game: EnumerableGame, states: Any, legal: np.ndarray, chunk: int = 2_048) -> Below:
    """Plays every legal action of a level's states: bool[N, A]."""
    nodes, actions = np.nonzero(legal)
    before = jax.tree.map(lambda x: x[nodes], states)
    after, probs, rewards, done = each(game.outcomes, before, actions.astype(np.int32), chunk=chunk)
    move, outcome = np.nonzero(probs > 0)
    return Below(
        states=jax.tree.map(lambda x: x[move, outcome], after),
        parents=nodes[move],
        actions=actions[move],
        chance=probs[move, outcome].astype(np.float64),
        branches=np.sum(probs > 0, axis=1)[move],
        rewards=rewards[move, outcome],
        done=done[move, outcome],
    )


def levels(first: dict[str, Any], step: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Puts all levels of a tree into one.

    Args:
      first: the deals: `legal` bool[N, A] and whatever else, lists or pytrees of arrays with leading axis N.
      step: a level -> the one below it, of the same names.
    Returns:
      Name -> the same over all levels, the deals first.
    """
    found = [first]
    while found[-1]["legal"].any():
        found.append(step(found[-1]))
    return {name: _joined([level[name] for level in found]) for name in first}


def _joined(parts: list[Any]) -> Any:
    if isinstance(parts[0], list):
        return [one for part in parts for one in part]
    return jax.tree.map(lambda *x: np.concatenate(x), *parts)


@functools.cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return jax.jit(jax.vmap(function))


def each(function: Callable[..., Any], *args: Any, chunk: int = 2_048) -> Any:
    """Applies a function to many arguments at once, in chunks of one size, so that it is compiled once."""
    size = len(jax.tree.leaves(args)[0])
    parts = []
    for start in range(0, size, chunk):
        rows = np.minimum(np.arange(start, start + chunk), size - 1)
        parts.append(jax.device_get(_compiled(function)(*jax.tree.map(lambda x, rows=rows: x[rows], args))))
    return jax.tree.map(lambda *x: np.concatenate(x)[:size], *parts)


def result_rates(rewards: np.ndarray, reach: np.ndarray) -> dict[float, float]:
    """Returns player 0's possible results and their probabilities: float[N] each, of the histories that are over."""
    rates: collections.Counter = collections.Counter()
    for reward, rate in zip(rewards.tolist(), reach.tolist(), strict=True):
        rates[reward] += rate
    return rates


def assert_random_play_has(game: EnumerableGame, rates: Mapping[float, float], seed: int, games: int = 1 << 17) -> None:
    """Asserts that random play from random deals gives the results of the tree.

    The mean and the rate of every result are within four standard errors of the exact ones.

    Args:
      game: what is played.
      rates: player 0's results and their exact probabilities.
      seed: of the games.
      games: how many.
    """
    play = jax.jit(jax.vmap(lambda key: play_random(game, key, 1)))
    won = np.asarray(play(jax.random.split(jax.random.key(seed), games)).rewards)[:, 0]
    mean = sum(value * rate for value, rate in rates.items())
    deviation = sum((value - mean) ** 2 * rate for value, rate in rates.items()) ** 0.5
    assert abs(won.mean() - mean) < 4 * deviation / games**0.5
    assert set(won.tolist()) == set(rates)
    for value, rate in rates.items():
        assert abs(np.mean(won == value) - rate) < 4 * (rate * (1 - rate) / games) ** 0.5
