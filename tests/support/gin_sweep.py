"""Plays tens of thousands of hands of `gin_rummy` in one compiled loop and counts every breach of its invariants."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gin_actors import Actor
from jax import Array, lax

from envs.game import Game

_OVER, _DISCARD = 5, 4
_HALF = 26
"""Cards in each of the two words that hold a set of cards."""


class Turn(NamedTuple):
    """What the knock rule is judged by, at every step [T, N]: phase, hand, card taken, legal actions (packed)."""

    phase: Array
    hand: Array
    taken: Array
    legal: Array


class Sweep(NamedTuple):
    """What a sweep found.

    Attributes:
      breaches: name of the invariant -> int32, how often it was broken.
      endings: int32[5], hands by `ending`.
      stock_out: int32, hands drawn before the action limit.
      decisions: int32, actions played.
      turns: Turn if asked for, else ().
    """

    breaches: dict[str, Array]
    endings: Array
    stock_out: Array
    decisions: Array
    turns: Any


def _words(cards: Array, counts: Array) -> Array:
    """Adds up the bits of card ids where they count: uint32[2], 26 cards a word, so that no sum overflows."""
    bits = jnp.where(counts, jnp.uint32(1) << (cards % _HALF).astype(jnp.uint32), 0)
    return jnp.stack([jnp.sum(jnp.where(cards // _HALF == half, bits, 0), dtype=jnp.uint32) for half in range(2)])


def each_card_has_one_place(game: Game, state: Any) -> Array:
    """Returns whether hands, pile and stock hold each of the 52 cards once, and the pile's mask its cards."""
    board, first = state.table, game.rules.dealt + state.table.drawn
    suits = board.hands.astype(jnp.uint32)
    hands = suits[:, 0::2] | (suits[:, 1::2] << 13)
    pile = _words(board.pile, np.arange(board.pile.shape[0]) < board.pile_size)
    stock = _words(board.deck, np.arange(board.deck.shape[0]) >= first)
    masks = board.pile_cards.astype(jnp.uint32)
    number = jnp.sum(lax.population_count(suits)) + board.pile_size.astype(jnp.uint32) + 52 - first.astype(jnp.uint32)
    # 52 powers of two, 26 kinds a word, that add up to all ones in both words are all different.
    whole = jnp.all(hands[0] + hands[1] + pile + stock == (1 << _HALF) - 1) & (number == 52)
    return whole & jnp.all(pile == (masks[0::2] | (masks[1::2] << 13)))


def _same(one: Any, two: Any) -> Array:
    return jnp.all(
        jnp.stack([jnp.all(a == b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True)])
    )


def _breaches(game: Game, before: Any, after: Any, rewards: Array, done: Array) -> dict[str, Array]:
    """Returns, of one step of one hand, which invariants it breaks."""
    was_over, is_over = before.phase == _OVER, after.phase == _OVER
    legal = game.legal_actions(after)
    sizes = jnp.sum(lax.population_count(after.table.hands), axis=1)
    drawn = (np.arange(2) == after.current_player) & (after.phase == _DISCARD)
    capped = is_over & (after.table.actions == game.max_length)
    return {
        "cards in one place": ~each_card_has_one_place(game, after),
        "hand sizes": ~is_over & jnp.any(sizes != jnp.where(drawn, 11, 10)),
        "hand sizes at the end": is_over & jnp.any((sizes != 10) & ~(capped & (sizes == 11))),
        "zero-sum": rewards[0] != -rewards[1],
        "reward only at the end": jnp.any(rewards != 0) & (was_over | ~is_over),
        "done tells the end": done != is_over,
        "nobody acts once over": is_over & ((after.current_player != -1) | jnp.any(legal)),
        "somebody acts in play": ~is_over & ((after.current_player < 0) | (after.current_player > 1)),
        "some action is legal in play": ~is_over & ~jnp.any(legal),
        "over is over": was_over & ~(_same(before, after) & done),
        "an ending exactly at the end": (after.ending != 0) != is_over,
        "actions counted": ~was_over & (after.table.actions != before.table.actions + 1),
    }


@functools.partial(jax.jit, static_argnums=(0, 1, 3, 4))
def sweep(game: Game, actor: Actor, key: Array, num_hands: int, keep_turns: bool = False) -> Sweep:
    """Plays hands to their end and two steps beyond, checking every step.

    Args:
      game: `gin_rummy` with the full deck.
      actor: chooses all actions, hand n in style n; what it chooses once a hand is over must have no effect.
      key: consumed.
      num_hands: hands, all at once.
      keep_turns: whether to record what the knock rule is judged by.
    """
    deal_key, play_key = jax.random.split(key)
    states = jax.vmap(game.init)(jax.random.split(deal_key, num_hands))

    def step(state: Any, bits: Array, style: Array) -> tuple[Any, dict[str, Array], Turn]:
        turn = Turn(
            phase=state.phase.astype(jnp.uint8),
            hand=jnp.where(state.current_player == 1, state.table.hands[1], state.table.hands[0]),
            taken=state.table.taken.astype(jnp.int8),
            legal=jnp.packbits(game.legal_actions(state)),
        )
        after, rewards, done = game.step(state, actor(game, state, bits, style))
        return after, _breaches(game, state, after, rewards, done), turn

    def body(carry: tuple, t: Array) -> tuple:
        states, breaches, decisions = carry
        decisions = decisions + jnp.sum(states.phase != _OVER)
        bits = jax.random.bits(jax.random.fold_in(play_key, t), (num_hands,))
        states, found, turns = jax.vmap(step)(states, bits, np.arange(num_hands, dtype=np.int32))
        breaches = {name: breaches[name] + jnp.sum(broken) for name, broken in found.items()}
        return (states, breaches, decisions), turns if keep_turns else ()

    one = jax.tree.map(lambda x: x[0], states)
    names = jax.eval_shape(lambda: _breaches(game, one, one, jnp.zeros(2), jnp.bool_(False)))
    start = (states, {name: jnp.int32(0) for name in names}, jnp.int32(0))
    (states, breaches, decisions), turns = lax.scan(body, start, jnp.arange(game.max_length + 2))
    endings = jnp.sum(states.ending[:, None] == np.arange(5), axis=0)
    stock_out = jnp.sum((states.ending == 1) & (states.table.actions < game.max_length))
    return Sweep(breaches, endings, stock_out, decisions, turns)
