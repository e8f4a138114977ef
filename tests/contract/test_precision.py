"""Are products of float32 outside of networks in full precision on accelerators, which round operands by default?

A GPU keeps 11 bits of each operand then: three thirds may sum to 0.9998. What it makes of a program is read, not run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import envs
from dream.algorithms.deep.history_values import expected_next_value
from dream.equations import estimators
from dream.rollout.self_play import Outcomes
from envs.game import Game


def _rounded(program: Callable[..., Any], *args: Any) -> list[str]:
    """Returns the products of a program for a GPU that may round float32 operands."""
    text = jax.jit(program).trace(*args).lower(lowering_platforms=("cuda",)).as_text()
    products = [line for line in text.splitlines() if "dot_general" in line and "xf32>" in line]
    return [line for line in products if "precision = [HIGHEST, HIGHEST]" not in line]


def test_a_product_that_is_rounded_is_seen() -> None:
    """By default it is."""
    assert _rounded(jnp.dot, jnp.ones(3), jnp.ones(3))
    assert not _rounded(lambda x, y: jnp.dot(x, y, precision="highest"), jnp.ones(3), jnp.ones(3))


@pytest.mark.parametrize("name", envs.names())
def test_games_and_their_players(name: str) -> None:
    """A step, what is seen of it, and each rule-based player's choice."""
    game = envs.make(name)

    def played(state: Any) -> Any:
        after, rewards, done = game.step(state, jnp.int32(0))
        return after, rewards, done, game.encode(game.view(after, jnp.int32(0)))

    state = jax.jit(game.init)(jax.random.key(0))
    assert not _rounded(played, state)
    bots = [bot for bot in envs.bot_names(game) if not bot.startswith("mc:") or bot == "mc:64"]
    for bot in ("greedy",) if name == "gin_rummy_openspiel" else bots:  # there all are translated alike
        assert not _rounded(lambda now: _choice(bot, game, now), state), bot  # noqa: B023


def _choice(bot: str, game: Game, state: Any) -> Any:
    return envs.make_bot(bot, game)(game.view(state, jnp.int32(0)), game.legal_actions(state))


@pytest.mark.parametrize("ahead", [None, jnp.ones(2)])
def test_estimates_of_action_values(ahead: Any) -> None:
    """Their baselines' expectations are subtracted from what was expected: a rounded one is a bias."""
    table, steps = jnp.full((2, 3), 1 / 3), jnp.zeros(2)
    lane = (table, table, steps.astype(int), table, steps, steps > 0)
    assert not _rounded(lambda *x: estimators.corrected_values(*x, ahead), *lane)
    assert not _rounded(lambda *x: estimators.traced_values(*x, 0.5, 2.0, ahead), *lane)


def test_values_of_what_chance_may_bring() -> None:
    """Their expectation over outcomes, and over the actions at each."""
    outcomes = Outcomes(
        chance=jnp.full(2, 0.5), rewards=jnp.ones((2, 2)), done=jnp.zeros(2, bool), player=jnp.zeros(2, jnp.int8),
        legal=jnp.ones((2, 3), bool), views=jnp.ones((2, 2, 4)),
    )  # fmt: skip
    thirds = jnp.full(3, 1 / 3)
    assert not _rounded(lambda x: expected_next_value(lambda *_: thirds, lambda *_: thirds, x), outcomes)
