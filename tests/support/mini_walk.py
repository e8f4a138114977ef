"""Walks through `mini_gin_rummy` from chosen deals, all histories, beside the plain Python engine."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import slow_mini_gin

from envs.game import Game

SEATS = np.arange(2, dtype=np.int32)
_CHUNK = 2_048


@dataclasses.dataclass(frozen=True)
class Walk:
    """All histories from some deals, in level order.

    Attributes:
      game: ours.
      states: our states, [N, ...].
      hands: the slow hands, N of them.
      rewards, done: float32[N, 2] and bool[N], what the outcome that led to the history gave.
      chance: float64[N], the probability of that outcome; slow_chance, by the slow hands' stock.
    """

    game: Game
    states: Any
    hands: list[slow_mini_gin.Hand]
    rewards: np.ndarray
    done: np.ndarray
    chance: np.ndarray
    slow_chance: np.ndarray

    @functools.cached_property
    def legal(self) -> np.ndarray:
        """Returns bool[N, A]."""
        return each(self.game.legal_actions, self.states)


def keys(game: Game, seat: int, states: Any) -> list[bytes]:
    """Returns the bytes of a seat's view of many states."""
    return packed(each(_view_of(game, seat), states))


def packed(views: Any) -> list[bytes]:
    """Returns the bytes of many views."""
    rows = [np.ascontiguousarray(x).reshape(len(x), -1).view(np.uint8) for x in jax.tree.leaves(views)]
    return [row.tobytes() for row in np.concatenate(rows, axis=1)]


def observations(game: Game, states: Any) -> np.ndarray:
    """Returns what both seats observe of many states: float32[N, 2, observation]."""
    return each(_observe(game), states)


@functools.cache
def _view_of(game: Game, seat: int) -> Callable[[Any], Any]:
    return lambda state: game.view(state, np.int32(seat))


@functools.cache
def _observe(game: Game) -> Callable[[Any], Any]:
    return lambda state: jax.vmap(lambda seat: game.observe(state, seat))(SEATS)


@functools.cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return jax.jit(jax.vmap(function))


def each(function: Callable[..., Any], *args: Any) -> Any:
    """Applies a function to many arguments at once, in chunks of one size, so that it is compiled once."""
    size = len(jax.tree.leaves(args)[0])
    parts = []
    for start in range(0, size, _CHUNK):
        rows = np.minimum(np.arange(start, start + _CHUNK), size - 1)
        parts.append(jax.device_get(_compiled(function)(*jax.tree.map(lambda x, rows=rows: x[rows], args))))
    return jax.tree.map(lambda *x: np.concatenate(x)[:size], *parts)


def walk(game: Game, rules: slow_mini_gin.Rules, decks: Sequence[Sequence[int]], starts: Any = None) -> Walk:
    """Expands every history from some deals, both ways in step.

    Args:
      game: ours, without suit symmetry.
      rules: the same rules, for the slow hands.
      decks: the deals.
      starts: our states of these deals; by default those of `from_deck`.
    """
    states = each(game.from_deck, np.array(decks)) if starts is None else starts
    hands = [slow_mini_gin.Hand(deck, rules) for deck in decks]
    ones = np.ones(len(hands))
    levels = [(states, hands, np.zeros((len(hands), 2), np.float32), np.zeros(len(hands), bool), ones, ones)]
    while not levels[-1][3].all():
        levels.append(_below(game, rules, *levels[-1][:2]))
    states, hands, *arrays = zip(*levels, strict=True)
    return Walk(
        game,
        jax.tree.map(lambda *x: np.concatenate(x), *states),
        [hand for level in hands for hand in level],
        *(np.concatenate(x) for x in arrays),
    )


def _below(game: Game, rules: slow_mini_gin.Rules, states: Any, hands: list[slow_mini_gin.Hand]) -> tuple:
    """Returns the next level: our states, slow hands, rewards, done, and both chances."""
    nodes, actions = np.nonzero(each(game.legal_actions, states))
    before = jax.tree.map(lambda x: x[nodes], states)
    after, probs, rewards, done = each(game.outcomes, before, actions.astype(np.int32))
    pair, k = np.nonzero(probs > 0)
    after = jax.tree.map(lambda x: x[pair, k], after)
    dealt = 2 * rules.hand_size + 1
    drawn = after.table.deck[np.arange(len(pair)), dealt + after.table.drawn - 1]
    branches = [hands[node].branches(int(action)) for node, action in zip(nodes, actions, strict=True)]
    slow, chances = [], []
    for p, card in zip(pair, drawn.tolist(), strict=True):
        slow.append(branches[p].pop(card if actions[p] == 0 else None))
        chances.append(1 / (len(hands[nodes[p]].stock) if actions[p] == 0 else 1))
    assert not any(branches), "the game has no outcome for some card of the stock"
    return after, slow, rewards[pair, k], done[pair, k], probs[pair, k].astype(float), np.array(chances)
