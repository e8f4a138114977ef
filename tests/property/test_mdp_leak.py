"""In `gin_rummy_mdp` too, a view does not change when every card the player cannot see is dealt anew."""

from __future__ import annotations

import functools
from typing import Any

import gin_redeal
import jax
import jax.numpy as jnp
import pytest
from jax import Array, lax

import envs
from envs.game import Game
from envs.random_play import uniform_action

NUM_HANDS, STEPS = 512, 60
LEAKS = {
    "the opponent's hand": lambda game, state, player: game.view(state, 1 - player).hand,
    "the opponent's deadwood": lambda game, state, player: game.auxiliary(state, player),
    "the next card of the stock": lambda game, state, player: state.table.deck[21 + state.table.drawn],
    "what the opponent's discards leave": lambda game, state, player: game.view(state, 1 - player).left,
}
"""Views that show too much: the test must notice each."""


def _differ(one: Any, two: Any) -> Array:
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True)
    return jnp.any(jnp.stack([jnp.any(a != b) for a, b in pairs]))


@functools.partial(jax.jit, static_argnums=0)
def _count_changes(game: Game, key: Array) -> dict[str, Array]:
    """Plays hands half by a rule bot, half at random, and deals anew at every step, for each player in turn."""
    deal_key, play_key = jax.random.split(key)
    bot = envs.make_bot("greedy", game)

    def one(state: Any, key: Array, seat: Array) -> tuple[Any, dict[str, Array]]:
        redeal_key, bits_key = jax.random.split(key)
        other = gin_redeal.redealt(game, state, seat, redeal_key)
        legal, playing = game.legal_actions(state), state.current_player >= 0
        acts = state.current_player == seat
        changed = {
            "decisions": playing,
            "view": _differ(game.view(state, seat), game.view(other, seat)),
            "legal": acts & _differ(legal, game.legal_actions(other)),
            **{name: _differ(see(game, state, seat), see(game, other, seat)) for name, see in LEAKS.items()},
        }
        bits = jax.random.bits(bits_key)
        wise = jnp.argmax(bot(game.view(state, state.current_player), legal)).astype(jnp.int32)
        action = jnp.where(bits & 4, wise, uniform_action(bits, legal | ~playing))
        return game.step(state, action)[0], {name: playing & flag for name, flag in changed.items()}

    def body(states: Any, t: Array) -> tuple[Any, dict[str, Array]]:
        keys = jax.random.split(jax.random.fold_in(play_key, t), NUM_HANDS)
        return jax.vmap(one, (0, 0, None))(states, keys, t % 2)

    states = jax.vmap(game.init)(jax.random.split(deal_key, NUM_HANDS))
    return jax.tree.map(jnp.sum, lax.scan(body, states, jnp.arange(STEPS))[1])


@pytest.fixture(scope="module")
def changes() -> dict[str, int]:
    """Counts over the first 60 actions of 512 hands."""
    counts = jax.device_get(_count_changes(envs.make("gin_rummy_mdp"), jax.random.key(50)))
    return {name: int(n) for name, n in counts.items()}


def test_nothing_seen_changes(changes: dict[str, int]) -> None:
    """Neither the view nor what the player may do, to the bit."""
    assert (changes["view"], changes["legal"]) == (0, 0)
    assert changes["decisions"] > 20 * NUM_HANDS


@pytest.mark.parametrize("leak", LEAKS)
def test_a_view_that_shows_too_much_is_caught(changes: dict[str, int], leak: str) -> None:
    """The same count over a leaking view is far from zero; the opponent is nearly always dealt another hand."""
    assert changes[leak] > changes["decisions"] // 10
    assert changes["the opponent's hand"] > 0.98 * changes["decisions"]
