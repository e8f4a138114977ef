"""Rummy 500 with everything hidden dealt anew: the same view, each card once, and every card anywhere it can be."""

from __future__ import annotations

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs.errors import InputError
from envs.rummy500.actions import DISCARD, LOW_END, SET, TAKE
from envs.rummy500.state import HAND, STOCK

_WORLDS = 200
_SAMPLED, _WORLDS_OF_DUTY = 20, 12
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


@functools.partial(jax.jit, static_argnums=0)
def _on(game, states, keys, n, weights, active):
    """Plays the n-th random action where `active`; returns the states, and where there was none to play."""

    def one(state, key, active):
        legal = game.legal_actions(state)
        action = jax.random.categorical(jax.random.fold_in(key, n), jnp.where(legal, weights, -jnp.inf))
        after = jax.tree.map(lambda new, old: jnp.where(active, new, old), game.step(state, action)[0], state)
        return after, active & ~jnp.any(legal)

    return jax.vmap(one)(states, keys, active)


def _with_duty(game, games: int, steps: int):
    """Returns states of random play in which a taken card must still be played, half of them amid a chain."""
    weights = np.where(_IS_TAKE, 6.0, np.where(_IS_END, 4.0, np.where(_IS_LAY, 2.0, 0.0)))
    keys = jax.random.split(jax.random.key(0), games)
    passed = [jax.jit(jax.vmap(game.init))(keys)]
    for n in range(1, steps):
        passed.append(_on(game, passed[-1], keys, n, weights, np.ones(games, bool))[0])
    states = jax.tree.map(lambda *leaves: np.stack(leaves, 1).reshape(-1, *leaves[0].shape[1:]), *passed)
    has_duty = (states.duty >= 0) & (states.current_player >= 0)
    amid = states.duty_backed.any(-1) | (states.duty_direction != 0)
    chains, others = np.flatnonzero(has_duty & amid)[:_SAMPLED], np.flatnonzero(has_duty & ~amid)[:_SAMPLED]
    assert len(chains) >= 10
    assert np.any(states.duty_direction[chains] != 0)
    picked = np.concatenate([chains, others[: len(chains)]])
    return jax.tree.map(lambda leaf: leaf[picked], states)


@pytest.mark.parametrize("rules", [{}, {"num_players": 3, "hand_size": 10}])
def test_who_must_play_a_card_can(rules: dict[str, int]) -> None:
    """Seen by one who waits: in every world the other's turn goes on to its discard, however it is played."""
    game = envs.make("rummy500", **({"num_players": 2} | rules))
    states = _with_duty(game, 2 * _SAMPLED * _WORLDS_OF_DUTY, 60)
    states = jax.tree.map(lambda leaf: np.repeat(leaf, _WORLDS_OF_DUTY, axis=0), states)

    @jax.jit
    @jax.vmap
    def dealt(state, key):
        seat = (state.current_player + 1) % game.num_players
        view = game.view(state, seat)
        world = game.determinize(view, key)
        same = jax.tree.map(jnp.array_equal, game.view(world, seat), view)
        return world, jnp.all(jnp.stack(jax.tree.leaves(same)))

    keys = jax.random.split(jax.random.key(1), len(states.duty))
    worlds, same = dealt(states, keys)
    assert np.all(same)
    for n in itertools.count():
        waits = np.asarray(worlds.duty >= 0)
        if not np.any(waits):
            break
        worlds, stuck = _on(game, worlds, keys, n, np.zeros(374), waits)
        assert not np.any(stuck)


def test_a_stock_made_of_the_pile_is_refused() -> None:
    """In one line, before anything is traced."""
    game = envs.make("rummy500", reshuffle=True)
    state = game.init(jax.random.key(0))
    with pytest.raises(InputError, match="reshuffle"):
        game.determinize(game.view(state, 0), jax.random.key(1))
