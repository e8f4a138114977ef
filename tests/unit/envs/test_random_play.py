"""Random play is uniform over the legal actions, never illegal, and its totals are those of the games played."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import slow_gin

from envs.game import Game
from envs.random_play import play_random, uniform_action, uniform_policy


def _mask(size: int, actions: list[int]) -> np.ndarray:
    return np.isin(np.arange(size), actions)


def _words(parts: int) -> np.ndarray:
    """Returns `parts` evenly spaced words, from 0 on: uint32."""
    return np.array([-(-(i << 32) // parts) for i in range(parts)], np.uint64).astype(np.uint32)


@jax.jit
def _chosen(words: jax.Array, mask: jax.Array) -> jax.Array:
    return jax.vmap(uniform_action, (0, None))(words, mask)


@pytest.mark.parametrize("size", [1, 3, 16, 31, 32, 33, 64, 107, 241])
def test_every_legal_action_gets_the_same_share_of_words(size: int) -> None:
    """Of 64 evenly spaced words for each legal action, exactly 64 choose it; masks dense, sparse and at the edges."""
    rng = np.random.default_rng(size)
    masks = [np.ones(size, bool), _mask(size, [0]), _mask(size, [size - 1]), _mask(size, [0, size // 2, size - 1])]
    masks += [_mask(size, [action for action in (15, 16, 31, 32, 63, 64) if action < size] or [0])]
    masks += [row | (np.arange(size) == n % size) for n, row in enumerate(rng.random((12, size)) < rng.random((12, 1)))]
    words = [_words(64 * int(mask.sum())) for mask in masks]
    longest = 64 * size
    for mask, grid in zip(masks, words, strict=True):
        actions = np.asarray(_chosen(np.resize(grid, longest), mask))[: len(grid)]
        np.testing.assert_array_equal(np.bincount(actions, minlength=size), 64 * mask)


def test_the_first_and_the_last_word_choose_the_first_and_the_last_action() -> None:
    """The ends of the range of words stay within the legal actions."""
    ends = np.array([0, 2**32 - 1], np.uint32)
    for actions in ([0], [5, 106], [31, 32, 33], [3], list(range(107))):
        assert np.asarray(_chosen(ends, _mask(107, actions))).tolist() == [actions[0], actions[-1]]


def test_random_words_never_choose_an_illegal_action() -> None:
    """20,000 random masks of 107 actions, a random word each."""
    rng = np.random.default_rng(0)
    masks = rng.random((20_000, 107)) < rng.random((20_000, 1)) ** 3
    masks[np.arange(20_000), rng.integers(0, 107, 20_000)] = True
    words = rng.integers(0, 2**32, 20_000, dtype=np.uint32)
    actions = np.asarray(jax.jit(jax.vmap(uniform_action))(words, masks))
    assert actions.dtype == np.int32
    assert np.all(masks[np.arange(20_000), actions])


def test_uniform_policy_gives_every_legal_action_the_same_probability() -> None:
    """Sums to one on legal actions, zero elsewhere, and to zero where nothing is legal."""
    policy = uniform_policy()
    np.testing.assert_allclose(policy(None, _mask(7, [1, 4, 6])), _mask(7, [1, 4, 6]) / 3, rtol=1e-6)
    np.testing.assert_array_equal(policy(None, np.zeros(7, bool)), np.zeros(7))


def test_totals_are_those_of_the_same_games_played_slowly(game: Game) -> None:
    """32 games with the same deals and words, played with the plain Python reference."""
    key, number = jax.random.key(3), 32
    played = jax.device_get(play_random(game, key, number))
    deal_key, play_key = jax.random.split(key)
    decks = np.asarray(jax.vmap(game.init)(jax.random.split(deal_key, number)).table.deck)
    hands = [slow_gin.Hand(deck) for deck in decks]
    decisions, points, decided = 0, np.zeros(2), 0
    for t in range(game.max_length):
        words = np.asarray(jax.random.bits(jax.random.fold_in(play_key, t), (number,)))
        for hand, word in zip(hands, words.tolist(), strict=True):
            legal = np.flatnonzero(hand.legal())
            if hand.phase != slow_gin.OVER:
                decisions += 1
                hand.play(int(legal[word * len(legal) >> 32]))
                points += hand.rewards
                decided += any(hand.rewards)
    assert played.decisions == decisions
    assert played.decided == decided
    np.testing.assert_allclose(played.rewards, points, atol=1e-5)


def test_totals_depend_on_the_key_alone(game: Game) -> None:
    """The same key plays the same games; the rewards of both players cancel."""
    one, two = (jax.device_get(play_random(game, jax.random.key(4), 32)) for _ in range(2))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)
    assert abs(one.rewards.sum()) < 1e-5
