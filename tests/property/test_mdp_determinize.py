"""In `gin_rummy_mdp` a view shows whether the opponent could knock: all hands of which that is true come as often."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array, lax

import envs
from envs import cards
from envs.batching import QUICK
from envs.gin_rummy.core import likely
from envs.gin_rummy.mdp.encoding import slot_of
from envs.gin_rummy.melding import melds

GAME = envs.make("gin_rummy_mdp")
NAMES = "2S 5S 8S JS 3H 6H 9H QH 4D TC"
LEAST_DECLINES, MOST_DECISIONS = 2, 20
FED = "KS KH KD JH JD JC AS AH"
SHED = "4S 7S TS 5H 8H TH 7D 9D"
"""The own hand; the cards the opponent takes from the pile, and those it discards for them, in order."""
PLAY_ON, PASS = -3, 13
determinize = jax.jit(GAME.determinize)
"""Compiled once for all tests here: it takes long."""


def _ids(names: str) -> list[int]:
    return [cards.card_id(name) for name in names.split()]


@jax.jit
@functools.partial(jax.vmap, in_axes=(0, None))
def _played(hidden: Array, plays_on: Array) -> tuple[Any, Array]:
    """Plays eight turns on a deal that gives the opponent two hidden cards: the state and whether all was legal."""
    own, fed, shed, upcard = _ids(NAMES), _ids(FED), _ids(SHED), _ids("6C")
    known = jnp.array([*own, *shed, *upcard, *fed])
    rest = jnp.argsort(jnp.zeros(cards.NUM_CARDS, bool).at[known].set(True).at[hidden].set(True), stable=True)
    first = jnp.concatenate([jnp.array(own), jnp.array(shed), hidden, jnp.array([*upcard, *fed])])
    start = GAME.from_deck(jnp.concatenate([first, rest[: cards.NUM_CARDS - len(first)]]))

    def move(carry: tuple[Any, Array], card: Array) -> tuple[tuple[Any, Array], Array]:
        """Draws from the stock or the pile (-1, -2), plays on where it has to decide (-3), or discards."""
        state, fine = carry
        decides = state.phase == 2
        action = jnp.where(card < 0, -1 - card, 2 + slot_of(state.table.hands[state.current_player], card))
        action = jnp.where(card == PLAY_ON, PASS, action)
        left_out = (card == PLAY_ON) & ~(decides & plays_on)
        fine = fine & (left_out | GAME.legal_actions(state)[action])
        state = jax.tree.map(lambda old, new: jnp.where(left_out, old, new), state, GAME.step(state, action)[0])
        return (state, fine), decides

    script = [card for pair in zip(fed, shed, strict=True) for card in (-1, pair[0], -2, pair[1])] + [PLAY_ON]
    (state, fine), decides = lax.scan(move, (start, jnp.bool_(True)), jnp.array(script))
    return state, fine & (decides[-1] == plays_on) & (state.current_player == 0)


def _same(one: Any, two: Any) -> bool:
    pairs = zip(jax.tree.leaves(jax.device_get(one)), jax.tree.leaves(jax.device_get(two)), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def test_the_view_stays_and_the_round_can_be_replayed() -> None:
    """At every fifth action of a round at random, knocks left out: the same view and legal actions, to the bit."""
    compiled = functools.partial(jax.jit, compiler_options=QUICK)
    step, view = compiled(lambda state, action: GAME.step(state, action)[0]), compiled(GAME.view)
    legal_actions, replay = compiled(GAME.legal_actions), compiled(GAME.replay_actions)
    deals = (lambda seen, key: (determinize(seen, key), 0.0), 0.0), (compiled(GAME.likely_world), 1.0)
    rng, state, draws = np.random.default_rng(0), compiled(GAME.init)(jax.random.key(0)), np.zeros(2)
    for n in range(40):
        legal = np.flatnonzero(legal_actions(state))
        for seat, (deal, likelier) in itertools.product(range(2), deals) if n % 5 == 2 else ():
            seen = view(state, np.int32(seat))
            other, log_weight = deal(seen, jax.random.key(n))
            deadwood = melds.deadwood(other.table.hands[1 - seat].astype(np.int32))
            b = likelier * likely.sharpness(draws[1 - seat])
            np.testing.assert_allclose(log_weight, b * deadwood, rtol=1e-5)
            assert _same(view(other, np.int32(seat)), seen)
            assert int(state.current_player) != seat or np.array_equal(np.flatnonzero(legal_actions(other)), legal)
            again, actions, count = replay(other)
            for action in np.asarray(actions)[: int(count)]:
                again = step(again, action)
            assert _same(again, other)
        draws[int(state.current_player)] += int(state.phase) == 0
        state = step(state, np.int32(13 if 13 in legal else rng.choice(legal)))


def _listed(plays_on: bool) -> tuple[np.ndarray, Any]:
    """All pairs that the opponent might hold when all its other cards have shown, int[n, 2]; the view of player 0."""
    seen = {*_ids(NAMES), *_ids(FED), *_ids(SHED), *_ids("6C")}
    pairs = np.array(list(itertools.combinations(sorted(set(range(cards.NUM_CARDS)) - seen), 2)))
    states, fine = _played(pairs, np.bool_(plays_on))
    listed = pairs[np.asarray(fine)]
    assert 20 < len(listed) < len(pairs) - 20
    first = jax.tree.map(lambda leaf: leaf[np.flatnonzero(fine)[0]], states)
    return listed, GAME.view(first, 0)


@pytest.mark.parametrize("plays_on", [False, True])
def test_all_consistent_hands_are_equally_likely(plays_on: bool) -> None:
    """Of a round in which all but two cards of the opponent's have shown, against all pairs it might hold."""
    listed, view = _listed(plays_on)
    keys = jax.random.split(jax.random.key(1), 30 * len(listed))
    hands = np.array([determinize(view, key).table.hands[1] for key in keys]) & ~np.asarray(view.known)
    found, counts = np.unique(hands, axis=0, return_counts=True)
    assert {tuple(cards.cards_in(hand)) for hand in found} == {tuple(pair) for pair in listed}
    assert abs(np.sum((counts - 30) ** 2 / 30) - len(listed)) < 5 * np.sqrt(2 * len(listed))


