"""Walks through `mini_gin_rummy` from chosen deals, all histories, beside the plain Python engine."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import slow_mini_gin
from tree_walk import below, each, levels

from envs.game import Game

SEATS = np.arange(2, dtype=np.int32)


@dataclasses.dataclass(frozen=True)
class Walk:
    """All histories from some deals, in level order.

    Attributes:
      game: ours.
      states: our states, [N, ...].
      hands: the slow hands, N of them.
      legal: bool[N, A].
      rewards, done: float32[N, 2] and bool[N], what the outcome that led to the history gave.
      chance: float64[N], the probability of that outcome; slow_chance, by the slow hands' stock.
    """

    game: Game
    states: Any
    hands: list[slow_mini_gin.Hand]
    legal: np.ndarray
    rewards: np.ndarray
    done: np.ndarray
    chance: np.ndarray
    slow_chance: np.ndarray


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
    size = len(hands)
    deals = {"states": states, "hands": hands, "legal": each(game.legal_actions, states)}
    deals |= {"rewards": np.zeros((size, 2), np.float32), "done": np.zeros(size, bool)}
    deals |= {"chance": np.ones(size), "slow_chance": np.ones(size)}
    return Walk(game=game, **levels(deals, functools.partial(_below, game, rules)))


def _below(game: Game, rules: slow_mini_gin.Rules, level: dict[str, Any]) -> dict[str, Any]:
    """Returns the next level, by the names of Walk."""
    found = below(game, level["states"], level["legal"])
    dealt, hands = 2 * rules.hand_size + 1, level["hands"]
    drawn = found.states.table.deck[np.arange(len(found.parents)), dealt + found.states.table.drawn - 1]
    branches = {(node, action): hands[node].branches(action) for node, action in np.argwhere(level["legal"]).tolist()}
    slow, chances = [], []
    for node, action, card in zip(found.parents.tolist(), found.actions.tolist(), drawn.tolist(), strict=True):
        slow.append(branches[node, action].pop(card if action == 0 else None))
        chances.append(1 / (len(hands[node].stock) if action == 0 else 1))
    assert not any(branches.values()), "the game has no outcome for some card of the stock"
    return {
        "states": found.states,
        "hands": slow,
        "legal": each(game.legal_actions, found.states),
        "rewards": found.rewards,
        "done": found.done,
        "chance": found.chance,
        "slow_chance": np.array(chances),
    }
