"""Small cases of `gin_rummy_openspiel` written out: knock cards, meld ids, refusals."""

from __future__ import annotations

import dataclasses
import random

import jax
import numpy as np
import openspiel_lockstep as lockstep
import pyspiel
import pytest
import slow_melds

import envs
from envs import InputError
from envs.cards import to_mask
from envs.gin_rummy.openspiel.meld_ids import MELD_MASKS
from envs.gin_rummy.players import simple_bot


@pytest.mark.parametrize(("upcard", "knock_card"), [(0, 0), (1, 2), (9, 10), (12, 10), (13, 0)])
def test_oklahoma_takes_the_knock_card_from_the_upcard(upcard: int, knock_card: int) -> None:
    """Its value, court cards 10; an ace means gin only."""
    rest = [card for card in range(52) if card != upcard]
    state = envs.make("gin_rummy_openspiel", oklahoma=True).from_deck(np.array([*rest[:20], upcard, *rest[20:]]))
    assert int(state.knock_card) == knock_card


def test_meld_ids_are_openspiels() -> None:
    """All 185 melds hold the cards pyspiel says."""
    for meld, cards in pyspiel.gin_rummy.GinRummyUtils(13, 4, 10).int_to_meld.items():
        masks = np.zeros(4, np.uint16)
        for card in cards:
            masks[card // 13] |= 1 << card % 13
        np.testing.assert_array_equal(MELD_MASKS[meld], masks)


@pytest.mark.parametrize(
    "rules",
    [{"knock_card": 11}, {"hand_size": 11}, {"num_suits": 5}, {"num_ranks": 4, "num_suits": 2, "hand_size": 3}],
)
def test_what_pyspiel_refuses_is_refused(rules: dict[str, int]) -> None:
    """With one line instead of pyspiel's own error."""
    text = ",".join(f"{name}={value}" for name, value in rules.items())
    with pytest.raises(pyspiel.SpielError):
        pyspiel.load_game(f"gin_rummy({text})").new_initial_state()
    with pytest.raises(InputError):
        envs.make("gin_rummy_openspiel", **rules)


def test_four_suits_of_fewer_ranks_play_on() -> None:
    """Where pyspiel itself raises, random hands end in time, with a legal action at every decision."""
    game = envs.make("gin_rummy_openspiel", num_ranks=7, hand_size=5)
    bits = jax.random.bits(jax.random.key(95), (game.max_length, 64))

    def body(states: tuple, word: jax.Array) -> tuple:
        legal = jax.vmap(game.legal_actions)(states)
        choice = jax.vmap(lambda mask, b: jax.numpy.argmax(mask * (1 + (b ^ np.arange(241) * 40503) % 97)))(legal, word)
        after, rewards, done = jax.vmap(game.step)(states, choice)
        return after, (legal.any(axis=1) == (states.current_player >= 0), rewards, done)

    states = jax.vmap(game.init)(jax.random.split(jax.random.key(96), 64))
    _, (consistent, rewards, done) = jax.jit(lambda states: jax.lax.scan(body, states, bits))(states)
    assert np.all(consistent)
    assert np.all(done[-1])
    assert np.any(rewards)


def test_the_potential_is_what_deadwood_costs() -> None:
    """By hundredths; of a hand with a card drawn the least over one discard. Decks rich in melds, both players."""
    game, rng = envs.make("gin_rummy_openspiel"), random.Random(94)
    decks = np.array([lockstep.rich_deck(rng) for _ in range(48)])

    @jax.jit
    @jax.vmap
    def potentials(deck: jax.Array) -> jax.Array:
        state = game.from_deck(deck)
        hands = state.hands | to_mask(jax.numpy.arange(52) == deck[21]).astype(state.hands.dtype)
        drawn = dataclasses.replace(state, hands=hands)
        return jax.numpy.stack([game.potential(one, seat) for one in (state, drawn) for seat in range(2)])

    wanted = []
    for deck in decks.tolist():
        ten = [slow_melds.mask_of(deck[10 * seat : 10 * seat + 10]) for seat in range(2)]
        wanted.append([slow_melds.FULL.deadwood(hand) for hand in ten])
        wanted[-1] += [min(slow_melds.FULL.after_discard(hand | 1 << deck[21]).values()) for hand in ten]
    assert np.unique(wanted).size > 30
    np.testing.assert_allclose(potentials(decks), -np.array(wanted) / 100, atol=1e-6)


def test_simple_bot_beats_random_play_on_the_107_actions() -> None:
    """Whole hands of `gin_rummy`: it wins nearly all that are decided, and always chooses one legal action."""
    game = envs.make("gin_rummy")
    bot = simple_bot.make(game)

    def body(carry: tuple, bits: jax.Array) -> tuple:
        states, total = carry
        legal = jax.vmap(game.legal_actions)(states)
        views = jax.vmap(game.view)(states, jax.numpy.maximum(states.current_player, 0))
        probs = jax.vmap(bot)(views, legal)
        sums = jax.numpy.sum(probs * legal, axis=1)
        noise = jax.vmap(lambda mask, b: jax.numpy.argmax(mask * (1 + (b ^ np.arange(107) * 40503) % 97)))(legal, bits)
        action = jax.numpy.where(states.current_player == 0, probs.argmax(axis=1), noise)
        fine = (sums == 1) | (states.current_player < 0)
        states, rewards, _ = jax.vmap(game.step)(states, action)
        return (states, total + rewards[:, 0]), fine

    states = jax.vmap(game.init)(jax.random.split(jax.random.key(97), 128))
    bits = jax.random.bits(jax.random.key(98), (game.max_length, 128))
    (_, won), fine = jax.jit(lambda s: jax.lax.scan(body, (s, jax.numpy.zeros(128)), bits))(states)
    assert np.all(fine)
    assert np.mean(np.asarray(won) > 0) > 0.9
    assert np.mean(won) > 0.3


def test_simple_bot_refuses_other_games() -> None:
    """One line names what it plays."""
    with pytest.raises(InputError, match="gin_rummy_openspiel"):
        simple_bot.make(envs.make("kuhn_poker"))


@pytest.mark.parametrize("faithful", ["no", 2, None])
def test_simple_bot_is_faithful_or_not(faithful: object) -> None:
    """A text such as "no" made the bot with the fault of OpenSpiel's."""
    with pytest.raises(envs.InputError, match=r"faithful=.* is not valid; it must be True or False"):
        envs.make_bot("simple_bot", envs.make("gin_rummy_openspiel"), faithful=faithful)