def test_likely_hands_have_the_density_they_say() -> None:
    """Each pair of the same list as often as exp(-b deadwood)."""
    listed, view = _listed(plays_on=False)

    @jax.jit
    def draw(view: Any, keys: Array) -> tuple[Array, Array, Array]:  # of a constant view XLA folds for seconds
        def one(key: Array) -> tuple[Array, Array, Array]:
            world, log_weight = GAME.likely_world(view, key)
            return world.table.hands[1], world.table.deadwood[1], log_weight

        return lax.map(one, keys, batch_size=512)

    b, keys = likely.sharpness(8), jax.random.split(jax.random.key(2), 8192)
    hands, deadwood, logs = jax.device_get(draw(view, keys))
    np.testing.assert_allclose(logs, b * deadwood, rtol=1e-5)
    known, both = np.asarray(view.known), jax.vmap(lambda pair: cards.to_mask(jnp.isin(np.arange(52), pair)))(listed)
    wanted = np.exp(-b * np.asarray(jax.vmap(melds.deadwood)((both | known).astype(jnp.int32))))
    expected = wanted / wanted.sum() * len(hands)
    assert expected.max() > 3 * expected.min()
    counts = np.sum(np.all(hands[:, None] == np.asarray(both | known), axis=2), axis=0)
    assert counts.sum() == len(hands), "a hand that does not fit"
    assert abs(np.sum((counts - expected) ** 2 / expected) - len(listed)) < 5 * np.sqrt(2 * len(listed))


def test_no_world_contradicts_the_knocks_that_were_declined() -> None:
    """Two players that play on whenever they can: at draws after several declines, the round can be replayed."""
    policy = envs.make_bot("camper", GAME)
    compiled = functools.partial(jax.jit, compiler_options=QUICK)
    act = compiled(lambda state: jnp.argmax(policy(GAME.view(state, state.current_player), GAME.legal_actions(state))))
    step, view = compiled(GAME.step), compiled(GAME.view)
    again = compiled(_replayed)
    seen = 0
    for number in range(1000, 1012):
        state, declined = compiled(GAME.init)(jax.random.key(number)), [0, 0]
        while int(state.current_player) >= 0 and seen < MOST_DECISIONS:
            player = int(state.current_player)
            if int(state.phase) == 0 and declined[1 - player] >= LEAST_DECLINES:
                world = determinize(view(state, player), jax.random.key(seen))
                replayed, fine = again(world)
                assert bool(fine), (number, int(state.table.actions), declined)
                assert _same(replayed, world)
                assert _same(view(world, player), view(state, player))
                seen += 1
            action = int(act(state))
            declined[player] += action == 13
            state = step(state, np.int32(action))[0]
    assert seen == MOST_DECISIONS


def _replayed(world: Any) -> tuple[Any, Array]:
    """Returns the state that a world's actions lead to, and whether all were legal."""
    deal, actions, count = GAME.replay_actions(world)

    def turn(carry: tuple[Array, Any, Array]) -> tuple[Array, Any, Array]:
        n, state, fine = carry
        return n + 1, GAME.step(state, actions[n])[0], fine & GAME.legal_actions(state)[actions[n]]

    return lax.while_loop(lambda carry: carry[0] < count, turn, (jnp.int32(0), deal, jnp.bool_(True)))[1:]
