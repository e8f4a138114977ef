"""Uniform random play: the weakest opponent, and the benchmark for the speed of a game."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs.batching import computed_once
from envs.game import Game, Policy, View
from envs.totals import settled

_WORD, _HALF = 32, 16


def uniform_policy() -> Policy:
    """Returns the Policy that gives every legal action the same probability."""
    return Policy(_uniform)


def _uniform(params: tuple[()], view: View, legal: Array) -> Array:
    return uniform(legal).astype(jnp.float32)


def uniform(legal: Any) -> Any:
    """Returns the same probability for every legal action, 0 elsewhere: float[..., A]; all 0 where nothing is legal.

    Args:
      legal: bool[..., A], of numpy (float64 comes back) or of JAX (its default float).
    """
    return legal / legal.sum(axis=-1, keepdims=True).clip(1)


def key_of_view(seed: Any, view: View) -> Array:
    """Returns a PRNG key that depends on all a view holds, and on a seed: the randomness of a player without a key.

    In the same view such a player always acts the same, and its actions depend on nothing but the view.

    Args:
      seed: uint32.
      view: of anyone.
    """
    words = jnp.concatenate([jnp.ravel(x).astype(jnp.uint32) for x in jax.tree.leaves(view)])
    odd = np.random.default_rng(0).integers(0, 2**32, (2, words.shape[0]), np.uint32) | np.uint32(1)
    sums = jnp.sum((words + np.uint32(1)) * odd, axis=1, dtype=jnp.uint32)
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), sums[0]), sums[1])


def uniform_action(bits: Array, legal: Array) -> Array:
    """Returns a uniformly random legal action from one random word.

    The mask is packed into words and the n-th set bit found by bisection, n = floor(bits * legal actions / 2^32).

    Args:
      bits: uint32, random.
      legal: bool[A], at least one True.
    Returns:
      int32.
    """
    words = _packed(legal)
    counts = lax.population_count(words)
    total = functools.reduce(jnp.add, list(counts))
    n = _scaled(bits, total)
    word, base = words[0], jnp.uint32(0)
    index, before = jnp.uint32(0), jnp.uint32(0)
    for w in range(1, words.shape[0]):
        before = before + counts[w - 1]
        beyond = n >= before
        index = jnp.where(beyond, jnp.uint32(w), index)
        word = jnp.where(beyond, words[w], word)
        base = jnp.where(beyond, before, base)
    n = n - base
    position = jnp.uint32(0)
    for half in (16, 8, 4, 2, 1):
        low = lax.population_count(word & np.uint32((1 << half) - 1))
        upper = n >= low
        n = jnp.where(upper, n - low, n)
        word = jnp.where(upper, word >> half, word)
        position = position + jnp.where(upper, np.uint32(half), np.uint32(0))
    return (index * _WORD + position).astype(jnp.int32)


def _packed(legal: Array) -> Array:
    """Packs a mask into words: uint32[ceil(A / 32)], bit a % 32 of word a // 32.

    A product with powers of two, exact as half words stay below 2^24: a CPU does this several times faster than the
    shifts and sums, which it would fuse with, and so repeat, the computation of the mask.
    """
    size = legal.shape[0]
    num_words = -(-size // _WORD)
    weights = np.zeros((size, 2 * num_words), np.float32)
    actions = np.arange(size)
    weights[actions, actions // _HALF] = 2.0 ** (actions % _HALF)
    halves = (legal.astype(jnp.float32) @ weights).astype(jnp.uint32)
    return halves[0::2] | (halves[1::2] << _HALF)


def _scaled(bits: Array, total: Array) -> Array:
    """Returns floor(bits * total / 2^32) without 64-bit integers; total < 2^16."""
    high, low = bits >> 16, bits & np.uint32(0xFFFF)
    return (high * total + (low * total >> 16)) >> 16


class Played(NamedTuple):
    """Totals of a batch of games: decisions int32, sum of rewards float32[P], games with a winner (not tied) int32."""

    decisions: Array
    rewards: Array
    decided: Array


@functools.partial(jax.jit, static_argnums=(0, 2))
def play_random(game: Game, key: Array, num_games: int) -> Played:
    """Plays whole games uniformly at random, all at once, with the full legal mask at every decision.

    Args:
      game: the game.
      key: consumed.
      num_games: games, each from its own deal to its end.
    """
    deal_key, play_key = jax.random.split(key)
    states = jax.vmap(game.init)(jax.random.split(deal_key, num_games))
    start = (states, jnp.zeros((num_games, game.num_players)), jnp.zeros(num_games, bool), jnp.int32(0))

    def body(carry: tuple, t: Array) -> tuple:
        states, rewards, over, decisions = carry
        bits = jax.random.bits(jax.random.fold_in(play_key, t), (num_games,))
        actions = computed_once(jax.vmap(uniform_action)(bits, jax.vmap(game.legal_actions)(states)))
        decisions = decisions + jnp.sum(~over, dtype=jnp.int32)
        states, gained, over = jax.vmap(game.step)(states, actions)
        return (states, rewards + gained, over, decisions), None

    (_, rewards, _, decisions), _ = lax.scan(body, start, jnp.arange(game.max_length))
    decided = jnp.any(settled(game, rewards) != 0, axis=1)
    return Played(decisions, jnp.sum(rewards, axis=0), jnp.sum(decided, dtype=jnp.int32))
