"""Rummy 500 with everything hidden dealt anew: the same view, each card once, and every card anywhere it can be."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs.errors import InputError
from envs.rummy500.state import HAND, STOCK

_WORLDS = 200


@pytest.mark.parametrize("players", [2, 3])
def test_the_view_stays_and_the_hidden_cards_move(players: int) -> None:
    """Along rounds of the greedy player, at every decision; unknown cards are anywhere in proportion to the room."""
    game = envs.make("rummy500", num_players=players)
    bot = envs.make_bot("greedy", game)

    @jax.jit
    def advanced(state, key):
        policy_key, world_key = jax.random.split(key)
        seat = state.current_player
        view, legal = game.view(state, seat), game.legal_actions(state)
        action = jax.random.categorical(policy_key, jnp.log(bot(view, legal) + 1e-9))
        worlds = jax.vmap(lambda k: game.determinize(view, k))(jax.random.split(world_key, _WORLDS))
        views = jax.vmap(lambda world: game.view(world, seat))(worlds)
        return game.step(state, action)[0], view, views, worlds.zone, worlds.deck, worlds.drawn

    state = game.init(jax.random.key(1))
    for n in range(12):
        seat = int(state.current_player)
        if seat < 0:
            break
        state, view, views, zones, decks, drawn = jax.device_get(advanced(state, jax.random.key(100 + n)))
        for one, many in zip(view, views, strict=True):
            assert np.array_equal(np.broadcast_to(one, many.shape), many)
        for zone, deck, left in zip(zones, decks, drawn, strict=True):
            assert sorted(deck) == list(range(52))
            assert set(deck[left:]) == set(np.flatnonzero(zone == STOCK))
        moves = np.flatnonzero(np.any(zones != zones[0], axis=0))
        rooms = {HAND + (seat + step) % players: int(view.sizes[step]) - int(np.sum(view.holder == step))
                 for step in range(1, players)}  # fmt: skip
        total = sum(rooms.values()) + int(view.stock)
        if len(moves) > 20:
            for place, room in rooms.items():
                assert np.mean(zones[:, moves] == place) == pytest.approx(room / len(moves), abs=0.01)
            spread = np.mean(zones[:, moves] == STOCK, axis=0)
            assert np.all(np.abs(spread - int(view.stock) / total) < 0.2)


def test_a_stock_made_of_the_pile_is_refused() -> None:
    """In one line, before anything is traced."""
    game = envs.make("rummy500", reshuffle=True)
    state = game.init(jax.random.key(0))
    with pytest.raises(InputError, match="reshuffle"):
        game.determinize(game.view(state, 0), jax.random.key(1))
