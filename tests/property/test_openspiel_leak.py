"""What a player of `gin_rummy_openspiel` sees does not change when all cards it cannot see are dealt anew."""

from __future__ import annotations

import dataclasses
import functools
import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import openspiel_lockstep as lockstep
from jax import Array, lax

import envs
from envs import cards
from envs.game import Game
from envs.gin_rummy.openspiel.ids import NO_MELD

LANES = 600


def _redealt(game: Any, state: Any, observer: Array, key: Array) -> Any:
    """Shuffles the opponent's cards but those seen taken from the pile with the stock; nothing else changes."""
    other, start = 1 - observer, game.rules.dealt + state.drawn
    place = np.arange(cards.NUM_CARDS)
    known = cards.to_cards(state.known[other])
    hidden = cards.to_cards(state.hands[other]) & ~known
    in_stock = jnp.zeros(cards.NUM_CARDS, bool).at[state.deck].set(place >= start)
    noise = jax.random.uniform(key, (cards.NUM_CARDS,))
    order = jnp.argsort(jnp.where(hidden | in_stock, noise, 2.0))
    dealt = jnp.zeros(cards.NUM_CARDS, bool).at[order].set(place < jnp.sum(hidden))
    stock = order[jnp.clip(jnp.sum(hidden) + place - start, 0, cards.NUM_CARDS - 1)].astype(jnp.uint8)
    seat = (np.arange(2) == other)[:, None]
    return dataclasses.replace(
        state,
        deck=jnp.where(place >= start, stock, state.deck),
        hands=jnp.where(seat, cards.to_mask(dealt | known)[None], state.hands),
        can_knock=jnp.where(state.turn == other, ~state.can_knock, state.can_knock),
    )


def _differ(one: Any, two: Any) -> Array:
    return functools.reduce(
        jnp.logical_or,
        [jnp.any(a != b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True)],
    )


@functools.partial(jax.jit, static_argnums=0)
def _changes(game: Game, decks: Array, actions: Array, key: Array) -> tuple[Array, ...]:
    """Counts changed views, tensors and legal actions, then opponents' hands that did change; and laying decisions."""

    def one(state: Any, action: Array, key: Array, seat: Array) -> tuple:
        other = _redealt(game, state, seat, key)
        acts = state.current_player == seat
        legal = acts & jnp.any(game.legal_actions(state) != game.legal_actions(other))
        seen = _differ(game.view(state, seat), game.view(other, seat))
        tensor = jnp.any(game.observe(state, seat) != game.observe(other, seat))
        hands = jnp.any(state.hands[1 - seat] != other.hands[1 - seat])
        lays = jnp.any(state.laid != NO_MELD)
        return game.step(state, action)[0], (seen, tensor, legal, hands, lays & hands)

    def body(states: Any, step: tuple[Array, Array]) -> tuple:
        now, t = step
        keys = jax.random.split(jax.random.fold_in(key, t), LANES)
        return jax.vmap(one)(states, now, keys, np.arange(LANES) % 2)

    states = jax.vmap(game.from_deck)(decks)
    flags = lax.scan(body, states, (actions, np.arange(actions.shape[0])))[1]
    return tuple(jnp.sum(flag) for flag in flags)


def test_views_tensors_and_legal_actions_stay_the_same() -> None:
    """Through whole hands, knocks and layoffs included, for one player each."""
    game, rng = envs.make("gin_rummy_openspiel"), random.Random(75)
    choosers = [lockstep.greedy, lockstep.eager, lockstep.uniform]
    decks = [lockstep.rich_deck(rng) if n % 2 else rng.sample(range(52), 52) for n in range(LANES)]
    records = [lockstep.play(deck, choosers[n % 3], rng) for n, deck in enumerate(decks)]
    actions = np.full((game.max_length, LANES), 54, np.int32)
    for n, record in enumerate(records):
        actions[: len(record.actions), n] = record.actions
    seen, tensor, legal, hands, laying = _changes(game, np.array(decks), actions, jax.random.key(76))
    assert (int(seen), int(tensor), int(legal)) == (0, 0, 0)
    assert int(hands) > 20_000
    assert int(laying) > 300
