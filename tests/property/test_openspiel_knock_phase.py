"""What `gin_rummy_openspiel` allows after a knock, against its definition: meld by meld, card by card."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

import envs
from envs.gin_rummy.melding import melds
from envs.gin_rummy.openspiel.ids import KNOCK, LAYS, MELDS, PASS, TAKE
from envs.gin_rummy.openspiel.meld_ids import MELD_MASKS
from envs.gin_rummy.players import simple_bot

HANDS = 3_000
GAME = envs.make("gin_rummy_openspiel")


def _hands(size: int) -> np.ndarray:
    """Draws hands from a few neighbouring ranks, where runs and sets compete: int32[HANDS, 4]."""
    rng = np.random.default_rng(size)
    hands = np.zeros((HANDS, 4), np.int32)
    for hand in hands:
        width = rng.integers(3, 14)
        low = rng.integers(0, 14 - width)
        for card in rng.permutation(4 * width)[:size]:
            hand[card // width] |= 1 << (low + card % width)
    return hands


@jax.jit
@functools.partial(jax.vmap, in_axes=(0, 0, None))
def _ours(hand: Array, knock_card: Array, phase: Array) -> Array:
    deal = GAME.init(jax.random.key(0))
    hands = jnp.stack([hand, hand]).astype(jnp.uint16)
    state = dataclasses.replace(deal, hands=hands, phase=phase, knock_card=knock_card, knocker=jnp.int32(0))
    return GAME.legal_actions(state)


@jax.jit
@jax.vmap
def _after_each_meld(hand: Array) -> tuple[Array, Array]:
    """Returns which melds are held and what deadwood the hand without each has."""
    masks = jnp.asarray(MELD_MASKS).astype(jnp.int32)
    held = jnp.all((masks & ~hand) == 0, axis=1)
    return held, jax.vmap(melds.deadwood)(hand & ~masks)


def _limits(count: int) -> np.ndarray:
    return np.random.default_rng(count).integers(0, 11, HANDS).astype(np.int32)


@pytest.mark.parametrize("size", [7, 9, 10])
def test_a_knocker_may_lay_what_leaves_the_limit_in_reach(size: int) -> None:
    """All melds of hands full of conflicts; a pass where the cards left are within the limit."""
    hands, knock_card = _hands(size), _limits(size)
    assert np.mean(melds.has_conflict(hands.T)) > 0.05
    held, after = (np.asarray(x) for x in _after_each_meld(hands))
    limit = np.maximum(knock_card, np.asarray(jax.jit(jax.vmap(melds.deadwood))(hands)))
    legal = np.asarray(_ours(hands, knock_card, np.int32(KNOCK)))
    np.testing.assert_array_equal(legal[:, LAYS:], held & (after <= limit[:, None]))
    points = np.asarray(melds.over_suits(melds.points(jnp.asarray(hands.T))))
    np.testing.assert_array_equal(legal[:, PASS], points <= limit)
    assert not legal[:, :PASS].any()


def test_a_knocker_may_discard_what_leaves_the_limit_in_reach() -> None:
    """All discards of eleven cards, or those that leave least."""
    hands, knock_card = _hands(11), _limits(11)
    full = np.asarray(jnp.sum(jax.lax.population_count(hands), axis=1)) == 11
    after = np.asarray(jax.jit(jax.vmap(melds.deadwood_after_discard))(hands)).reshape(HANDS, -1)
    limit = np.maximum(knock_card, after.min(axis=1))
    legal = np.asarray(_ours(hands, knock_card, np.int32(KNOCK)))[full]
    assert full.mean() > 0.9
    np.testing.assert_array_equal(legal[:, :TAKE], (after <= limit[:, None])[full])
    assert not legal[:, TAKE:].any()


def test_the_defender_may_lay_every_meld_it_holds() -> None:
    """Whatever that leaves; it may always pass."""
    hands, knock_card = _hands(10), _limits(0)
    held, _ = (np.asarray(x) for x in _after_each_meld(hands))
    legal = np.asarray(_ours(hands, knock_card, np.int32(MELDS)))
    np.testing.assert_array_equal(legal[:, LAYS:], held)
    assert legal[:, PASS].all()
    assert not legal[:, :PASS].any()


def test_where_the_bots_move_is_illegal_both_its_forms_take_the_last_legal_one() -> None:
    """On random masks, which rarely hold what the bot would do."""
    states = jax.vmap(GAME.init)(jax.random.split(jax.random.key(3), 64))
    words = jax.random.bits(jax.random.key(4), (64, 8)) & jax.random.bits(jax.random.key(5), (64, 8))
    words = words.at[:, -1].set(words[:, -1] & ((1 << GAME.num_actions % 32) - 1))
    masks = ((words[:, :, None] >> np.arange(32, dtype=np.uint32)) & 1).astype(bool).reshape(64, -1)
    views = jax.vmap(GAME.view)(states, states.turn)
    probs = jax.jit(jax.vmap(simple_bot.make(GAME)))(views, masks[:, : GAME.num_actions])
    chosen = np.asarray(jax.jit(jax.vmap(simple_bot.choice(GAME)))(views, words))
    np.testing.assert_array_equal(np.argmax(probs, axis=1), chosen)
    last = np.array([np.flatnonzero(mask)[-1] for mask in np.asarray(masks)])
    assert 0 < (chosen == last).sum() < 64
