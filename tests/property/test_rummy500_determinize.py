"""Rummy 500 with everything hidden dealt anew: the same view, each card once, and every card anywhere it can be."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs.errors import InputError
from envs.rummy500.actions import DISCARD, LOW_END, SET, TAKE
from envs.rummy500.state import HAND, STOCK

_WORLDS = 200
_ACTIONS = np.arange(374)
_IS_TAKE = (_ACTIONS >= TAKE) & (_ACTIONS < SET)
_IS_LAY = (_ACTIONS >= SET) & (_ACTIONS < DISCARD)
_IS_END = (_ACTIONS >= LOW_END) & (_ACTIONS < DISCARD)


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


def _with_duty(game, games: int, steps: int):
    """Returns states of random play in which a taken card must still be played, half of them amid a chain."""

    def on(state, key):
        weights = np.where(_IS_TAKE, 6.0, np.where(_IS_END, 4.0, np.where(_IS_LAY, 2.0, 0.0)))
        action = jax.random.categorical(key, jnp.where(game.legal_actions(state), weights, -jnp.inf))
        return game.step(state, action)[0], state

    def played(key):
        deal_key, *keys = jax.random.split(key, steps + 1)
        return jax.lax.scan(on, game.init(deal_key), jnp.stack(keys))[1]

    states = jax.device_get(jax.jit(jax.vmap(played))(jax.random.split(jax.random.key(0), games)))
    states = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), states)
    has_duty = (states.duty >= 0) & (states.current_player >= 0)
    amid = states.duty_backed.any(-1) | (states.duty_direction != 0)
    chains, others = np.flatnonzero(has_duty & amid)[:20], np.flatnonzero(has_duty & ~amid)[:20]
    assert len(chains) >= 10
    assert np.any(states.duty_direction[chains] != 0)
    picked = np.concatenate([chains, others[: len(chains)]])
    return jax.tree.map(lambda leaf: leaf[picked], states)


@pytest.mark.parametrize("rules", [{}, {"num_players": 3, "hand_size": 10}])
def test_who_must_play_a_card_can(rules: dict[str, int]) -> None:
    """Seen by one who waits: in every world the other's turn goes on to its discard, however it is played."""
    game = envs.make("rummy500", **({"num_players": 2} | rules))
    states = _with_duty(game, 200, 60)

    def stuck(state, key):
        seat = (state.current_player + 1) % game.num_players
        view = game.view(state, seat)
        world = game.determinize(view, key)
        same = jax.tree.map(jnp.array_equal, game.view(world, seat), view)

        def on(carry):
            now, n, _ = carry
            legal = game.legal_actions(now)
            action = jax.random.categorical(jax.random.fold_in(key, n), jnp.where(legal, 0.0, -jnp.inf))
            return game.step(now, action)[0], n + 1, ~jnp.any(legal)

        start = world, jnp.int32(0), jnp.bool_(False)
        found = jax.lax.while_loop(lambda carry: ~carry[2] & (carry[0].duty >= 0), on, start)[2]
        return found, jnp.all(jnp.stack(jax.tree.leaves(same)))

    keys = jax.random.split(jax.random.key(1), (len(states.duty), 12))
    found, same = jax.jit(jax.vmap(jax.vmap(stuck, (None, 0))))(states, keys)
    assert np.all(same)
    assert not np.any(found)


def test_a_stock_made_of_the_pile_is_refused() -> None:
    """In one line, before anything is traced."""
    game = envs.make("rummy500", reshuffle=True)
    state = game.init(jax.random.key(0))
    with pytest.raises(InputError, match="reshuffle"):
        game.determinize(game.view(state, 0), jax.random.key(1))
