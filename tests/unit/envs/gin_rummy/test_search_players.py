"""Search players: rollouts play by the rules, worlds are deals that could be, choices follow the evidence."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array, lax

import envs
from envs import InputError, cards, gin_rummy
from envs.gin_rummy.players import playouts, rule_based, search
from envs.gin_rummy.players.playouts import Limits

GAME = envs.make("gin_rummy")
HANDS = 128
LIMITS = (Limits(10.0, 8.0, 4.0), Limits(9.0, 2.0, 0.0))


def _rule(limits: Limits) -> envs.Policy:
    """The rule bot that plays as rollouts do."""
    return rule_based.rule_bot("aggressive_knock", take_knock=0.0, **limits._asdict())


def _step(state: Any, first: Array) -> tuple[Any, Array]:
    """Plays one action as the rule bot does, with the first limits for player `first`."""
    player = state.current_player
    view, legal = GAME.view(state, player), GAME.legal_actions(state)
    one, two = (_rule(limits) for limits in LIMITS)
    assert one.apply == two.apply
    params = jax.tree.map(lambda own, other: jnp.where(player == first, own, other), one.params, two.params)
    after, paid, _ = GAME.step(state, jnp.argmax(one.apply(params, view, legal)))
    return after, paid


@jax.jit
def _ends(key: Array, before: Array) -> tuple[Array, Array]:
    """Plays hands some actions on, and from there to the end: as rollouts, and in the game. Points of who is to act."""

    def one(key: Array) -> tuple[Array, Array]:
        def body(n: Array, carry: tuple) -> tuple:
            now, state, paid = carry
            state = jax.tree.map(functools.partial(jnp.where, n <= before), now, state)
            first = jnp.where(n < before, 0, state.current_player)
            after, gained = _step(now, first)
            return after, state, jnp.where(n < before, 0, paid + jnp.where(first == 1, gained[1], gained[0]))

        dealt = GAME.init(key)
        _, state, paid = lax.fori_loop(0, before + GAME.max_length, body, (dealt, dealt, jnp.float32(0)))
        seat = state.current_player
        view = GAME.view(state, seat)
        hand, stock = playouts.open_view(view, key)
        # The deal as it is, in place of a sampled one.
        other = jnp.where(seat == 0, state.table.hands[1], state.table.hands[0]).astype(jnp.int32)
        stock, hand = state.table.deck.astype(jnp.int32), hand._replace(other=other, place=21 + state.table.drawn)
        reported = playouts.play_out(GAME.rules, hand, stock, *LIMITS, 64)
        return jnp.where(seat >= 0, reported, 0.0), jnp.where(seat >= 0, 100 * paid, 0.0)

    return jax.vmap(one)(jax.random.split(key, HANDS))


@pytest.mark.parametrize("before", [0, 1, 8])
def test_rollouts_play_as_the_rule_bot_does_in_the_game(before: int) -> None:
    """From the deal, from the second offer and from the middle: the same points in every hand."""
    reported, paid = jax.device_get(_ends(jax.random.key(before), jnp.int32(before)))
    np.testing.assert_allclose(reported, np.round(paid), atol=1e-3)
    assert np.count_nonzero(reported) > HANDS // 2


@functools.partial(jax.jit, static_argnums=1)
def _worlds(view: Any, count: int) -> Any:
    def one(key: Array) -> Any:
        hand, stock = playouts.open_view(view, key)
        better, mixed = playouts.improve(
            hand, stock, view.known.astype(jnp.int32), jnp.int32(5), jax.random.bits(key, (12,))
        )
        return (hand.other, stock), (better.other, mixed), hand.place, hand.left

    return jax.vmap(one)(jax.random.split(jax.random.key(4), count))


def test_worlds_are_deals_that_could_be() -> None:
    """Opponent and stock share the cards not seen, known cards kept; improved hands hold less deadwood."""
    state = GAME.from_deck(np.arange(52) * 19 % 52)
    state, _, _ = GAME.step(state, 1)
    shed = int(np.nonzero(np.asarray(GAME.legal_actions(state)))[0][0])
    state, _, _ = GAME.step(state, shed)
    view = jax.jit(GAME.view)(state, 1)
    known = set(cards.cards_in(np.asarray(view.known)))
    assert len(known) == 1
    *both, place, left = jax.device_get(_worlds(view, 64))
    hidden = set(range(52)) - {c for mask in (view.hand, view.pile) for c in cards.cards_in(np.asarray(mask))}
    points = []
    for other, stock in both:
        for n in range(64):
            hand = set(cards.cards_in(other[n]))
            assert len(hand) == 10
            assert known <= hand
            rest = stock[n, place[n] : place[n] + left[n]].tolist()
            assert hand | set(rest) == hidden
            assert len(hand) + len(rest) == len(hidden)
        flags = np.array([[c in cards.cards_in(mask) for c in range(52)] for mask in other])
        points.append(float(np.mean(jax.vmap(gin_rummy.deadwood)(flags))))
    assert points[1] < points[0] - 10


def test_an_empty_stock_improves_no_hand() -> None:
    """The last card is drawn: what the opponent holds stays, and so does the stock's order; one card left is drawn."""
    view = jax.jit(GAME.view)(GAME.from_deck(np.arange(52) * 19 % 52), 0)
    hand, stock = jax.jit(playouts.open_view)(view, jax.random.key(2))
    bits, improve = jax.random.bits(jax.random.key(3), (12,)), jax.jit(playouts.improve)
    for left in (0, 1):
        before = hand._replace(left=jnp.int32(left))
        after, mixed = improve(before, stock, view.known.astype(jnp.int32), jnp.int32(3), bits)
        may_change = {int(stock[int(hand.place)])} if left else set()
        gained = set(cards.cards_in(np.asarray(after.other))) - set(cards.cards_in(np.asarray(hand.other)))
        assert gained <= may_change
        assert len(np.flatnonzero(np.asarray(mixed) != np.asarray(stock))) <= left


