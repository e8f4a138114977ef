"""The vectorised rummy 500 against the plain one, decision by decision."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array, lax
from slow_rummy500 import SlowRummy500

import envs
from envs.game import Game
from envs.random_play import uniform_action
from envs.rummy500 import actions

ROUNDS, STEPS = 48, 300
RULES: list[dict[str, Any]] = [
    {"num_players": 2},
    {"num_players": 3, "take_needs_hand_card": True},
    {"num_players": 4, "ace_in_runs": "high", "hand_size": 10},
    {"num_players": 6, "ace_in_runs": "low", "max_turns": 25},
]


@functools.partial(jax.jit, static_argnums=0)
def _play(game: Game, decks: Array, key: Array) -> tuple:
    """Plays at random, but takes from the pile and lays cards often; what each step gave: [STEPS, ROUNDS]."""
    states = jax.vmap(game.from_deck)(decks)

    def one(state: Any, bits: Array) -> tuple:
        legal = game.legal_actions(state)
        eager = legal & (np.arange(game.num_actions) >= actions.TAKE) & (np.arange(game.num_actions) < actions.DISCARD)
        choice = jnp.where(jnp.any(eager) & (bits % 4 > 0), eager, legal)
        action = jnp.where(jnp.any(legal), uniform_action(bits, choice), 0)
        after, rewards, done = game.step(state, action)
        return after, (legal, action, rewards, done, game.scores(after), after.went_out)

    def body(states: Any, t: Array) -> tuple:
        return jax.vmap(one)(states, jax.random.bits(jax.random.fold_in(key, t), (ROUNDS,)))

    return lax.scan(body, states, jnp.arange(STEPS))[1]


@pytest.mark.parametrize("rules", RULES)
def test_legal_actions_scores_and_ends(rules: dict[str, Any]) -> None:
    """The same legal actions at every decision, the same scores after each, the same end."""
    game = envs.make("rummy500", rewards="points", **rules)
    decks = np.random.default_rng(3).permuted(np.tile(np.arange(52), (ROUNDS, 1)), axis=1)
    legal, played, rewards, done, scores, went_out = jax.device_get(_play(game, decks, jax.random.key(4)))
    takes = chains = 0
    for lane, deck in enumerate(decks.tolist()):
        slow = SlowRummy500(deck, **rules)
        for t in range(STEPS):
            assert set(np.flatnonzero(legal[t, lane]).tolist()) == slow.legal(), (lane, t)
            if slow.over:
                break
            action = int(played[t, lane])
            takes += 1 <= action < 53
            chains += slow.duty is not None and action >= actions.LOW_END
            slow.step(action)
            assert scores[t, lane].tolist() == slow.scores(), (lane, t)
            assert bool(done[t, lane]) == slow.over
        assert slow.over
        assert int(went_out[t - 1, lane]) == slow.went_out
        np.testing.assert_allclose(rewards[:, lane].sum(axis=0), np.array(slow.scores()) / 100, atol=1e-6)
    assert takes > ROUNDS
    assert chains > 0
