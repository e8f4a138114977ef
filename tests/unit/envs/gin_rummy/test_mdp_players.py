"""Do the players of `gin_rummy` play `gin_rummy_mdp` as they play their own game?"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs.gin_rummy.core import table
from envs.gin_rummy.event_log import state as event_log
from envs.gin_rummy.mdp import encoding, players
from envs.gin_rummy.mdp import game as mdp

GAME = envs.make("gin_rummy_mdp")
THEIRS = envs.make("gin_rummy", first_offer=False, gin_bonus=25, undercut_bonus=25, max_actions=240)
WANTED = {
    "random", "simple_bot", "heuristic", "aggressive_knock", "meld_builder", "early_knock", "defensive", "greedy",
    "lv4", "lv5", "lv7",
}  # fmt: skip
HANDS = 24


def test_all_players_are_there() -> None:
    """Every one of `gin_rummy`, by its name."""
    assert set(envs.bot_names(GAME)) >= WANTED | set(envs.bot_names(THEIRS))


@pytest.mark.parametrize("name", ["simple_bot", "defensive"])
def test_the_same_hands_are_played(name: str) -> None:
    """The same decks, one player against itself: card for card the same hands."""
    decks = np.stack([np.random.default_rng(n).permutation(52) for n in range(HANDS)])
    ours, theirs = (_final(game, envs.make_bot(name, game), decks) for game in (GAME, THEIRS))
    np.testing.assert_array_equal(ours.table.hands, theirs.table.hands)
    np.testing.assert_array_equal(ours.table.pile_cards, theirs.table.pile_cards)
    np.testing.assert_array_equal(ours.table.drawn, theirs.table.drawn)
    np.testing.assert_array_equal(ours.knocker, theirs.knocker)
    assert np.all(ours.phase == encoding.OVER)
    assert np.all(theirs.phase == event_log.OVER)
    assert np.sum(ours.knocker >= 0) > HANDS // 2


def _final(game: envs.Game, player: envs.Policy, decks: np.ndarray) -> Any:
    """Returns the last states of hands the player plays against itself."""

    @jax.jit
    def play(states: Any) -> Any:
        def body(_: jax.Array, states: Any) -> Any:
            views = jax.vmap(game.view)(states, states.current_player)
            chances = jax.vmap(player)(views, jax.vmap(game.legal_actions)(states))
            return jax.vmap(game.step)(states, jnp.argmax(chances, axis=1))[0]

        return jax.lax.fori_loop(0, 140, body, states)

    return jax.device_get(play(jax.vmap(game.from_deck)(decks)))


def test_a_player_that_draws_lots_keeps_its_chances() -> None:
    """Uniform over 107 actions: c is discarded with the share of its discard and knock, then knocked with by half."""
    player = envs.uniform_policy()
    policy = players.translated(player, GAME)
    translated, step = jax.jit(lambda view, legal: policy(view, legal)), jax.jit(GAME.step)
    state = GAME.from_deck(np.arange(52))
    state, _, _ = step(state, jnp.int32(mdp.STOCK))
    legal = GAME.legal_actions(state)
    chances = np.asarray(translated(GAME.view(state, 0), legal))
    # AS to TS and 9H: shedding an inner card of the run leaves more than 10, so the shares are 1 or 2 parts.
    parts = np.round(chances / chances[chances > 0].min())
    assert chances.sum() == pytest.approx(1.0)
    assert set(parts[2:13].tolist()) == {1.0, 2.0}
    state, _, _ = step(state, jnp.int32(mdp.DISCARDS + 10))
    decided = np.asarray(translated(GAME.view(state, 0), GAME.legal_actions(state)))
    assert decided[[13, 14, 15]].tolist() == [0.5, 0.0, 0.5]


def test_accelerators_round_no_probability() -> None:
    """By default they round what is multiplied: three thirds may sum to 0.9998, which a match refuses."""
    state = GAME.from_deck(np.arange(52))
    seen = GAME.view(state, 0), GAME.legal_actions(state)
    policy = players.translated(envs.uniform_policy(), GAME)
    text = jax.jit(lambda view, legal: policy(view, legal)).trace(*seen).lower(lowering_platforms=("cuda",)).as_text()
    products = [line for line in text.splitlines() if "dot_general" in line]
    assert products
    assert all("precision = [HIGHEST, HIGHEST]" in line for line in products)


def test_at_a_knock_decision_the_view_before_the_discard_is_seen_again() -> None:
    """To the bit, log, top and legal actions included: a player that reckons with all it sees decides alike twice."""
    seen_as = jax.jit(players.translated(envs.make_bot("greedy", GAME), GAME).apply.as_seen)
    step, view, legal = jax.jit(GAME.step), jax.jit(GAME.view), jax.jit(GAME.legal_actions)
    bot = envs.make_bot("simple_bot", GAME)
    play = jax.jit(lambda now, free: jnp.argmax(bot(now, free)))
    compared = {True: 0, False: 0}
    for seed in range(12):
        state, chosen = GAME.init(jax.random.key(seed)), None
        while int(state.current_player) >= 0:
            now = view(state, state.current_player)
            if int(state.phase) == encoding.KNOCK:
                for one, two in zip(jax.tree.leaves(seen_as(now)), jax.tree.leaves(chosen), strict=True):
                    np.testing.assert_array_equal(one, two)
                compared[bool(table.read(now.log[int(now.length) - 2]).type == table.DRAW_DISCARD)] += 1
            chosen = seen_as(now)
            state, _, _ = step(state, play(now, legal(state)))
    assert min(compared.values()) > 0, compared