@jax.jit
def _decisions(base: envs.Policy, searches: envs.Policy) -> Any:
    """Lets a rule bot play 16 hands and asks all five: chances float32[T, N, 5, A], legal actions bool[T, N, A]."""
    states = jax.vmap(GAME.init)(jax.random.split(jax.random.key(9), 16))

    def body(states: Any, _: Array) -> Any:
        views, legal = jax.vmap(GAME.view)(states, states.current_player), jax.vmap(GAME.legal_actions)(states)
        chances = jax.vmap(base)(views, legal)
        ask = jax.vmap(jax.vmap(searches.apply, (0, None, None)), (None, 0, 0))
        others = ask(searches.params, views, legal)
        after, _, _ = jax.vmap(GAME.step)(states, jnp.argmax(chances, axis=1))
        return after, (jnp.concatenate([chances[:, None], others], axis=1), legal)

    return lax.scan(body, states, None, 40)[1]


def test_choices_are_legal_follow_the_evidence_and_can_be_repeated() -> None:
    """With evidence out of reach the base's choice; with little, others too; the same at every asking, by the seed."""
    small = {"worlds": 4, "turns": 12}
    base = envs.make_bot("lookahead", GAME)
    options = ({"evidence": 100.0, "seed": 1}, {}, {"seed": 0}, {"seed": 5})
    levels = [search.make("lv5", GAME, **small, **more) for more in options]
    params = jax.tree.map(lambda *values: np.stack(values), *(level.params for level in levels))
    chances, legal = jax.device_get(_decisions(base, envs.Policy(levels[0].apply, params)))
    asked = legal.any(axis=2)
    assert not np.any((chances > 0) & ~legal[:, :, None])
    np.testing.assert_allclose(chances[asked].sum(axis=2), 1)
    choice = chances.argmax(axis=3)[asked]
    # Where one candidate is better by the same in all four worlds, no evidence is out of reach.
    assert np.mean(choice[:, 0] != choice[:, 1]) < 0.01
    np.testing.assert_array_equal(choice[:, 2], choice[:, 3])
    assert 0.02 < np.mean(choice[:, 2] != choice[:, 0]) < 0.8
    assert np.any(choice[:, 2] != choice[:, 4])


def test_wrong_options_are_refused() -> None:
    """One line each, what is wrong and what would be right."""
    with pytest.raises(InputError, match=r"worlds=1 of lv5 is out of range; it must be in \[2, 4096\]"):
        envs.make_bot("lv5", GAME, worlds=1)
    with pytest.raises(InputError, match="did you mean 'worlds'"):
        envs.make_bot("lv7", GAME, wolds=8)
    with pytest.raises(InputError, match="unknown player of kuhn_poker"):
        envs.make_bot("lv4", envs.make("kuhn_poker"))
