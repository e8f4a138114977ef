"""Boards: the cards that are named and counted are the table's."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs import boards, cards
from envs.boards import gin


@pytest.mark.parametrize("knock_form", ["best_discard", "each_discard"])
@pytest.mark.parametrize("suit_symmetry", [False, True])
def test_a_discard_is_heard_in_the_hearers_suits(suit_symmetry: bool, knock_form: str) -> None:
    """Of mini gin, at every discard of some rounds: the card is the pile's top, as the hearer's view has it."""
    game = envs.make("mini_gin_rummy", preset="4x2", suit_symmetry=suit_symmetry, knock_form=knock_form)
    step, legal, view = jax.jit(game.step), jax.jit(game.legal_actions), jax.jit(game.view)
    rng, heard = np.random.default_rng(0), set()
    for seed in range(12):
        state = game.init(jax.random.key(seed))
        while int(state.current_player) >= 0:
            action, actor = int(rng.choice(np.flatnonzero(legal(state)))), int(state.current_player)
            after, _, _ = step(state, action)
            for hearer in range(2):
                before, now = jax.device_get((view(state, hearer), view(after, hearer)))
                said = boards.said(game, before, action, now, hearer == actor, jax.device_get(state))
                if action >= gin.DISCARDS:
                    assert said["cards"] == [cards.card_name(int(now.top), game.rules.num_ranks)]
                    words = game.describe_action(jax.device_get(state), action, hearer)
                    assert said["cards"][0] in words or words == "knock with the best discard"
                    heard.add(said["kind"])
            state = after
    assert heard == {"discard", "knock"}


@pytest.mark.parametrize("num_suits", [2, 3])
def test_cards_of_small_decks_go_by_one_name(num_suits: int) -> None:
    """Of OpenSpiel's gin with fewer suits: what is shown of a hand is what `hands` and `deck` say of it."""
    game = envs.make("gin_rummy_openspiel", num_suits=num_suits, num_ranks=9, hand_size=5)
    board = boards.board_of(game)
    for seed in range(3):
        state = game.init(jax.random.key(seed))
        held, deck = np.asarray(board.hands(game, state)), board.deck(game)
        for seat in range(2):
            shown = board.seen(game, jax.device_get(game.view(state, seat)))
            assert sorted(shown["hand"]) == sorted(deck[n] for n in np.flatnonzero(held[seat]))
    view = jax.device_get(game.view(state, 0))
    assert board.insight(game, view, held[None], np.ones(1), [])


def test_the_others_cards_are_counted_as_they_are() -> None:
    """Of OpenSpiel's gin, at every decision and for both players, those who lay melds or lay off among them."""
    game = envs.make("gin_rummy_openspiel")
    bot = envs.make_bot("simple_bot", game)

    @jax.jit
    def looked_at(state):
        seat = state.current_player
        action = jnp.argmax(bot(game.view(state, seat), game.legal_actions(state)))
        return game.step(state, action)[0], [game.view(state, one) for one in range(2)]

    phases = set()
    for seed in range(6):
        state = game.init(jax.random.key(seed))
        while int(state.current_player) >= 0:
            after, views = jax.device_get(looked_at(state))
            for seat, view in enumerate(views):
                shown = boards.seen(game, state, view, seat)
                held = sum(int(mask).bit_count() for mask in np.asarray(state.hands)[1 - seat])
                assert shown["others"][0]["count"] == held
                phases.add(shown["phase"])
            state = after
    assert phases >= {"first_upcard", "draw", "discard", "knock", "layoff", "melds"}
