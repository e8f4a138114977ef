"""The JAX game and the slow reference playing the same hands, step by step."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import slow_gin
import slow_players

from envs.game import Game

SEATS = np.arange(2, dtype=np.int32)


@dataclasses.dataclass(frozen=True)
class Moment:
    """One time step of many hands, both ways; arrays have a leading axis over hands.

    Attributes:
      t: actions played so far.
      states: the JAX states.
      seen: what the JAX game tells of them, as `sight` gives.
      rewards, done: what its last step gave.
      hands: the slow hands.
      observations: float32[N, 2, observation], the slow ones.
    """

    t: int
    states: Any
    seen: dict[str, np.ndarray]
    rewards: np.ndarray
    done: np.ndarray
    hands: list[slow_gin.Hand]
    observations: np.ndarray


def sight(game: Game, state: Any) -> dict[str, Any]:
    """Returns all that a game's functions say of a state, for both players."""
    return {
        "legal": game.legal_actions(state),
        "player": state.current_player,
        "phase": game.phase(state),
        "observation": jax.vmap(lambda seat: game.observe(state, seat))(SEATS),
        "potential": jax.vmap(lambda seat: game.potential(state, seat))(SEATS),
    }


def sample(rules: slow_gin.Rules, count: int, seed: int) -> tuple[np.ndarray, list[list[int]]]:
    """Deals decks, int[N, cards], and plays them with all kinds of slow players: decks and actions."""
    rng = random.Random(seed)
    decks = [rng.sample(range(rules.num_cards), rules.num_cards) for _ in range(count)]
    pairings = slow_players.PAIRINGS
    actions = [slow_players.play(deck, pairings[n % len(pairings)], rng, rules) for n, deck in enumerate(decks)]
    return np.array(decks), actions


def replay(game: Game, rules: slow_gin.Rules, decks: np.ndarray, actions: list[list[int]]) -> Iterator[Moment]:
    """Plays the actions both ways and yields every moment, to one step past the longest hand a game allows.

    A hand that is over is stepped on with actions of all kinds, which must change nothing.
    """
    look = jax.jit(jax.vmap(lambda state: sight(game, state)))
    step = jax.jit(jax.vmap(game.step))
    states = jax.jit(jax.vmap(game.from_deck))(decks)
    hands = [slow_gin.Hand(deck, rules) for deck in decks]
    observations = np.stack([_both(hand) for hand in hands])
    rewards, done = np.zeros((len(hands), 2), np.float32), np.zeros(len(hands), bool)
    for t in range(rules.max_actions + 2):
        seen = {name: np.asarray(value) for name, value in look(states).items()}
        yield Moment(t, states, seen, np.asarray(rewards), np.asarray(done), hands, observations)
        after_end = (37 * t + np.arange(len(hands))) % game.num_actions
        now = [a[t] if t < len(a) else other for a, other in zip(actions, after_end, strict=True)]
        for n, hand in enumerate(hands):
            changes = hand.phase != slow_gin.OVER
            hand.play(int(now[n]))
            if changes:
                observations[n] = _both(hand)
        states, rewards, done = step(states, np.array(now, np.int32))


def _both(hand: slow_gin.Hand) -> np.ndarray:
    return np.stack([hand.observation(player) for player in range(2)])
