"""Do the rule bots do what their rules say, and only what is legal?"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from dream.evaluation import match
from envs import InputError, cards
from envs.gin_rummy import deadwood, deadwood_after_discard

GAME = envs.make("gin_rummy")
RULE_BOTS = [name for name in envs.bot_names(GAME) if name != "random"]


@functools.partial(jax.jit, static_argnums=1)
def _steps(policy: envs.Policy, games: int) -> tuple:
    """Plays a bot against itself: views, legal actions, policies and states of every step."""
    states = jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), games))

    def body(states: object, t: jax.Array) -> tuple:
        views = jax.vmap(GAME.view)(states, states.current_player)
        legal = jax.vmap(GAME.legal_actions)(states)
        chances = jax.vmap(policy)(views, legal)
        after, _, _ = jax.vmap(GAME.step)(states, jnp.argmax(chances, axis=1))
        return after, (views, legal, chances, states.current_player)

    return jax.lax.scan(body, states, jnp.arange(GAME.max_length))[1]


@pytest.mark.parametrize("name", ["greedy", "heuristic", "defensive", "eaai_simple"])
def test_bots_are_distributions_over_legal_actions(name: str) -> None:
    """At every decision of 64 hands against themselves."""
    _, legal, chances, player = jax.device_get(_steps(envs.make_bot(name, GAME), 64))
    playing = player >= 0
    np.testing.assert_allclose(chances[playing].sum(axis=1), 1.0, atol=1e-6)
    assert not np.any(chances[playing] * ~legal[playing])
    assert np.all(chances >= 0)


def test_greedy_is_greedy() -> None:
    """It takes a top exactly where that lowers deadwood, sheds what leaves least, and knocks at once."""
    views, legal, chances, player = jax.device_get(_steps(envs.make_bot("greedy", GAME), 16))
    action = chances.argmax(axis=2)
    checked = {"draw": 0, "discard": 0, "knock": 0}
    for t, lane in zip(*np.nonzero(player >= 0), strict=True):
        view = jax.tree.map(lambda x, t=t, lane=lane: x[t, lane], views)
        hand = np.asarray(cards.to_cards(view.hand))
        if view.phase == 4:
            left = np.asarray(deadwood_after_discard(hand))
            allowed = legal[t, lane, 3:55] | legal[t, lane, 55:]
            assert left[(action[t, lane] - 3) % 52] == left[allowed].min()
            assert (action[t, lane] >= 55) == legal[t, lane, 55:].any()
            checked["knock" if action[t, lane] >= 55 else "discard"] += 1
        elif legal[t, lane, 1]:
            with_top = hand.copy()
            with_top[view.top] = True
            left = np.array(deadwood_after_discard(with_top))
            left[view.top] = 999
            assert (action[t, lane] == 1) == (left.min() < int(deadwood(hand)))
            checked["draw"] += 1
    assert min(checked.values()) >= 10, checked


def test_every_rule_bot_beats_random_play() -> None:
    """On points a hand over 256 mirrored hands, the whole interval above 0."""
    for name in ("greedy", "heuristic"):
        report = match(GAME, envs.make_bot(name, GAME), envs.make_bot("random", GAME), games=256)
        assert report["points_per_hand"].low > 30


def test_wrong_names_and_options_are_refused() -> None:
    """One line, with the nearest name."""
    with pytest.raises(InputError, match="did you mean 'greedy'"):
        envs.make_bot("gredy", GAME)
    with pytest.raises(InputError, match="unknown option of greedy 'take'"):
        envs.make_bot("greedy", GAME, take=1.0)
    with pytest.raises(InputError, match="unknown player of kuhn_poker"):
        envs.make_bot("greedy", envs.make("kuhn_poker"))
    assert set(RULE_BOTS) >= {"greedy", "heuristic", "aggressive_knock", "meld_builder", "early_knock", "defensive"}
